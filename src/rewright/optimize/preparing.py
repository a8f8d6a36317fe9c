"""What a graph has to be before it is planned: sizes that are numbers, one axis a reduction, no dead nodes."""

from __future__ import annotations

import math
from collections.abc import Callable

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType

LAYOUT = (ops.Transpose, ops.Reshape, ops.BroadcastInDim, ops.Slice)
LOOKUPS = (ops.Gather, ops.Scatter, ops.DynamicSlice, ops.DynamicUpdateSlice)
"""Operators that read or write at places that are computed."""


def prepared(graph: Graph, places: bool = False) -> Graph:
    """As :func:`prepared_with_places`, the program alone."""
    return prepared_with_places(graph, places)[0]


def prepared_with_places(graph: Graph, places: bool = False) -> tuple[Graph, dict[int, int]]:
    """The same program in the form that plans are made for; raises RewrightError where it cannot be.

    Reductions over several axes become reductions over one axis each, which is what they are, and so do sliding windows
    over several axes; axes side by side are one where nothing has a loop over some of them. Tensors without elements
    are left out of what is put together. With ``places``, the largest element of a row and its place become reductions
    (``_largest``), which is tested and not proved. Besides, for every node that is needed, where it is.
    """
    for node in graph.nodes:
        if not node.type.is_static():
            raise RewrightError(
                f"{node.op.name} at {node.span} has size {node.type}; optimize for sizes that are numbers"
            )
        if isinstance(node.op, ops.Collective):
            raise RewrightError(
                f"{node.op.name} at {node.span} needs other ranks; optimize what one rank computes between them"
            )
    live = graph.live()
    for position in sorted(live):
        node = graph.nodes[position]
        if 0 in node.type.shape and not all(_joins(graph, user) for user in graph.users()[position]):
            raise RewrightError(
                f"{node.op.name} at {node.span} has no elements ({node.type}): there is nothing to fuse"
            )
    looked_up = _looked_up(graph)
    builder = GraphBuilder(graph.name)
    made: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if position not in live:
            continue
        operands = [made[p] for p in node.operands]
        if isinstance(node.op, ops.Input):
            builder.span = node.span
            made[position] = builder.input(node.op.label, node.op)
        else:
            # The prover has no bound for the least of some places, which a look-up needs, and one for that of top_k.
            is_place = isinstance(node.op, ops.TopK) and node.op.result == "indices"
            largest = places and not (is_place and position in looked_up)
            made[position] = _copied(builder, node, operands, largest, lambda node=node: _one_loop(graph, node))
    for name, position in graph.outputs.items():
        builder.output(name, made[position])
    found = builder.build()
    return Graph(found.nodes, found.inputs, found.outputs, graph.name, graph.metadata), made


def _looked_up(graph: Graph) -> frozenset[int]:
    """What places that are read at are computed from."""
    return graph.ancestors(p for node in graph.nodes if isinstance(node.op, LOOKUPS) for p in node.operands[1:])


def reads_places(graph: Graph, ready: Graph) -> bool:
    """Whether places of largest elements became reductions."""
    counts = [sum(isinstance(g.nodes[p].op, ops.TopK) for p in g.live()) for g in (graph, ready)]
    return counts[1] < counts[0]


def _joins(graph: Graph, position: int) -> bool:
    """Whether a node puts tensors together of which those without elements may be left out."""
    return isinstance(graph.nodes[position].op, ops.Concatenate) and 0 not in graph.nodes[position].type.shape


def _one_loop(graph: Graph, node: Node) -> bool:
    """Whether axes that are reduced together may be one: what is reduced has no loop that goes over some of them.

    Such a loop is that of a matrix product, or of another reduction; the mean that deviations are taken from is over
    as many elements, and that of the same pass.
    """
    seen: set[int] = set()
    stack = [node.operands[0]]
    while stack:
        position = stack.pop()
        if position in seen:
            continue
        seen.add(position)
        other = graph.nodes[position]
        if isinstance(other.op, ops.Reduce) and _count(graph, other) != _count(graph, node):
            return False
        if not isinstance(other.op, (ops.Reduce, ops.Elementwise, ops.Input, ops.Constant, *LAYOUT)):
            return False
        stack.extend(other.operands)
    return True


