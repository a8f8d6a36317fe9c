"""ATen operators that make tensors from nothing, and conversions that copy."""

from __future__ import annotations

import math
from fractions import Fraction

from rewright import ops
from rewright.frontends.aten.context import Context, Number, Operand, Table, Value
from rewright.ir.dims import Dim
from rewright.ir.errors import TypeMismatch, UnsupportedOperator
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import building as rb

TABLE = Table()


def _fill(c: Context, value: Number) -> int:
    kind = c.result()
    return rb.splat(c.b, value, kind.shape, kind.dtype)


@TABLE.register(
    "aten.zeros.default",
    "aten.zeros_like.default",
    "aten.new_zeros.default",
    "aten._efficientzerotensor.default",
)
def zeros(c: Context, *_: object, **__: object) -> int:
    return _fill(c, 0)


@TABLE.register("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(c: Context, *_: object, **__: object) -> int:
    return _fill(c, 1)


@TABLE.register("aten.full.default", "aten.full_like.default")
def full(c: Context, _: object, fill_value: Operand, **__: object) -> int:
    return c.spread(c.position(fill_value, c.result().dtype))


@TABLE.register("aten.new_full.default")
def new_full(c: Context, _: object, size: object, fill_value: Operand, **__: object) -> int:
    return c.spread(c.position(fill_value, c.result().dtype))


@TABLE.register("aten.scalar_tensor.default")
def scalar_tensor(c: Context, value: Operand, **__: object) -> int:
    return c.position(value, c.result().dtype)


@TABLE.register("aten.fill.Scalar", "aten.fill.Tensor")
def fill(c: Context, x: Value, value: Operand) -> int:
    return c.spread(c.position(value, x.dtype))


@TABLE.register(
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.empty_strided.default",
    "aten.empty_permuted.default",
    "aten.new_empty.default",
    "aten.new_empty_strided.default",
)
def empty(c: Context, *_: object, **__: object) -> int:
    return c.new_memory()


@TABLE.register("aten.arange.default")
def arange(c: Context, end: Operand, **__: object) -> int:
    return arange_start(c, 0, end)


@TABLE.register("aten.arange.start", "aten.arange.start_step")
def arange_start(c: Context, start: Operand, end: Operand, step: Number = 1, **__: object) -> int:
    kind = c.result()
    if (
        isinstance(start, int)
        and isinstance(end, int)
        and isinstance(step, int)
        and len(range(start, end, step)) != (kind.shape[0])
    ):
        raise TypeMismatch(f"a ramp from {start} to {end} by {step} is not {kind}; capture it again")
    count = kind.shape[0]
    if kind.dtype.is_unsigned and step < 0 and isinstance(start, int) and isinstance(count, int):
        return c.b.add(ops.Reverse((0,)), _ramp(c, kind, int(start + step * (count - 1)), -step))
    return _ramp(c, kind, start, step)


def _ramp(c: Context, kind: TensorType, start: Operand, step: Number) -> int:
    scaled = rb.scale_by(c.b, c.b.add(ops.Iota(kind, 0)), step)
    return scaled if start == 0 else rb.broadcast(c.b, rb.add(c.b, scaled, c.position(start, kind.dtype)), kind.shape)


@TABLE.register("aten.linspace.default")
def linspace(c: Context, start: Number, end: Number, steps: Dim, **__: object) -> int:
    kind = c.result()
    if not isinstance(steps, int):
        raise UnsupportedOperator("linspace with a symbolic number of steps; use arange instead")
    if not kind.dtype.is_float:
        return c.b.add(ops.Constant(kind, _whole_steps(int(start), int(end), steps)))
    width = (end - start) / (steps - 1) if steps > 1 else 0.0
    ramp = rb.convert(c.b, rb.iota(c.b, kind.shape, 0), kind.dtype)
    return rb.shift_by(c.b, rb.scale_by(c.b, ramp, width), start)


def _whole_steps(start: int, end: int, steps: int) -> tuple[int, ...]:
    """What PyTorch's kernel gives: each half is counted from its own end, rounded once, and cut off."""
    width = Fraction((end - start) / (steps - 1)) if steps > 1 else Fraction(0)
    return tuple(
        math.trunc(float(start + width * k if k < steps // 2 or steps == 1 else end - width * (steps - k - 1)))
        for k in range(steps)
    )


@TABLE.register("aten.eye.default", "aten.eye.m")
def eye(c: Context, *_: object, **__: object) -> int:
    kind = c.result()
    same = rb.compare(c.b, "EQ", rb.iota(c.b, kind.shape, 0), rb.iota(c.b, kind.shape, 1))
    return rb.convert(c.b, same, kind.dtype)


def _triangle(c: Context, x: Value, diagonal: int, *, lower: bool) -> int:
    rows, columns = rb.iota(c.b, x.shape, x.rank - 2), rb.iota(c.b, x.shape, x.rank - 1)
    edge = rb.shift_by(c.b, rows, diagonal)
    kept = rb.compare(c.b, "LE" if lower else "GE", columns, edge)
    return rb.select(c.b, kept, x.position, rb.splat_like(c.b, 0, x.position))


@TABLE.register("aten.tril.default")
def tril(c: Context, x: Value, diagonal: int = 0) -> int:
    return _triangle(c, x, diagonal, lower=True)


@TABLE.register("aten.triu.default")
def triu(c: Context, x: Value, diagonal: int = 0) -> int:
    return _triangle(c, x, diagonal, lower=False)


@TABLE.register("aten.one_hot.default")
def one_hot(c: Context, x: Value, num_classes: int = -1) -> int:
    kind = c.result()
    ramp = rb.iota(c.b, kind.shape, kind.rank - 1, x.dtype)
    index = c.b.add(ops.BroadcastInDim(kind.shape, tuple(range(x.rank))), x.position)
    return rb.convert(c.b, c.b.add(ops.Compare("EQ"), index, ramp), DType.I64)
