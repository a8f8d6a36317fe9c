"""Padding: a tensor with filling around its axes, or between the elements of an axis, as pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.operator import Operator
from rewright.lifting.moves.layout import broadcast, concatenate, merge, slice_axis, split_axis
from rewright.lifting.terms.value import NotAView, Value

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra


def _pad(algebra: Algebra, op: ops.Pad, values: Sequence[Value], *_: object) -> Value:
    """StableHLO's pad of a value with a scalar; raises NotAView for amounts without a law."""
    value, filling = values
    for axis, (low, high, inner) in enumerate(zip(op.low, op.high, op.interior, strict=True)):
        if not isinstance(low, int) or not isinstance(high, int):
            raise NotAView("symbolic padding")
        value = _spread(value, axis, inner, low, high, filling) if inner else _frame(value, axis, low, high, filling)
    return value


def _frame(value: Value, axis: int, low: int, high: int, filling: Value) -> Value:
    """An axis with filling before and behind it; a negative amount cuts."""
    size = value.shape[axis]
    start, stop = max(0, -low), size - max(0, -high)
    if isinstance(stop, int) and isinstance(size, int) and stop < start:
        # One end is cut beyond the other: nothing of the operand is left, and filling everywhere.
        start = stop = min(start, size)
        low, high = size + low + high, 0
    value = slice_axis(value, axis, start, stop)
    around = [_fill(filling, value.shape, axis, max(0, n)) for n in (low, high)]
    return concatenate([around[0], value, around[1]], axis)


def _spread(value: Value, axis: int, inner: Dim, low: int, high: int, filling: Value) -> Value:
    """An axis with filling between its elements too: rows of one element each, and what stands around it."""
    size = value.shape[axis]
    if not isinstance(inner, int) or not isinstance(size, int) or 0 in value.shape or low < 0 or high < 0:
        raise NotAView("interior padding of symbolic or negative amounts, or of nothing")
    if low + high == inner:
        return _rows_of_one(value, axis, low, high, filling)
    first = _rows_of_one(slice_axis(value, axis, 0, size - 1), axis, 0, inner, filling)
    around = [_fill(filling, value.shape, axis, n) for n in (low, high)]
    return concatenate([around[0], first, slice_axis(value, axis, size - 1, size), around[1]], axis)


def _rows_of_one(value: Value, axis: int, before: int, behind: int, filling: Value) -> Value:
    """Every element of an axis with filling before and behind it."""
    shape = value.shape
    rows = split_axis(value, axis, shape[axis], 1)
    around = [_fill(filling, rows.shape, axis + 1, n) for n in (before, behind)]
    return merge(concatenate([around[0], rows, around[1]], axis + 1), axis)


def _fill(filling: Value, shape: Shape, axis: int, count: int) -> Value:
    """Filling in a shape, so many along an axis."""
    return broadcast(filling, (*shape[:axis], count, *shape[axis + 1 :]), ())


LAWS: Mapping[type[Operator], Callable[..., Value]] = {ops.Pad: _pad}
