"""A write by index without an index: one write as a choice, writes at rows that are numbers as parts of both."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.dims import product
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType
from rewright.ops.reference import building as rb

MOST_PARTS = 64
"""Rows that are written in more runs stay a write by index."""


def as_choice(
    b: GraphBuilder, op: ops.Scatter, x: int, indices: int, updates: int, counted: Sequence[tuple[int, int]] = ()
) -> int | None:
    """One write in every row as a choice: the update where a place is the one that the index names.

    ``counted`` has the components of the index that count index vectors along an axis, with the number of that axis
    among those of the vectors: ``x[arange(n), i] = y``. None where several writes may meet, and for windows that
    cover a part of an axis.
    """
    shape = b.type(x).shape
    axes = _axes(b, op, x, updates)
    if axes is None:
        return None
    for number, vectors in counted:
        own, axis = op.batch_axes(len(axes))[vectors], op.scatter_dims_to_operand_dims[number]
        if axes[own] is None and b.type(updates).shape[own] == shape[axis] and axis not in axes.values():
            axes[own] = axis
    if product(b.type(updates).shape[a] for a in axes if axes[a] is None) != 1:
        return None
    here: int | None = None
    for number, axis in enumerate(op.scatter_dims_to_operand_dims):
        if axis in axes.values():
            continue
        index = _spread(b, op, _component(b, op, rb.convert(b, indices, DType.I64), number), axes, x)
        test = rb.compare(b, "EQ", rb.iota(b, shape, axis), index)
        here = test if here is None else b.add(ops.And(), here, test)
    kept = {axis: target for axis, target in axes.items() if target is not None}
    given = b.add(ops.Reshape(tuple(b.type(updates).shape[a] for a in kept)), updates)
    update = _broadcast(b, given, list(kept.values()), x)
    return update if here is None else rb.select(b, here, update, x)


def as_parts(b: GraphBuilder, op: ops.Scatter, x: int, updates: int, rows: Sequence[int]) -> int | None:
    """Writes at numbers along one axis as parts of what was and of what is written, one after the other.

    ``rows`` has the place of every update. A row that is written twice keeps the last one; one that the axis has not
    is skipped. None where the updates have other axes that are no window.
    """
    axes, shape = _axes(b, op, x, updates), b.type(x).shape
    written = [] if axes is None else [a for a, target in axes.items() if target is None]
    if axes is None or len(written) > 1 or len(op.scatter_dims_to_operand_dims) != 1:
        return None
    (axis,) = op.scatter_dims_to_operand_dims
    size = shape[axis]
    if not isinstance(size, int) or product(b.type(updates).shape[a] for a in written) != len(rows):
        return None
    order = sorted(axes, key=lambda a: axis if axes[a] is None else axes[a] or 0)
    moved = rb.insert_ones(b, rb.transpose(b, updates, order), [] if written else [axis])
    last = {row: number for number, row in enumerate(rows)}
    runs = _runs([(x, row) if last.get(row) is None else (moved, last[row]) for row in range(size)])
    if len(runs) > MOST_PARTS:
        return None
    return rb.concatenate(b, [rb.slice_axis(b, source, axis, a, z) for source, a, z in runs], axis)


def _runs(sources: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """What rows are read of, as a tensor with a first row and one past the last."""
    runs: list[tuple[int, int, int]] = []
    for source, row in sources:
        if runs and runs[-1][0] == source and runs[-1][2] == row:
            runs[-1] = (source, runs[-1][1], row + 1)
        else:
            runs.append((source, row, row + 1))
    return runs


def _axes(b: GraphBuilder, op: ops.Scatter, x: int, updates: int) -> dict[int, int | None] | None:
    """For every axis of the updates the axis of the input whose place it has, or None where an index says it.

    None for windows that move along an axis or cover a part of one.
    """
    shape, given = b.type(x).shape, b.type(updates).shape
    windows = op.window_axes(len(shape))
    found: dict[int, int | None] = dict(zip(op.update_window_dims, windows, strict=True))
    if any(given[a] != shape[target] for a, target in zip(op.update_window_dims, windows, strict=True)):
        return None
    if any(axis in windows for axis in op.scatter_dims_to_operand_dims):
        return None
    batch = op.batch_axes(len(given))
    for axis, other in zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True):
        found[batch[other - (op.index_vector_dim < other)]] = axis
    return {axis: found.get(axis) for axis in range(len(given))}


def _component(b: GraphBuilder, op: ops.Scatter, indices: int, number: int) -> int:
    """The index along one axis, for every index vector."""
    kind = b.type(indices)
    if op.index_vector_dim == kind.rank:
        return indices
    one = rb.slice_axis(b, indices, op.index_vector_dim, number, number + 1)
    return rb.reshape(b, one, (*kind.shape[: op.index_vector_dim], *kind.shape[op.index_vector_dim + 1 :]))


def _spread(b: GraphBuilder, op: ops.Scatter, index: int, axes: dict[int, int | None], x: int) -> int:
    """An index with the axes of the input: those that it has not, it is the same along."""
    batch = [a for a in axes if a not in op.update_window_dims]
    kept = [(number, target) for number, a in enumerate(batch) if (target := axes[a]) is not None]
    own = rb.reshape(b, index, tuple(b.type(index).shape[number] for number, _ in kept))
    return _broadcast(b, own, [target for _, target in kept], x)


def _broadcast(b: GraphBuilder, source: int, targets: Sequence[int], x: int) -> int:
    order = sorted(range(len(targets)), key=lambda k: targets[k])
    moved = rb.transpose(b, source, order)
    return b.add(ops.BroadcastInDim(b.type(x).shape, tuple(sorted(targets))), moved)
