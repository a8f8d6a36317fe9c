"""Gathers and scatters of values in pieces: piece by piece where that is possible, else of pieces as one term."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from rewright import ops
from rewright.claims.language import View
from rewright.ir.dims import Shape
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.lifting.arithmetic.distributed_argmax import first_of_all
from rewright.lifting.arithmetic.products import multiply
from rewright.lifting.arithmetic.reduction import combine
from rewright.lifting.masks.truths import integer_test
from rewright.lifting.moves.indexing import components, gather, scatter_sum, stay_in_range
from rewright.lifting.moves.layout import assemble, broadcast, lengthwise, slice_axis, slice_rows, tidy
from rewright.lifting.moves.opaque import as_view, unknown
from rewright.lifting.recognition.quotients import place
from rewright.lifting.recognition.unit_axes import recognise
from rewright.lifting.terms import regions
from rewright.lifting.terms.algebra import Algebra, align
from rewright.lifting.terms.store import ONE
from rewright.lifting.terms.value import Pieces, Value, variables_of


def _gather(
    algebra: Algebra, op: ops.Gather, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    return _looked_up(algebra, op, values[0], values[1], result.shape)


def _looked_up(algebra: Algebra, op: ops.Gather, data: Value, indices: Value, result: Shape) -> Value:
    if isinstance(data, Pieces) and isinstance(indices, View):
        rows = _rows_in_order(algebra, op, data, indices, result)
        if rows is not None:
            return rows
        found = first_of_all(algebra, op, data, indices, partial(_apply, algebra))
        if found is not None:
            return found
        found = _beside_zeros(algebra, op, data, indices, result)
        if found is not None:
            return found
    if isinstance(indices, Pieces) or isinstance(data, Pieces):
        return _gather_pieces(algebra, op, data, indices, result)
    return recognise(algebra, lambda views: gather(algebra, op, views[0], views[1], result), [data, indices])


def _beside_zeros(algebra: Algebra, op: ops.Gather, data: Pieces, indices: View, result: Shape) -> Value | None:
    """A look-up in a table with rows of zeros, as that for padding: one in the other rows where the index is theirs."""
    if data.outer != 1 or op.start_index_map != (data.axis,) or data.axis not in op.collapsed_slice_dims:
        return None
    parts = list(lengthwise(data))
    kept = [(part, start, length) for part, start, length in parts if not _is_zero(algebra, part)]
    if len(kept) == len(parts):
        return None
    index = components(indices, op.index_vector_dim, 1)
    stay_in_range(algebra, op, index, data.shape)
    axes = [a for a in range(len(result)) if a not in op.offset_dims]
    found: list[Value] = [algebra.zero(tuple((n,) for n in result))]
    for part, start, length in kept:
        if not isinstance(part, View) or not isinstance(start, int) or not isinstance(length, int):
            return None
        mask = broadcast(integer_test(algebra, index[0], regions.intervals(start, start + length)), result, axes)
        own = algebra.add([indices, algebra.constant(indices.dims, Fraction(-start))], [ONE, ONE])
        read = gather(algebra, op, part, own, result, is_masked=True)
        assert isinstance(mask, View)
        found.append(multiply(algebra, *align([mask, read])))
    return combine(algebra, "sum", found)


def _is_zero(algebra: Algebra, value: Value) -> bool:
    return isinstance(value, View) and algebra.as_constant(value) == 0


def _rows_in_order(algebra: Algebra, op: ops.Gather, data: Pieces, indices: View, result: Shape) -> Value | None:
    """A table in pieces that is looked up at places one after the other is a part of the table; None where it is not.

    So are the places of a sequence that was put in another order, of which each rank takes its part.
    """
    is_table = len(data.shape) == 1 and op.start_index_map == (0,) and op.index_vector_dim == len(indices.dims)
    whole = place(algebra, indices) if is_table else None
    if whole is None or len(whole[1]) != 1 or whole[1][0][1] != 1:
        return None
    low, ((variable, _),) = whole
    axis = next((k for k, names in enumerate(variables_of(indices.dims)) if names == [variable]), None)
    if axis is None:
        return None
    length, size = indices.shape[axis], data.shape[0]
    if not isinstance(low, int) or not isinstance(length, int) or not isinstance(size, int):
        return None
    if not 0 <= low <= size - length:
        return None
    return broadcast(slice_axis(data, 0, low, low + length), result, [axis])


def _apply(algebra: Algebra, op: Operator, value: Value, kind: TensorType, result: TensorType) -> Value:
    """The value of an operator of one operand that has no law."""
    return tidy(unknown(algebra, op, [as_view(algebra, value)], [kind], result))


def _gather_pieces(algebra: Algebra, op: ops.Gather, data: Value, indices: Value, result: Shape) -> Value:
    """Gather piece by piece along an axis of the indices or one that is read whole, else from pieces as one term."""
    if not isinstance(indices, Pieces) or indices.axis == op.index_vector_dim:
        if isinstance(data, Pieces) and _is_read_whole(op, data.shape, data.axis):
            return _gather_from_pieces(algebra, op, data, indices, result)
        if isinstance(data, Pieces) and isinstance(indices, View) and data.axis in op.operand_batching_dims:
            return _gather_alongside(algebra, op, data, indices, result)
        return gather(algebra, op, as_view(algebra, data), as_view(algebra, indices), result)
    axes = [a for a in range(len(indices.shape)) if a != op.index_vector_dim]
    out = [a for a in range(len(result)) if a not in op.offset_dims][axes.index(indices.axis)]
    parts: list[Value] = []
    for part, start, length in lengthwise(indices):
        rows = data
        if indices.axis in op.start_indices_batching_dims:
            axis = op.operand_batching_dims[op.start_indices_batching_dims.index(indices.axis)]
            rows = slice_rows(data, indices, axis, start, start + length)
        shape = (*result[:out], part.shape[indices.axis], *result[out + 1 :])
        parts.append(_looked_up(algebra, op, rows, part, shape))
    return assemble(parts, out, indices.outer)


def _is_read_whole(op: ops.Gather, shape: Shape, axis: int) -> bool:
    """Whether every window of a gather holds all of an axis of the data."""
    looked_up = (*op.start_index_map, *op.collapsed_slice_dims, *op.operand_batching_dims)
    return axis not in looked_up and op.slice_sizes[axis] == shape[axis]


def _gather_from_pieces(algebra: Algebra, op: ops.Gather, data: Pieces, indices: Value, result: Shape) -> Value:
    """The same elements of every piece, in pieces along the axis of the result that holds theirs."""
    windows = [a for a in range(len(data.shape)) if a not in (*op.collapsed_slice_dims, *op.operand_batching_dims)]
    out = op.offset_dims[windows.index(data.axis)]
    parts: list[Value] = []
    for part in data.parts:
        length = part.shape[data.axis]
        sizes = (*op.slice_sizes[: data.axis], length, *op.slice_sizes[data.axis + 1 :])
        shape = (*result[:out], length, *result[out + 1 :])
        one = replace(op, slice_sizes=sizes)
        parts.append(_looked_up(algebra, one, part, indices, shape))
    return assemble(parts, out, data.outer)


def _gather_alongside(algebra: Algebra, op: ops.Gather, data: Pieces, indices: View, result: Shape) -> Value:
    """A look-up in every piece by the indices for it, where data and indices share the axis of the pieces."""
    axis = op.start_indices_batching_dims[op.operand_batching_dims.index(data.axis)]
    axes = [a for a in range(len(indices.shape)) if a != op.index_vector_dim]
    out = [a for a in range(len(result)) if a not in op.offset_dims][axes.index(axis)]
    parts: list[Value] = []
    for part, start, length in lengthwise(data):
        rows = slice_rows(indices, data, axis, start, start + length)
        shape = (*result[:out], part.shape[data.axis], *result[out + 1 :])
        parts.append(_looked_up(algebra, op, part, rows, shape))
    return assemble(parts, out, data.outer)


def scatter(algebra: Algebra, op: ops.Scatter, values: Sequence[Value]) -> Value:
    """Updates that are added to a tensor."""
    base, indices, updates = values
    return combine(algebra, "sum", [base, _scatter_sum(algebra, op, indices, updates, base.shape)])


def _scatter_sum(algebra: Algebra, op: ops.Scatter, indices: Value, updates: Value, shape: Shape) -> Value:
    """Scatter into zeros, piece by piece where the indices or the updates are in pieces along a scattered axis."""
    if isinstance(indices, View) and isinstance(updates, View):
        return scatter_sum(algebra, op, shape, indices, updates)
    rows = [a for a in range(len(indices.shape)) if a != op.index_vector_dim]
    columns = [a for a in range(len(updates.shape)) if a not in op.update_window_dims]
    pieces = indices if isinstance(indices, Pieces) else updates
    assert isinstance(pieces, Pieces)
    own = rows if pieces is indices else columns
    if pieces is updates and pieces.axis in op.update_window_dims:
        return _scatter_windows(algebra, op, indices, pieces, shape)
    if pieces.axis not in own:
        return scatter_sum(algebra, op, shape, as_view(algebra, indices), as_view(algebra, updates))
    number = own.index(pieces.axis)
    batch = op.scatter_indices_batching_dims
    axis = op.input_batching_dims[batch.index(rows[number])] if rows[number] in batch else None
    results: list[Value] = []
    for part, start, length in lengthwise(pieces):
        if pieces is indices:
            pair = part, slice_rows(updates, pieces, columns[number], start, start + length)
        else:
            pair = slice_rows(indices, pieces, rows[number], start, start + length), part
        own_shape = shape if axis is None else (*shape[:axis], part.shape[pieces.axis], *shape[axis + 1 :])
        results.append(_scatter_sum(algebra, op, *pair, own_shape))
    return combine(algebra, "sum", results) if axis is None else assemble(results, axis, pieces.outer)


def _scatter_windows(algebra: Algebra, op: ops.Scatter, indices: Value, updates: Pieces, shape: Shape) -> Value:
    """Windows in pieces, each in its part of an axis that they cover."""
    axis = op.window_axes(len(shape))[op.update_window_dims.index(updates.axis)]
    if updates.shape[updates.axis] != shape[axis] or axis in op.scatter_dims_to_operand_dims:
        return scatter_sum(algebra, op, shape, as_view(algebra, indices), as_view(algebra, updates))
    results: list[Value] = []
    for part in updates.parts:
        own = (*shape[:axis], part.shape[updates.axis], *shape[axis + 1 :])
        results.append(_scatter_sum(algebra, op, indices, part, own))
    return assemble(results, axis, updates.outer)


LAWS: Mapping[type[Operator], Callable[..., Value]] = {ops.Gather: _gather}
