"""What a graph has to be before it is planned: sizes that are numbers, one axis a reduction, no dead nodes."""

from __future__ import annotations

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType

LOOKUPS = (ops.Gather, ops.Scatter, ops.DynamicSlice, ops.DynamicUpdateSlice)
"""Operators that read or write at places that are computed."""


def prepared(graph: Graph, places: bool = False) -> Graph:
    """The same program in the form that plans are made for; raises RewrightError where it cannot be.

    Reductions over several axes become reductions over one axis each, which is what they are. With ``places``, the
    largest element of a row and its place become reductions (``_largest``), which is tested and not proved.
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
            made[position] = _copied(builder, node, operands, places and not (is_place and position in looked_up))
    for name, position in graph.outputs.items():
        builder.output(name, made[position])
    found = builder.build()
    return Graph(found.nodes, found.inputs, found.outputs, graph.name, graph.metadata)


def _looked_up(graph: Graph) -> frozenset[int]:
    """What places that are read at are computed from."""
    return graph.ancestors(p for node in graph.nodes if isinstance(node.op, LOOKUPS) for p in node.operands[1:])


def reads_places(graph: Graph, ready: Graph) -> bool:
    """Whether places of largest elements became reductions."""
    counts = [sum(isinstance(g.nodes[p].op, ops.TopK) for p in g.live()) for g in (graph, ready)]
    return counts[1] < counts[0]


def _copied(builder: GraphBuilder, node: Node, operands: list[int], places: bool) -> int:
    if isinstance(node.op, ops.Reduce) and len(node.op.dimensions) > 1:
        position = operands[0]
        for axis in sorted(node.op.dimensions, reverse=True):
            position = builder.add(ops.Reduce(node.op.kind, (axis,)), position, span=node.span)
        return position
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
