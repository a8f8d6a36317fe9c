"""Constants that repeat themselves, by one period along each axis."""

from __future__ import annotations

import numpy as np

from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.functions.numerics import Array
from rewright.ops.reference import building as rb


def periodic_table(builder: GraphBuilder, values: Array, dtype: DType) -> int:
    """A constant as repetitions of its least period along each axis, of which proofs can tell the places apart.

    The numbers are in one row, so that tables of other shapes are the same one.
    """
    periods = [_period(values, axis) for axis in range(values.ndim)]
    part = values[tuple(slice(period) for period in periods)]
    kept = [axis for axis, period in enumerate(periods) if period != 1]
    numbers = [part.dtype.type(x).item() for x in part.reshape(-1)]
    row = builder.add(ops.Constant(TensorType((len(numbers),), dtype), tuple(numbers)))
    small = rb.reshape(builder, row, [periods[axis] for axis in kept])
    spread, places = list[int](), list[int]()
    for axis, (size, period) in enumerate(zip(values.shape, periods, strict=True)):
        spread += [size] if period in (1, size) else [size // period, period]
        places += [len(spread) - 1] if axis in kept else []
    if tuple(periods) != values.shape:
        small = builder.add(ops.BroadcastInDim(tuple(spread), tuple(places)), small)
    return rb.reshape(builder, small, values.shape)


def _period(values: Array, axis: int) -> int:
    """The least number of places after which values repeat themselves along an axis, which divides its size."""
    size = values.shape[axis]
    for period in range(1, size):
        if size % period == 0 and np.array_equal(
            values.take(range(period, size), axis), values.take(range(size - period), axis)
        ):
            return period
    return size
