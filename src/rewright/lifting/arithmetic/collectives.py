"""Collectives as operations on the values of all members of a group."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.claims.language import View
from rewright.ir.dims import divide
from rewright.ir.operator import Operator, Unsupported
from rewright.ir.types import DType
from rewright.lifting.arithmetic.reduction import among_numbers, combine
from rewright.lifting.moves.layout import concatenate, reshape, slice_axis, tidy
from rewright.lifting.recognition.equal_steps import of_sequential
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.value import NotAView, Value
from rewright.ops.agreement import in_equal_parts
from rewright.ops.collectives import Piece


def meet(
    algebra: Algebra, operators: Sequence[Operator], values: Sequence[Value], dtype: DType, ranks: Sequence[int]
) -> tuple[list[Value], Value | None]:
    """What every member of a group holds after a collective, in group order, and what they hold chunks of, if so."""
    op = operators[0]
    assert isinstance(op, ops.Collective)
    shapes = [value.shape for value in values]
    results: list[Value] = []
    total: Value | None = None
    for member in range(1 if op.is_shared else len(values)):
        got = op.received(operators, shapes, ranks, member)
        if isinstance(got, Unsupported):
            raise NotAView(got.why)
        if got.reduction is not None and total is None:
            total = combined(algebra, among_numbers(got.reduction, dtype), values)
        sources = values if total is None else [total]
        parts = [_piece(piece, sources, got.cut) for piece in got.pieces]
        if not parts:
            results.append(algebra.zero(tuple((n,) for n in shapes[member])))
        else:
            results.append(parts[0] if got.joined is None else concatenate(parts, got.joined))
    if op.is_shared:
        return results * len(values), None
    return results, _exchange(op, operators, values) if isinstance(op, ops.AllToAll) else total


def _piece(piece: Piece, sources: Sequence[Value], axis: int | None) -> Value:
    value = sources[piece.member]
    if axis is None or piece.length is None or piece.length == value.shape[axis]:
        return value
    return slice_axis(value, axis, piece.start, piece.start + piece.length)


def combined(algebra: Algebra, kind: str, values: Sequence[Value]) -> Value:
    """What a reduction over a group gives, as a sum of the sequential program where it is one."""
    total = combine(algebra, kind, values)
    return of_sequential(algebra, total) if kind == "sum" else total


def _exchange(op: ops.AllToAll, operators: Sequence[Operator], values: Sequence[Value]) -> Value | None:
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
