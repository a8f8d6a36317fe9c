"""Reading and writing at indices from data: tables, rows and points."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType
from rewright.ops.reference import building as rb
from rewright.ops.scatter import ScatterKind


def take(b: GraphBuilder, table: int, index: int, axis: int) -> int:
    """``table`` with one axis replaced by the axes of ``index``: slice ``index[i]`` at i."""
    shape, rows = b.type(table).shape, b.type(index).rank
    offsets = (*range(axis), *range(axis + rows, len(shape) - 1 + rows))
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    if nothing := _nothing(b, (*shape[:axis], *b.type(index).shape, *shape[axis + 1 :]), table):
        return nothing
    return b.add(ops.Gather(offsets, (axis,), (), (), (axis,), rows, sizes), table, index)


def _nothing(b: GraphBuilder, shape: Shape, x: int) -> int | None:
    """A tensor without elements, which may be read of an axis that has none; None for other shapes."""
    return rb.splat(b, 0, shape, b.type(x).dtype) if 0 in shape else None


def add_rows(b: GraphBuilder, rows: Dim, index: int, updates: int) -> int:
    """A table of zeros (rows, ..) with row ``updates[i]`` added at ``index[i]``: the gradient of ``take``."""
    count = b.type(index).rank
    kind = b.type(updates)
    shape: Shape = (rows, *kind.shape[count:])
    zeros = rb.splat(b, 0, shape, kind.dtype)
    window = tuple(range(count, kind.rank))
    return b.add(ops.Scatter("sum", window, (0,), (), (), (0,), count), zeros, index, updates)


def pick(b: GraphBuilder, x: int, index: int, axis: int) -> int:
    """One element along ``axis`` for every other position; ``index`` and the result lack that axis."""
    found = gather_along(b, x, rb.insert_ones(b, index, [axis]), axis)
    return rb.reshape(b, found, b.type(index).shape)


def gather_along(b: GraphBuilder, x: int, index: int, axis: int) -> int:
    """``result[i, j, k] = x[i, index[i, j, k], k]`` for axis 1; ``index`` may be shorter along the other axes."""
    shape, wanted = b.type(x).shape, b.type(index).shape
    if nothing := _nothing(b, wanted, x):
        return nothing
    if not shape:
        return rb.reshape(b, rb.broadcast(b, x, (1,) * len(wanted)), wanted)
    for other in range(len(shape)):
        if other != axis:
            x = rb.slice_axis(b, x, other, 0, wanted[other])
    others = tuple(i for i in range(len(shape)) if i != axis)
    op = ops.Gather((), (axis,), others, others, (axis,), len(shape), (1,) * len(shape))
    return b.add(op, x, index)


def scatter_along(b: GraphBuilder, x: int, index: int, updates: int, axis: int, kind: ScatterKind) -> int:
    """``x[i, index[i, j, k], k]`` combined with ``updates[i, j, k]`` for axis 1."""
    shape, given = b.type(x).shape, b.type(index).shape
    if 0 in given:
        return x
    if not shape:
        one = [rb.reshape(b, part, (1,)) for part in (x, index, updates)]
        return rb.reshape(b, scatter_along(b, one[0], one[1], one[2], 0, kind), ())
    for position, size in enumerate(b.type(updates).shape):
        if size != given[position]:
            updates = rb.slice_axis(b, updates, position, 0, given[position])
    others = tuple(i for i in range(len(shape)) if i != axis)
    if given[axis] == 1 and kind in ("replace", "sum") and all(shape[i] == given[i] for i in others):
        return _write_one(b, x, index, updates, axis, kind)
    if all(shape[i] == given[i] for i in others):
        op = ops.Scatter(kind, (), (axis,), others, others, (axis,), len(shape))
        return b.add(op, x, index, updates)
    columns = [index if i == axis else rb.iota(b, given, i, b.type(index).dtype) for i in range(len(shape))]
    every = tuple(range(len(shape)))
    return b.add(ops.Scatter(kind, (), every, (), (), every, len(given)), x, stack_last(b, columns), updates)


def _write_one(b: GraphBuilder, x: int, index: int, updates: int, axis: int, kind: ScatterKind) -> int:
    """One write per row, as a comparison of the row's positions with the index."""
    shape = b.type(x).shape
    ramp = rb.iota(b, shape, axis, b.type(index).dtype)
    here = rb.compare(b, "EQ", ramp, index)
    if kind == "replace":
        return rb.select(b, here, updates, x)
    return rb.add(b, x, rb.select(b, here, updates, rb.splat_like(b, 0, x)))


