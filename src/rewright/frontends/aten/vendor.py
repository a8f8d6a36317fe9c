"""Kernels of vLLM, Apex, Megatron and Transformers, and HLO operators that captures write among ATen calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rewright import ops
from rewright.frontends.aten.context import Context, Operand, Table, Value
from rewright.ir.dims import Dim
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb
from rewright.ops.reference import normalization
from rewright.ops.reference import vendor as reference
from rewright.ops.reference.grouped import ASCENDING, grouped_matrix, grouped_outer

TABLE = Table()
HLO = Table()
MUTATING: dict[str, Callable[..., tuple[int, ...]]] = {}
"""By kernel, what it writes into its operands, in the order of its schema; called with keywords."""


def _writes(name: str) -> Callable[[Any], Any]:
    def enter(function: Any) -> Any:
        MUTATING[name] = function
        return function

    return enter


@_writes("_C.rms_norm.default")
def rms_norm(c: Context, *, input: Value, weight: Value, epsilon: float, **_: object) -> tuple[int]:
    weights = c.convert(weight, input.dtype)
    return (normalization.rms_norm(c.b, input.position, 1, weights, epsilon)[0],)


@_writes("_C.fused_add_rms_norm.default")
def fused_add_rms_norm(c: Context, *, input: Value, residual: Value, weight: Value, epsilon: float) -> tuple[int, int]:
    old, weights = c.positions(residual, weight, dtype=input.dtype)
    return reference.fused_add_rms_norm(c.b, input.position, old, weights, epsilon)


@_writes("_C.silu_and_mul.default")
def silu_and_mul(c: Context, *, input: Value, **_: object) -> tuple[int]:
    return (reference.silu_and_mul(c.b, input.position),)


@_writes("_C.gelu_and_mul.default")
def gelu_and_mul(c: Context, *, input: Value, **_: object) -> tuple[int]:
    return (reference.gelu_and_mul(c.b, input.position),)


@_writes("_C.gelu_tanh_and_mul.default")
def gelu_tanh_and_mul(c: Context, *, input: Value, **_: object) -> tuple[int]:
    return (reference.gelu_and_mul(c.b, input.position, "tanh"),)


@_writes("_C.rotary_embedding.default")
def rotary_embedding(
    c: Context,
    *,
    positions: Value,
    query: Value,
    key: Value | None = None,
    head_size: Dim,
    cos_sin_cache: Value,
    is_neox: bool,
) -> tuple[int, ...]:
    cache = c.convert(cos_sin_cache, query.dtype)
    given = [x.position for x in (query, key) if x is not None]
    return tuple(reference.rotary_embedding(c.b, positions.position, x, head_size, cache, is_neox) for x in given)


@_writes("vllm.unified_attention_with_output.default")
def unified_attention(
    c: Context, *, query: Value, key: Value, value: Value, output: Value, layer_name: str, **_: object
) -> tuple[int]:
    size = query.shape[-1]
    if query.rank != 3 or key.rank != 3 or value.rank != 3 or not isinstance(size, int):
        raise UnsupportedOperator("attention on operands that are not (tokens, heads, size); reshape them before")
    c.assume(
        "vllm.unified_attention_with_output attends causally among the tokens of the call, by head, "
        "scaled by one over the root of the head size, and reads no cache"
    )
    scale = 1 / math.sqrt(max(size, 1))
    found = reference.token_attention(c.b, query.position, key.position, value.position, scale)
    return (rb.reshape(c.b, found, output.shape),)


@_writes("tg.inplace_log_tensor.default")
def inplace_log_tensor(c: Context, *, t: Value, **_: object) -> tuple[int]:
    return (t.position,)


@TABLE.register("apex.fused_layer_norm_affine_fwd.default")
def fused_layer_norm_affine_fwd(
    c: Context, x: Value, weight: Value | None, bias: Value | None, normalized_shape: Sequence[Dim], eps: float
) -> tuple[int, int, int]:
    """Result, mean and reciprocal standard deviation, the last two flat."""
    wide = c.convert(x, DType.F32) if x.dtype in (DType.F16, DType.BF16) else x.position
    dtype = c.b.type(wide).dtype
    rank = len(normalized_shape)
    found = normalization.layer_norm(c.b, wide, rank, c.optional(weight, dtype), c.optional(bias, dtype), eps)
    kept = [rb.reshape(c.b, part, (c.b.type(part).size(),)) for part in (found.mean, found.rstd)]
    return rb.convert(c.b, found.result, x.dtype), kept[0], kept[1]


@TABLE.register("apex.fused_layer_norm_affine_bwd.default")
def fused_layer_norm_affine_bwd(
    c: Context,
    gradient: Value,
    mean: Value,
    rstd: Value,
    x: Value,
    normalized_shape: Sequence[Dim],
    weight: Value,
    bias: Value | None,
    eps: float,
    *_: object,
) -> tuple[int, int, int]:
    """Gradients of input, weight and bias."""
    rank, dtype = len(normalized_shape), mean.dtype
    outer = (*x.shape[: x.rank - rank], *(1 for _ in range(rank)))
    wide, given, weights = c.positions(x, gradient, weight, dtype=dtype)
    flat = [rb.reshape(c.b, part.position, outer) for part in (mean, rstd)]
    found = normalization.layer_norm_backward(c.b, given, wide, rank, flat[0], flat[1], weights)
    kinds = (x.dtype, weight.dtype, weight.dtype if bias is None else bias.dtype)
    first, second, third = (rb.convert(c.b, part, kind) for part, kind in zip(found, kinds, strict=True))
    return first, second, third


@TABLE.register("transformers.grouped_mm_fallback.default")
def grouped_mm_fallback(c: Context, x: Value, weight: Value, offs: Value) -> int:
    c.assume(ASCENDING)
    rows, matrices = c.positions(x, weight)
    return grouped_matrix(c.b, rows, matrices, offs.position)


@TABLE.register("transformers.grouped_mm_fallback_backward.default")
def grouped_mm_fallback_backward(c: Context, x: Value, weight: Value, offs: Value, gradient: Value) -> tuple[int, int]:
    """Gradients of rows and matrices."""
    c.assume(ASCENDING)
    rows, matrices, given = c.positions(x, weight, gradient)
    back = grouped_matrix(c.b, given, rb.swap(c.b, matrices, 1, 2), offs.position)
    return back, grouped_outer(c.b, rows, given, offs.position)


@HLO.register("hlo.dot")
def hlo_dot(
    c: Context,
    x: Value,
    y: Value,
    left: Sequence[int],
    right: Sequence[int],
    left_batch: Sequence[int] = (),
    right_batch: Sequence[int] = (),
) -> int:
    op = ops.DotGeneral(tuple(left_batch), tuple(right_batch), tuple(left), tuple(right))
    return rb.convert(c.b, c.b.add(op, *c.positions(x, y)), c.result().dtype)


@HLO.register("hlo.broadcast")
def hlo_broadcast(c: Context, x: Operand, dimensions: Sequence[int], sizes: Sequence[Dim]) -> int:
    return c.b.add(ops.BroadcastInDim(tuple(sizes), tuple(dimensions)), c.convert(x))


@HLO.register("hlo.select")
def hlo_select(c: Context, condition: Value, x: Operand, y: Operand) -> int:
    return c.spread(rb.select(c.b, condition.position, *c.positions(x, y)))


@HLO.register("hlo.logistic")
def hlo_logistic(c: Context, x: Value) -> int:
    return c.b.add(ops.Logistic(), *c.positions(x))


def _hlo_reduction(kind: ReductionKind) -> Callable[[Context, Value, int | Sequence[int]], int]:
    def lower(c: Context, x: Value, axes: int | Sequence[int]) -> int:
        return rb.reduce(c.b, kind, c.convert(x), [axes] if isinstance(axes, int) else axes)

    return lower


HLO.register("hlo.reduce_max")(_hlo_reduction("maximum"))
HLO.register("hlo.reduce_min")(_hlo_reduction("minimum"))
HLO.register("hlo.reduce_sum")(_hlo_reduction("sum"))


@HLO.register("hlo.gather")
def hlo_gather(
    c: Context,
    x: Value,
    indices: Value,
    offset: Sequence[int],
    collapsed: Sequence[int],
    start: Sequence[int],
    vector: int,
    sizes: Sequence[Dim],
) -> int:
    op = ops.Gather(tuple(offset), tuple(collapsed), (), (), tuple(start), vector, tuple(sizes))
    return c.b.add(op, x.position, indices.position)


@HLO.register("hlo.AwsNeuronRmsNorm")
def aws_rms_norm(c: Context, x: Value, weight: Value, eps: float, axis: int | None = None) -> int:
    """Along the given axis, or along the only one that is as long as the weight."""
    fitting = [k for k, size in enumerate(x.shape) if (size,) == weight.shape]
    if axis is None and len(fitting) != 1:
        raise UnsupportedOperator(f"a norm of {x.type} by {weight.type} does not say along which axis; give the axis")
    along = fitting[0] if axis is None else x.axis(axis)
    return rb.convert(c.b, reference.rms_norm_along(c.b, x.position, weight.position, along, eps), c.result().dtype)
