"""What operators say of the sizes of their operands and results.

A reshape says that products are equal, a concatenation that a size is a sum, an elementwise operator that all shapes
are one. Of an operator that is not in the table nothing is said, and the sizes that it meets stay numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewright import ops
from rewright.ir.dims import Dim, product
from rewright.ir.graph import Graph, Node
from rewright.ops.elementwise import Elementwise
from rewright.rules.free_sizes import Place, Places

Attribute = Any
"""A size attribute with a place, or a place and what is added to it, in the stead of every size."""


@dataclass(frozen=True)
class Shifted:
    """A place plus a number."""

    place: Place
    offset: int


@dataclass(frozen=True)
class Sized:
    """One node: the places of its result, and its attributes that are sizes."""

    result: tuple[Place, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Any])


def sized(graph: Graph, places: Places, inputs: dict[str, tuple[Place, ...]]) -> list[Sized]:
    """The places of every node of a program; inputs of one name are one tensor, also over several programs."""
    found: list[Sized] = []
    for node in graph.nodes:
        if isinstance(node.op, ops.Input):
            own = inputs.setdefault(node.op.label, tuple(map(places.new, node.type.shape)))
            found.append(Sized(own, {"tensor": own}))
        else:
            found.append(_related(places, node, [found[p].result for p in node.operands]))
    return found


def _related(places: Places, node: Node, operands: list[tuple[Place, ...]]) -> Sized:
    op = node.op
    if isinstance(op, Elementwise):
        for other in operands[1:]:
            _all_same(places, operands[0], other)
        return Sized(operands[0])
    for kind, relate in _RELATIONS.items():
        if isinstance(op, kind):
            found = relate(places, node, operands)
            if found is not None:
                return found
    for own in operands:
        places.fix(own)
    return Sized(tuple(map(places.constant, node.type.shape)))


def _all_same(places: Places, first: Sequence[Place], second: Sequence[Place]) -> None:
    for a, b in zip(first, second, strict=True):
        places.same(a, b)


_Operands = list[tuple[Place, ...]]


def _leaf(places: Places, node: Node, operands: _Operands) -> Sized:
    own = tuple(map(places.new, node.type.shape))
    return Sized(own, {"tensor": own})


def _broadcast(places: Places, node: Node, operands: _Operands) -> Sized:
    assert isinstance(node.op, ops.BroadcastInDim)
    own = list(map(places.new, node.type.shape))
    for place, axis in zip(operands[0], node.op.dimensions, strict=True):
        if places.value(place) == node.type.shape[axis]:
            own[axis] = place
    return Sized(tuple(own), {"shape": tuple(own)})


def _reshape(places: Places, node: Node, operands: _Operands) -> Sized:
    """Runs of axes with equal products, as short as possible; one axis that stays is one size."""
    before, after = list(operands[0]), list(map(places.new, node.type.shape))
    own = tuple(after)
    while before and after:
        ends = (
            (i, j)
            for total in range(2, len(before) + len(after) + 1)
            for i in range(max(1, total - len(after)), min(len(before), total - 1) + 1)
            for j in [total - i]
            if product(map(places.value, before[:i])) == product(map(places.value, after[:j]))
        )
        i, j = next(ends, (len(before), len(after)))
        first, second = ([p for p in run if places.value(p) != 1] for run in (before[:i], after[:j]))
        if len(first) == len(second) == 1:
            places.same(first[0], second[0])
        else:
            places.vanishes((1, tuple(first)), (-1, tuple(second)))
        before, after = before[i:], after[j:]
    return Sized(own, {"shape": own})


def _transpose(places: Places, node: Node, operands: _Operands) -> Sized:
    assert isinstance(node.op, ops.Transpose)
    return Sized(tuple(operands[0][axis] for axis in node.op.permutation))


def _unchanged(places: Places, node: Node, operands: _Operands) -> Sized:
    return Sized(operands[0])


def _slice(places: Places, node: Node, operands: _Operands) -> Sized:
    op = node.op
    assert isinstance(op, ops.Slice)
    starts, limits, own = list[Place](), list[Place](), list[Place]()
    for axis, place in enumerate(operands[0]):
        low, high, step = op.start[axis], op.limit[axis], op.stride[axis]
        size, whole = node.type.shape[axis], places.value(place)
        limits.append(places.cut(place, high))
        if step == 1:
            starts.append(places.cut(place, low))
            own.append(place if size == whole else places.part(place, low, high))
            continue
        starts.append(places.constant(low))
        own.append(places.new(size))
        if high == whole and whole == step * size:
            places.vanishes((1, (place,)), (-step, (own[-1],)))
        else:
            places.fix((place, limits[-1], own[-1]))
    return Sized(tuple(own), {"start": tuple(starts), "limit": tuple(limits)})


def _concatenate(places: Places, node: Node, operands: _Operands) -> Sized:
    assert isinstance(node.op, ops.Concatenate)
    axis, own = node.op.dimension, list(operands[0])
    for other in operands[1:]:
        _all_same(places, own[:axis] + own[axis + 1 :], other[:axis] + other[axis + 1 :])
    own[axis], low = places.new(node.type.shape[axis]), 0
    for other in operands:
        high = low + places.value(other[axis])
        if high != low:
            places.part(own[axis], low, high, other[axis])
        low = high
    return Sized(tuple(own))


def _pad(places: Places, node: Node, operands: _Operands) -> Sized | None:
    op = node.op
    assert isinstance(op, ops.Pad)
    if any(op.interior):
        return None
    lows, highs, own = list[Place](), list[Place](), list[Place]()
    for low, high, place, size in zip(op.low, op.high, operands[0], node.type.shape, strict=True):
        lows.append(_added(places, low))
        highs.append(_added(places, high))
        own.append(place if low == 0 and high == 0 else places.new(size))
        places.vanishes((1, (own[-1],)), (-1, (place,)), (-1, (lows[-1],)), (-1, (highs[-1],)))
    return Sized(tuple(own), {"low": tuple(lows), "high": tuple(highs)})


def _added(places: Places, size: Dim) -> Place:
    """How much is added at one end; what is taken away stays a number."""
    return places.new(size) if isinstance(size, int) and size > 0 else places.constant(size)


def _reduce(places: Places, node: Node, operands: _Operands) -> Sized:
    assert isinstance(node.op, ops.Reduce)
    return Sized(tuple(p for axis, p in enumerate(operands[0]) if axis not in node.op.dimensions))


def _cumulative(places: Places, node: Node, operands: _Operands) -> Sized | None:
    """A window over all elements up to one, or from one on."""
    op = node.op
    assert isinstance(op, ops.ReduceWindow)
    windows, padding = list[Place](), list[tuple[Attribute, Attribute]]()
    zero = places.constant(0)
    for place, window, stride, pads in zip(operands[0], op.window, op.strides, op.padding, strict=True):
        size = places.value(place)
        if window == 1 and stride == 1 and pads == (0, 0):
            windows.append(places.constant(1))
            padding.append((zero, zero))
        elif window == size and stride == 1 and sorted(map(str, pads)) == sorted(("0", str(size - 1))):
            windows.append(place)
            before = Shifted(place, -1)
            padding.append((zero, before) if pads[0] == 0 else (before, zero))
        else:
            return None
    return Sized(operands[0], {"window": tuple(windows), "padding": tuple(padding)})


def _dot(places: Places, node: Node, operands: _Operands) -> Sized:
    op = node.op
    assert isinstance(op, ops.DotGeneral)
    left, right = operands
    for mine, theirs in ((op.lhs_batch, op.rhs_batch), (op.lhs_contracting, op.rhs_contracting)):
        _all_same(places, [left[a] for a in mine], [right[a] for a in theirs])
    free = [p for a, p in enumerate(left) if a not in (*op.lhs_batch, *op.lhs_contracting)]
    free += [p for a, p in enumerate(right) if a not in (*op.rhs_batch, *op.rhs_contracting)]
    return Sized((*(left[a] for a in op.lhs_batch), *free))


def _part(places: Places, place: Place, size: Dim) -> Place:
    """How much is taken of an axis: all of it, where it is as much in the programs as they are."""
    return place if places.value(place) == size else places.new(size)


def _dynamic_slice(places: Places, node: Node, operands: _Operands) -> Sized:
    assert isinstance(node.op, ops.DynamicSlice)
    own = tuple(_part(places, p, n) for p, n in zip(operands[0], node.op.sizes, strict=True))
    return Sized(own, {"sizes": own})


def _gather(places: Places, node: Node, operands: _Operands) -> Sized:
    op = node.op
    assert isinstance(op, ops.Gather)
    table, indices = operands
    sizes = tuple(_part(places, p, n) for p, n in zip(table, op.slice_sizes, strict=True))
    _all_same(
        places,
        [table[a] for a in op.operand_batching_dims],
        [indices[a] for a in op.start_indices_batching_dims],
    )
    batch = iter([p for axis, p in enumerate(indices) if axis != op.index_vector_dim])
    left_out = (*op.collapsed_slice_dims, *op.operand_batching_dims)
    window = iter([p for axis, p in enumerate(sizes) if axis not in left_out])
    places.fix(indices[op.index_vector_dim : op.index_vector_dim + 1])
    own = tuple(next(window if axis in op.offset_dims else batch) for axis in range(node.type.rank))
    return Sized(own, {"slice_sizes": sizes})


def _top_k(places: Places, node: Node, operands: _Operands) -> Sized:
    assert isinstance(node.op, ops.TopK)
    chosen = _part(places, operands[0][-1], node.op.k)
    return Sized((*operands[0][:-1], chosen), {"k": chosen})


_RELATIONS: dict[type, Callable[[Places, Node, _Operands], Sized | None]] = {
    ops.Constant: _leaf,
    ops.Iota: _leaf,
    ops.BroadcastInDim: _broadcast,
    ops.Reshape: _reshape,
    ops.Transpose: _transpose,
    ops.Reverse: _unchanged,
    ops.Slice: _slice,
    ops.Sort: _unchanged,
    ops.Concatenate: _concatenate,
    ops.Pad: _pad,
    ops.Reduce: _reduce,
    ops.ReduceWindow: _cumulative,
    ops.DotGeneral: _dot,
    ops.DynamicSlice: _dynamic_slice,
    ops.Gather: _gather,
    ops.TopK: _top_k,
}
"""What operators say of sizes; the sizes of all others stay numbers."""
