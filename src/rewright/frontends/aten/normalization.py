"""ATen layer, group, batch and root-mean-square normalisation."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.frontends.aten.context import Context, Table, Value
from rewright.ir.dims import Dim
from rewright.ir.types import DType
from rewright.ops.reference import building as rb
from rewright.ops.reference import normalization as reference

TABLE = Table()
_EPSILON = {DType.F64: 2.0**-52, DType.F32: 2.0**-23, DType.BF16: 2.0**-7, DType.F16: 2.0**-10}


@TABLE.register("aten.native_layer_norm.default")
def native_layer_norm(
    c: Context, x: Value, normalized_shape: Sequence[Dim], weight: Value | None, bias: Value | None, eps: float
) -> tuple[int, int, int]:
    dtype = x.dtype
    found = reference.layer_norm(
        c.b, x.position, len(normalized_shape), c.optional(weight, dtype), c.optional(bias, dtype), eps
    )
    small = c.result(1).dtype
    return found.result, rb.convert(c.b, found.mean, small), rb.convert(c.b, found.rstd, small)


@TABLE.register("aten.layer_norm.default")
def layer_norm(
    c: Context,
    x: Value,
    normalized_shape: Sequence[Dim],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *_: object,
) -> int:
    rank, dtype = len(normalized_shape), x.dtype
    return reference.layer_norm(c.b, x.position, rank, c.optional(weight, dtype), c.optional(bias, dtype), eps).result


@TABLE.register("aten.native_layer_norm_backward.default")
def native_layer_norm_backward(
    c: Context,
    gradient: Value,
    x: Value,
    normalized_shape: Sequence[Dim],
    mean: Value,
    rstd: Value,
    weight: Value | None,
    bias: Value | None,
    output_mask: Sequence[bool],
) -> tuple[int | None, ...]:
    dtype = x.dtype
    found = reference.layer_norm_backward(
        c.b,
        gradient.position,
        x.position,
        len(normalized_shape),
        c.convert(mean, dtype),
        c.convert(rstd, dtype),
        c.optional(weight, dtype),
    )
    return tuple(position if wanted else None for position, wanted in zip(found, output_mask, strict=True))


@TABLE.register("aten._fused_rms_norm.default")
def fused_rms_norm(
    c: Context, x: Value, normalized_shape: Sequence[Dim], weight: Value | None, eps: float | None
) -> tuple[int, int]:
    result, rstd = reference.rms_norm(c.b, x.position, len(normalized_shape), c.optional(weight, x.dtype), _eps(c, eps))
    return result, rb.convert(c.b, rstd, c.result(1).dtype)


@TABLE.register("aten.rms_norm.default")
def rms_norm(
    c: Context, x: Value, normalized_shape: Sequence[Dim], weight: Value | None = None, eps: float | None = None
) -> int:
    rank = len(normalized_shape)
    return reference.rms_norm(c.b, x.position, rank, c.optional(weight, x.dtype), _eps(c, eps))[0]


def _eps(c: Context, eps: float | None) -> float:
    """PyTorch's default is the distance from one to the next number of the dtype."""
    return _EPSILON[c.result().dtype] if eps is None else eps


@TABLE.register("aten._fused_rms_norm_backward.default")
def fused_rms_norm_backward(
    c: Context,
    gradient: Value,
    x: Value,
    normalized_shape: Sequence[Dim],
    rstd: Value,
    weight: Value | None,
    output_mask: Sequence[bool],
) -> tuple[int | None, ...]:
    found = reference.rms_norm_backward(
        c.b,
        gradient.position,
        x.position,
        len(normalized_shape),
        c.convert(rstd, x.dtype),
        c.optional(weight, x.dtype),
    )
    return tuple(position if wanted else None for position, wanted in zip(found, output_mask, strict=True))


@TABLE.register("aten.native_group_norm.default")
def native_group_norm(
    c: Context,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    batch: Dim,
    channels: Dim,
    inner: Dim,
    group: int,
    eps: float,
) -> tuple[int, int, int]:
    return reference.group_norm(c.b, x.position, group, c.optional(weight), c.optional(bias), eps)


@TABLE.register("aten.group_norm.default")
def group_norm(
    c: Context,
    x: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
    *_: object,
) -> int:
    return reference.group_norm(c.b, x.position, num_groups, c.optional(weight), c.optional(bias), eps)[0]


@TABLE.register("aten.native_group_norm_backward.default")
def native_group_norm_backward(
    c: Context,
    gradient: Value,
    x: Value,
    mean: Value,
    rstd: Value,
    weight: Value | None,
    batch: Dim,
    channels: Dim,
    inner: Dim,
    group: int,
    output_mask: Sequence[bool],
) -> tuple[int | None, ...]:
    found = reference.group_norm_backward(
        c.b, gradient.position, x.position, mean.position, rstd.position, c.optional(weight), group
    )
    return tuple(position if wanted else None for position, wanted in zip(found, output_mask, strict=True))


@TABLE.register("aten._native_batch_norm_legit_no_training.default")
def batch_norm_inference(
    c: Context,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[int, int, int]:
    rstd = c.b.add(ops.Rsqrt(), rb.shift_by(c.b, running_var.position, eps))
    result = rb.subtract(c.b, x.position, rb.broadcast_along(c.b, running_mean.position, x.shape, 1))
    result = rb.multiply(c.b, result, rb.broadcast_along(c.b, rstd, x.shape, 1))
    if weight is not None:
        result = rb.multiply(c.b, result, rb.broadcast_along(c.b, weight.position, x.shape, 1))
    if bias is not None:
        result = rb.add(c.b, result, rb.broadcast_along(c.b, bias.position, x.shape, 1))
    empty = [rb.splat(c.b, 0, c.result(index).shape, c.result(index).dtype) for index in (1, 2)]
    return result, empty[0], empty[1]
