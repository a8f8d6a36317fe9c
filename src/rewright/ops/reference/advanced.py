"""NumPy's indexing with several integer tensors, for reading and for writing."""

from __future__ import annotations

from dataclasses import dataclass

from rewright import ops
from rewright.ir.dims import Shape
from rewright.ir.graph import GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.ops.reference import building as rb
from rewright.ops.reference import indexing
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.ops.scatter import ScatterKind


@dataclass(frozen=True, slots=True)
class Selection:
    """Index tensors by the axis they select on; they broadcast, and the other axes are kept whole."""

    columns: tuple[tuple[int, int], ...]

    @property
    def axes(self) -> list[int]:
        """The axes selected on."""
        return [axis for axis, _ in self.columns]

    def points(self, b: GraphBuilder) -> Shape:
        """The common shape of the index tensors."""
        return rb.broadcast_shapes(*(b.type(index).shape for _, index in self.columns))

    def place(self) -> int:
        """Where the axes of the index tensors go: in place of the axes selected on where these are neighbours."""
        axes = self.axes
        return axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0


def read(b: SimplifyingBuilder, x: int, selection: Selection) -> int:
    """``x[.., indices, ..]``."""
    points = selection.points(b)
    ramps = _ramps(b, selection, points, b.type(x).shape)
    if ramps is not None and selection.axes == list(range(b.type(x).rank)):
        return b.add(ops.BroadcastInDim(points, ramps), x)
    whole = _counted_through(b, selection, points, b.type(x).shape)
    if whole is not None:
        return rb.insert_ones(b, x, [selection.axes[0] + axis for axis in range(len(points)) if axis != whole])
    picked = _one_per_row(b, x, selection, points)
    if picked is not None:
        return picked
    columns = [rb.broadcast(b, index, points) for _, index in selection.columns]
    found = indexing.gather_points(b, x, selection.axes, columns)
    place, kept = selection.place(), b.type(x).rank - len(columns)
    order = [
        *range(len(points), len(points) + place),
        *range(len(points)),
        *range(len(points) + place, len(points) + kept),
    ]
    return rb.transpose(b, found, order)


def _counted_through(b: SimplifyingBuilder, selection: Selection, points: Shape, shape: Shape) -> int | None:
    """Along which axis of the points the only index tensor counts through its axis; the others have size one."""
    ramps = _ramps(b, selection, points, shape)
    if ramps is None or len(selection.columns) != 1:
        return None
    only = all(size == 1 for axis, size in enumerate(points) if axis != ramps[0])
    return ramps[0] if only else None


def _one_per_row(b: SimplifyingBuilder, x: int, selection: Selection, points: Shape) -> int | None:
    """``x[arange(n), index]`` and its like: all axes are counted through, one after the other, but one."""
    shape = b.type(x).shape
    if selection.axes != list(range(len(shape))) or len(points) != len(shape) - 1:
        return None
    alone = {axis: _ramps(b, Selection(((axis, index),)), points, shape) for axis, index in selection.columns}
    picking = [axis for axis, ramps in alone.items() if ramps is None]
    if len(picking) != 1:
        return None
    axis = picking[0]
    rest = Selection(tuple((k, index) for k, index in selection.columns if k != axis))
    if _ramps(b, rest, points, shape) != tuple(range(len(points))):
        return None
    return indexing.pick(b, x, rb.broadcast(b, selection.columns[axis][1], points), axis)


def _ramps(b: SimplifyingBuilder, selection: Selection, points: Shape, shape: Shape) -> tuple[int, ...] | None:
    """For index tensors that count through their axis: along which axis of the points each of them counts."""
    found: list[int] = []
    for axis, index in selection.columns:
        form, rank = b.affine(index), b.type(index).rank
        if form is None or form.constant:
            return None
        moving = [i for i, step in enumerate(form.coefficients) if step]
        if not moving and shape[axis] == 1:
            moving = [i for i, size in enumerate(b.type(index).shape) if size == 1][:1]
        offset = len(points) - rank
        if len(moving) != 1 or (form.coefficients[moving[0]] not in (0, 1)) or offset + moving[0] in found:
            return None
        if b.type(index).shape[moving[0]] != shape[axis]:
            return None
        found.append(offset + moving[0])
    return tuple(found)