def _count(graph: Graph, reduce: Node) -> int:
    """How many elements each element of a reduction is made of."""
    assert isinstance(reduce.op, ops.Reduce)
    shape = graph.nodes[reduce.operands[0]].type.shape
    return math.prod(int(str(shape[axis])) for axis in reduce.op.dimensions)


def _reduced(builder: GraphBuilder, node: Node, position: int, one: bool) -> int:
    """A reduction over one axis after the other; axes side by side are made one before, where that is asked for."""
    assert isinstance(node.op, ops.Reduce)
    axes = sorted(node.op.dimensions)
    while axes:
        last = first = axes.pop()
        while one and axes and axes[-1] == first - 1:
            first = axes.pop()
        if first != last:
            shape = builder.type(position).shape
            size = math.prod(int(str(s)) for s in shape[first : last + 1])
            position = builder.add(ops.Reshape((*shape[:first], size, *shape[last + 1 :])), position, span=node.span)
        position = builder.add(ops.Reduce(node.op.kind, (first,)), position, span=node.span)
    return position


def _slid(builder: GraphBuilder, node: Node, position: int) -> int:
    """A reduction over windows along one axis after the other: outside of each there is the identity of the kind."""
    assert isinstance(node.op, ops.ReduceWindow)
    rank = range(len(node.op.window))
    for axis in reversed(rank):
        if (node.op.window[axis], node.op.strides[axis], node.op.padding[axis]) != (1, 1, (0, 0)):
            op = ops.ReduceWindow(
                node.op.kind,
                tuple(node.op.window[a] if a == axis else 1 for a in rank),
                tuple(node.op.strides[a] if a == axis else 1 for a in rank),
                tuple(node.op.padding[a] if a == axis else (0, 0) for a in rank),
            )
            position = builder.add(op, position, span=node.span)
    return position


def _copied(builder: GraphBuilder, node: Node, operands: list[int], places: bool, one_loop: Callable[[], bool]) -> int:
    if isinstance(node.op, ops.Reduce) and len(node.op.dimensions) > 1:
        return _reduced(builder, node, operands[0], one_loop())
    if isinstance(node.op, ops.ReduceWindow):
        return _slid(builder, node, operands[0])
    if isinstance(node.op, ops.Concatenate):
        operands = [p for p in operands if 0 not in builder.type(p).shape] or operands[:1]
    if (
        places
        and isinstance(node.op, ops.TopK)
        and node.op.k == 1
        and builder.type(operands[0]).dtype is not DType.BOOL
    ):
        builder.span = node.span
        return _largest(builder, operands[0], node.op.result)
    return builder.add(node.op, *operands, span=node.span)


def _largest(builder: GraphBuilder, position: int, result: str) -> int:
    """The first of ``top_k``: the maximum m of a row, or the least index at which the row is m.

    The element that comes first is one that no other one is larger than, so that it is m, and that no equal one is
    before, so that its index is the least of such. NaN is larger than every number: where there is one, the maximum is
    NaN, which no element equals, and the elements that are not equal to themselves are the candidates. The others
    count as the last index, which is less than no other one: the place is in the row, whatever the elements are.
    """
    kind = builder.type(position)
    axis, shape = kind.rank - 1, (*kind.shape[:-1], 1)
    largest = builder.add(ops.Reduce("maximum", (axis,)), position)
    if result == "values":
        return builder.add(ops.Reshape(shape), largest)
    spread = builder.add(ops.BroadcastInDim(kind.shape, tuple(range(axis))), largest)
    found = builder.add(ops.Compare("EQ"), position, spread)
    if kind.dtype.is_float:
        found = builder.add(ops.Or(), found, builder.add(ops.Compare("NE"), position, position))
    size = kind.shape[-1]
    assert isinstance(size, int)
    place = builder.add(ops.Iota(TensorType(kind.shape, DType.I64), axis))
    last = builder.add(ops.Constant(TensorType((), DType.I64), (size - 1,)))
    last = builder.add(ops.BroadcastInDim(kind.shape, ()), last)
    place = builder.add(ops.Select(), found, place, last)
    place = builder.add(ops.Reduce("minimum", (axis,)), place)
    return builder.add(ops.Reshape(shape), place)
