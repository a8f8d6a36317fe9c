"""Collectives as operations on the values of all members of a group."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.claims.language import View
from rewright.ir.dims import divide
from rewright.ir.operator import Operator
from rewright.ir.types import DType
from rewright.lifting.arithmetic.reduction import among_numbers, combine
from rewright.lifting.moves.layout import concatenate, reshape, slice_axis, tidy
from rewright.lifting.recognition.equal_steps import of_sequential
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.value import NotAView, Value
from rewright.ops.agreement import in_equal_parts


def meet(
    algebra: Algebra, operators: Sequence[Operator], values: Sequence[Value], dtype: DType
) -> tuple[list[Value], Value | None]:
    """What every member of a group holds after a collective, in group order, and what they hold chunks of, if so."""
    op = operators[0]
    count = len(values)
    if isinstance(op, ops.AllReduce):
        return [combined(algebra, among_numbers(op.kind, dtype), values)] * count, None
    if isinstance(op, ops.AllGather):
        return [concatenate(values, op.dimension)] * count, None
    if isinstance(op, ops.ReduceScatter):
        total = combined(algebra, among_numbers(op.kind, dtype), values)
        return [chunk(total, op.dimension, count, k) for k in range(count)], total
    if isinstance(op, ops.AllToAll):
        return _all_to_all(op, operators, values), _exchanged(op, operators, values)
    raise NotAView(f"{op.name} has no value for the engine")


def combined(algebra: Algebra, kind: str, values: Sequence[Value]) -> Value:
    """What a reduction over a group gives, as a sum of the sequential program where it is one."""
    total = combine(algebra, kind, values)
    return of_sequential(algebra, total) if kind == "sum" else total


def _exchanged(op: ops.AllToAll, operators: Sequence[Operator], values: Sequence[Value]) -> Value | None:
    """What all members hold after an exchange in equal parts, one after the other along the axis that is split.

    None where that has more parts than members: then it says no more than what each of them holds.
    """
    shape, axis, count = values[0].shape, op.split_dimension, len(values)
    size = divide(shape[axis], count)
    if size is None or not all(map(in_equal_parts, operators)):
        return None
    if any(value.shape != shape for value in values):
        return None
    try:
        if axis != op.concat_dimension:
            found = tidy(concatenate(values, op.concat_dimension))
        else:
            rows = (*shape[:axis], count, 1, size, *shape[axis + 1 :])
            joined = concatenate([reshape(value, rows) for value in values], axis + 1)
            found = tidy(reshape(joined, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])))
    except NotAView:
        return None
    return found if isinstance(found, View) or len(found.parts) <= count else None


def chunk(value: Value, axis: int, parts: int, position: int) -> Value:
    """One of equal slices along an axis."""
    size = divide(value.shape[axis], parts)
    if size is None:
        raise NotAView("uneven chunks")
    return slice_axis(value, axis, size * position, size * (position + 1))


def _all_to_all(op: ops.AllToAll, operators: Sequence[Operator], values: Sequence[Value]) -> list[Value]:
    count = len(values)
    results: list[Value] = []
    for receiver in range(count):
        arrived: list[Value] = []
        for sender, value in enumerate(values):
            own = operators[sender]
            assert isinstance(own, ops.AllToAll)
            if own.send_splits is None:
                arrived.append(chunk(value, op.split_dimension, count, receiver))
                continue
            start, length = sum(own.send_splits[:receiver], start=0), own.send_splits[receiver]
            if length == value.shape[op.split_dimension]:
                arrived.append(value)
            elif length:
                arrived.append(slice_axis(value, op.split_dimension, start, start + length))
        if not arrived:
            arrived.append(slice_axis(values[receiver], op.split_dimension, 0, 0))
        results.append(concatenate(arrived, op.concat_dimension))
    return results
