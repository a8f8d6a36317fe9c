"""ATen operators that write into an operand, and writes into slices that give a new tensor.

Operators whose name ends in ``_`` and that have a functional form are lowered by that form; here are the others. Each
function gives the new elements of its first operand.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.frontends.aten import aliasing
from rewright.frontends.aten.context import Context, Operand, Table, Value
from rewright.frontends.aten.views import DiagonalStep, SliceStep, ViewStep
from rewright.ir.dims import Dim, Shape
from rewright.ops.reference import building as rb

WRITES = Table()
TABLE = Table()


@WRITES.register("aten.copy_.default")
def copy_(c: Context, x: Value, source: Value, *_: object) -> int:
    return rb.broadcast(c.b, rb.convert(c.b, source.position, x.dtype), x.shape)


@WRITES.register("aten.zero_.default")
def zero_(c: Context, x: Value) -> int:
    return rb.splat_like(c.b, 0, x.position)


@WRITES.register("aten.fill_.Scalar", "aten.fill_.Tensor")
def fill_(c: Context, x: Value, value: Operand) -> int:
    return rb.broadcast(c.b, c.position(value, x.dtype), x.shape)


@WRITES.register("aten.fill_diagonal_.default")
def fill_diagonal_(c: Context, x: Value, value: Operand, *_: object) -> int:
    rows, columns = rb.iota(c.b, x.shape, 0), rb.iota(c.b, x.shape, 1)
    return rb.select(c.b, rb.compare(c.b, "EQ", rows, columns), c.position(value, x.dtype), x.position)


@TABLE.register("aten.copy.default")
def copy(c: Context, x: Value, source: Value, *_: object) -> int:
    return copy_(c, x, source)


def _write(c: Context, x: Value, steps: Sequence[ViewStep], source: Value) -> int:
    """``x`` with the view at the end of ``steps`` replaced."""
    bases = [x.position]
    for step in steps:
        bases.append(step.read(c.b, bases[-1]))
    value = rb.broadcast(c.b, rb.convert(c.b, source.position, x.dtype), c.b.type(bases[-1]).shape)
    for step, base in zip(reversed(steps), reversed(bases[:-1]), strict=True):
        value = step.write(c.b, base, value)
    return value


@TABLE.register("aten.slice_scatter.default")
def slice_scatter(
    c: Context, x: Value, source: Value, dim: int = 0, start: Dim | None = None, end: Dim | None = None, step: int = 1
) -> int:
    return _write(c, x, aliasing.slice_(c, x, dim, start, end, step), source)


@TABLE.register("aten.select_scatter.default")
def select_scatter(c: Context, x: Value, source: Value, dim: int, index: Dim) -> int:
    return _write(c, x, aliasing.select(c, x, dim, index), source)


@TABLE.register("aten.as_strided_scatter.default")
def as_strided_scatter(
    c: Context,
    x: Value,
    source: Value,
    size: Sequence[Dim],
    stride: Sequence[Dim],
    storage_offset: Dim | None = None,
) -> int:
    return _write(c, x, aliasing.as_strided(c, x, size, stride, storage_offset), source)


def _into_zeros(c: Context, gradient: Value, shape: Shape, axis: int, low: Dim, high: Dim, step: int) -> int:
    if (low, high, step) == (0, shape[axis], 1):
        return gradient.position
    zeros = rb.splat(c.b, 0, shape, gradient.dtype)
    return SliceStep(axis, low, high, step).write(c.b, zeros, gradient.position)


@TABLE.register("aten.slice_backward.default")
def slice_backward(
    c: Context, gradient: Value, input_sizes: Sequence[Dim], dim: int, start: Dim, end: Dim, step: int
) -> int:
    shape = tuple(input_sizes)
    axis = dim % len(shape)
    low, high = aliasing.slice_bounds(shape[axis], start, end)
    return _into_zeros(c, gradient, shape, axis, low, high, step)


@TABLE.register("aten.diagonal_scatter.default")
def diagonal_scatter(c: Context, x: Value, source: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> int:
    return _write(c, x, aliasing.diagonal(c, x, offset, dim1, dim2), source)


@TABLE.register("aten.diagonal_backward.default")
def diagonal_backward(
    c: Context, gradient: Value, input_sizes: Sequence[Dim], offset: int, dim1: int, dim2: int
) -> int:
    shape = tuple(input_sizes)
    first, second = dim1 % len(shape), dim2 % len(shape)
    if offset or shape[first] != shape[second]:
        zeros = rb.splat(c.b, 0, shape, gradient.dtype)
        return DiagonalStep(first, second, offset).write(c.b, zeros, gradient.position)
    others = [axis for axis in range(len(shape)) if axis not in (first, second)]
    held = (*others, first)
    order = sorted(range(len(held)), key=lambda axis: held[axis])
    moved = c.b.add(ops.Transpose(tuple(order)), gradient.position)
    spread = c.b.add(ops.BroadcastInDim(shape, tuple(sorted(held))), moved)
    there = rb.compare(c.b, "EQ", rb.iota(c.b, shape, first), rb.iota(c.b, shape, second))
    return rb.select(c.b, there, spread, rb.splat_like(c.b, 0, spread))


@TABLE.register("aten.select_backward.default")
def select_backward(c: Context, gradient: Value, input_sizes: Sequence[Dim], dim: int, index: Dim) -> int:
    shape = tuple(input_sizes)
    axis = dim % len(shape)
    low = shape[axis] + index if isinstance(index, int) and index < 0 else index
    kept = Value(rb.insert_ones(c.b, gradient.position, [axis]), gradient.type)
    return _into_zeros(c, kept, shape, axis, low, low + 1, 1)
