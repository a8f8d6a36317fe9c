"""Folds of few elements written out, as compilers write them: a sum of three rows is ``x[0] + x[1] + x[2]``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product

from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.rebuilding import rebuild
from rewright.kernel.counting import counted
from rewright.ops import (
    Add,
    And,
    BroadcastInDim,
    DotGeneral,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Reduce,
    ReduceWindow,
    Slice,
)
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb

MOST = 9
"""Elements that a fold which is written out has; Inductor writes out those of at most eight, and windows of three."""
_JOINED: dict[ReductionKind, Operator] = {
    "sum": Add(),
    "product": Multiply(),
    "maximum": Maximum(),
    "minimum": Minimum(),
    "and": And(),
    "or": Or(),
}
_NEUTRAL: dict[ReductionKind, float] = {"sum": 0.0, "product": 1.0, "maximum": -math.inf, "minimum": math.inf}


def written_out(graph: Graph, *, products: bool = False) -> Graph | None:
    """The same program with its short folds as operations on their elements; None where it has none.

    With ``products`` these are also the sums of products of matrices. Counts, which programs divide by, stay.
    """
    if not any(_is_short(graph.nodes[p].op, graph, graph.nodes[p], products) for p in graph.live()):
        return None
    counts = {p for p in graph.live() if isinstance(graph.nodes[p].op, Reduce) and counted(graph, p) is not None}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position in counts:
            return None
        if products and isinstance(node.op, DotGeneral):
            return _product(builder, node, node.op, operands)
        return _make(builder, node, operands)

    return rebuild(graph, make)


def _is_short(op: Operator, graph: Graph, node: Node, products: bool) -> bool:
    if products and isinstance(op, DotGeneral):
        return _count([graph.nodes[node.operands[0]].type.shape[axis] for axis in op.lhs_contracting]) is not None
    if isinstance(op, Reduce):
        return _count([graph.nodes[node.operands[0]].type.shape[axis] for axis in op.dimensions]) is not None
    return isinstance(op, ReduceWindow) and _count(op.window) is not None and node.type.dtype.is_float


def _count(sizes: Sequence[Dim]) -> int | None:
    """The number of elements of a fold that is short; None for others."""
    numbers = [size for size in sizes if isinstance(size, int)]
    count = math.prod(numbers)
    return count if len(numbers) == len(sizes) and 1 < count <= MOST else None


def _make(builder: GraphBuilder, node: Node, operands: tuple[int, ...]) -> int | None:
    op = node.op
    if isinstance(op, Reduce):
        return _reduced(builder, op, operands[0])
    return _window(builder, op, node, operands[0]) if isinstance(op, ReduceWindow) else None


def _reduced(b: GraphBuilder, op: Reduce, position: int) -> int | None:
    shape = b.type(position).shape
    sizes = [shape[axis] for axis in op.dimensions]
    if op.kind not in _JOINED or _count(sizes) is None:
        return None
    kept = [n for axis, n in enumerate(shape) if axis not in op.dimensions]
    parts: list[int] = []
    for place in product(*(range(n) for n in sizes if isinstance(n, int))):
        part = position
        for axis, start in zip(op.dimensions, place, strict=True):
            part = rb.slice_axis(b, part, axis, start, start + 1)
        parts.append(rb.reshape(b, part, kept))
    return reduce(lambda x, y: b.add(_JOINED[op.kind], x, y), parts)


def _window(b: GraphBuilder, op: ReduceWindow, node: Node, position: int) -> int | None:
    if op.kind not in _NEUTRAL or not node.type.dtype.is_float or _count(op.window) is None:
        return None
    low, high = ([pair[side] for pair in op.padding] for side in (0, 1))
    if any(n != 0 for n in (*low, *high)):
        position = rb.pad(b, position, low, high, _NEUTRAL[op.kind])
    parts: list[int] = []
    for place in product(*(range(n) for n in op.window if isinstance(n, int))):
        ends = [start + (n - 1) * s + 1 for start, n, s in zip(place, node.type.shape, op.strides, strict=True)]
        parts.append(b.add(Slice(place, tuple(ends), op.strides), position))
    return reduce(lambda x, y: b.add(_JOINED[op.kind], x, y), parts)


def _product(b: GraphBuilder, node: Node, op: DotGeneral, operands: Sequence[int]) -> int | None:
    """A product of tensors whose axes that are summed are short."""
    left, right = operands
    shapes = [b.type(p).shape for p in operands]
    sizes = [shapes[0][axis] for axis in op.lhs_contracting]
    if _count(sizes) is None:
        return None
    batch = len(op.lhs_batch)
    free = [
        [axis for axis in range(len(shape)) if axis not in (*summed, *batched)]
        for shape, summed, batched in (
            (shapes[0], op.lhs_contracting, op.lhs_batch),
            (shapes[1], op.rhs_contracting, op.rhs_batch),
        )
    ]
    full = (*node.type.shape, *sizes)
    after = len(node.type.shape)
    one = _spread(b, left, full, op.lhs_batch, free[0], op.lhs_contracting, batch, after)
    other = _spread(b, right, full, op.rhs_batch, free[1], op.rhs_contracting, batch + len(free[0]), after)
    product_of = b.add(Multiply(), one, other)
    return _reduced(b, Reduce("sum", tuple(range(after, after + len(sizes)))), product_of)


def _spread(
    b: GraphBuilder,
    operand: int,
    full: tuple[Dim, ...],
    batched: tuple[int, ...],
    free: list[int],
    summed: tuple[int, ...],
    first: int,
    after: int,
) -> int:
    """An operand along the axes of the result and those that are summed."""
    places = {axis: n for n, axis in enumerate(batched)}
    places |= {axis: first + n for n, axis in enumerate(free)}
    places |= {axis: after + n for n, axis in enumerate(summed)}
    order = sorted(places, key=lambda axis: places[axis])
    moved = rb.transpose(b, operand, order)
    return b.add(BroadcastInDim(full, tuple(places[axis] for axis in order)), moved)