def write(b: SimplifyingBuilder, x: int, selection: Selection, updates: int, kind: ScatterKind) -> int:
    """``x[.., indices, ..]`` combined with updates that broadcast to it."""
    kind_x, points = b.type(x), selection.points(b)
    place = selection.place()
    kept = [size for axis, size in enumerate(kind_x.shape) if axis not in selection.axes]
    full = (*kept[:place], *points, *kept[place:])
    updates = rb.broadcast(b, updates, full)
    if kind in ("replace", "sum") and _counted_through(b, selection, points, kind_x.shape) is not None:
        written = rb.reshape(b, updates, kind_x.shape)
        return written if kind == "replace" else rb.add(b, x, written)
    rows = _row_write(b, x, selection, updates, kind)
    if rows is not None:
        return rows
    order = [*range(place, place + len(points)), *range(place), *range(place + len(points), len(full))]
    columns = [rb.broadcast(b, index, points) for _, index in selection.columns]
    return indexing.scatter_points(b, x, selection.axes, columns, rb.transpose(b, updates, order), kind)


def _row_write(b: SimplifyingBuilder, x: int, selection: Selection, updates: int, kind: ScatterKind) -> int | None:
    """One write per row, ``x[arange(n), index] = v``, as a comparison of the row's positions instead of a scatter."""
    kind_x = b.type(x)
    if kind not in ("replace", "sum") or selection.axes != [0, 1] or kind_x.rank != 2:
        return None
    (_, rows), (_, index) = selection.columns
    form = b.affine(rows)
    if b.type(rows).shape != kind_x.shape[:1] or b.type(index).shape != kind_x.shape[:1] or form is None:
        return None
    if form.constant or form.coefficients != (1,):
        return None
    value = b.uniform(x)
    if value is not None:
        return write_rows(b, kind_x, value, index, updates, kind)
    here = _choose(b, kind_x, index)
    if kind == "sum":
        return _changed(b, ops.Add(), x, here, updates)
    change = _change(b, x, index, updates)
    if change is not None:
        return _changed(b, change[0], x, here, change[1])
    return rb.select(b, here, rb.broadcast_along(b, updates, kind_x.shape, 0), x)


def write_rows(
    b: GraphBuilder, kind: TensorType, value: float | int | bool, index: int, updates: int, how: ScatterKind
) -> int:
    """(n, m) elements equal to ``value`` with ``updates[i]`` written or added at ``[i, index[i]]``."""
    here = _choose(b, kind, index)
    base = rb.splat(b, value, kind.shape, kind.dtype)
    spread = rb.broadcast_along(b, updates, kind.shape, 0)
    return b.add(ops.Select(), here, rb.add(b, spread, base) if how == "sum" else spread, base)


def _choose(b: GraphBuilder, kind: TensorType, index: int) -> int:
    """Whether an element of (n, m) is the one at ``[i, index[i]]``."""
    ramp = rb.iota(b, kind.shape, 1, b.type(index).dtype)
    return b.add(ops.Compare("EQ"), ramp, rb.broadcast_along(b, index, kind.shape, 0))


def _changed(b: SimplifyingBuilder, op: Operator, x: int, here: int, amounts: int) -> int:
    """The sum or difference of ``x`` and of ``amounts[i]`` in row i, where it is chosen."""
    spread = rb.broadcast_along(b, amounts, b.type(x).shape, 0)
    return b.add(op, x, rb.select(b, here, spread, rb.splat_like(b, 0, x)))


def _change(b: SimplifyingBuilder, x: int, index: int, updates: int) -> tuple[Operator, int] | None:
    """For ``x[i, index[i]] + v[i]``, or minus it, the operator and ``v``.

    Written back to where it was read, as ``x[rows, index] -= v`` does, it changes the element by ``v``.
    """
    node = b.node(updates)
    if not isinstance(node.op, ops.Additive):
        return None
    first, second = node.operands
    if _reads(b, first, x, index):
        return node.op, second
    return (node.op, first) if isinstance(node.op, ops.Add) and _reads(b, second, x, index) else None


def _reads(b: SimplifyingBuilder, position: int, x: int, index: int) -> bool:
    """Whether a node is ``x[i, index[i]]``, as :func:`read` writes it."""
    while isinstance(b.node(position).op, ops.Reshape):
        (position,) = b.node(position).operands
    node, known = b.node(position), indexing.pick(b, x, index, 1)
    while isinstance(b.node(known).op, ops.Reshape):
        (known,) = b.node(known).operands
    return (node.op, node.operands) == (b.node(known).op, b.node(known).operands)