def stack_last(b: GraphBuilder, columns: Sequence[int]) -> int:
    """Tensors of one shape joined along a new last axis."""
    last = b.type(columns[0]).rank
    return rb.concatenate(b, [rb.insert_ones(b, column, [last]) for column in columns], last)


def gather_points(b: GraphBuilder, x: int, axes: Sequence[int], columns: Sequence[int]) -> int:
    """Slices of ``x`` at points along some axes: axes of the index tensors first, then the axes kept."""
    shape = b.type(x).shape
    points = b.type(columns[0]).rank
    index = columns[0] if len(columns) == 1 else stack_last(b, columns)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    sizes = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    offsets = tuple(range(points, points + len(kept)))
    if nothing := _nothing(b, (*b.type(columns[0]).shape, *(shape[axis] for axis in kept)), x):
        return nothing
    return b.add(ops.Gather(offsets, tuple(sorted(axes)), (), (), tuple(axes), points, sizes), x, index)


def scatter_points(
    b: GraphBuilder, x: int, axes: Sequence[int], columns: Sequence[int], updates: int, kind: ScatterKind
) -> int:
    """The inverse write of ``gather_points``: ``updates`` has the axes of the index tensors first."""
    shape = b.type(x).shape
    points = b.type(columns[0]).rank
    index = columns[0] if len(columns) == 1 else stack_last(b, columns)
    window = tuple(range(points, points + len(shape) - len(axes)))
    if 0 in b.type(updates).shape:
        return x
    return b.add(ops.Scatter(kind, window, tuple(sorted(axes)), (), (), tuple(axes), points), x, index, updates)


def wrap_index(b: GraphBuilder, index: int, size: Dim) -> int:
    """Indices counted from the end where they are negative, as Python does; unchanged where they cannot be."""
    if is_nonnegative(b, index):
        return index
    below = rb.compare(b, "LT", index, rb.splat_like(b, 0, index))
    extent = rb.count(b, rb.splat(b, 1, (size,), b.type(index).dtype), [0])
    return rb.select(b, below, rb.add(b, index, extent), index)


def is_nonnegative(b: GraphBuilder, position: int, depth: int = 8, trusted: set[str] | None = None) -> bool:
    """Whether an integer tensor is known to have no negative element.

    With ``trusted`` that is assumed of inputs of the program, whose labels are added to it.
    """
    node = b.node(position)
    op = node.op
    if isinstance(op, ops.Input) and trusted is not None:
        trusted.add(op.label)
        return True
    if isinstance(op, ops.Constant):
        return all(value >= 0 for value in op.values)
    if isinstance(op, (ops.Iota, ops.TopK, ops.Sort)):
        return isinstance(op, ops.Iota) or op.result == "indices"
    if isinstance(op, ops.Convert):
        return b.type(node.operands[0]).dtype is DType.BOOL or is_nonnegative(b, node.operands[0], depth - 1, trusted)
    if depth == 0 or not isinstance(op, _KEEP_SIGN):
        return False
    if isinstance(op, ops.Select):
        condition, on_true, on_false = node.operands
        guarded = _holds_unless(b, condition, on_false) or is_nonnegative(b, on_false, depth - 1, trusted)
        return guarded and is_nonnegative(b, on_true, depth - 1, trusted)
    parts = node.operands[: 1 if isinstance(op, ops.Gather) else None]
    return all(is_nonnegative(b, part, depth - 1, trusted) for part in parts)


def _holds_unless(b: GraphBuilder, condition: int, position: int) -> bool:
    """Whether ``t - c`` (or ``t``) is not negative where a condition fails, because it says ``t < c`` (or ``t < 0``).

    This is how the ranks of a split vocabulary make their local indices.
    """
    node, test = b.node(position), b.node(condition)
    if isinstance(test.op, ops.Or):
        return any(_holds_unless(b, part, position) for part in test.operands)
    if test.op != ops.Compare("LT"):
        return False
    bound = ops.splat(b.node(test.operands[1]).op)
    if test.operands[0] == position:
        return bound is not None and bound >= 0
    if not isinstance(node.op, ops.Subtract):
        return False
    amount = ops.splat(b.node(node.operands[1]).op)
    return node.operands[0] == test.operands[0] and amount is not None and bound is not None and amount <= bound


_KEEP_SIGN = (
    ops.Reshape,
    ops.BroadcastInDim,
    ops.Transpose,
    ops.Slice,
    ops.Concatenate,
    ops.Gather,
    ops.Select,
    ops.Add,
    ops.Multiply,
    ops.Maximum,
    ops.ReduceWindow,
)
