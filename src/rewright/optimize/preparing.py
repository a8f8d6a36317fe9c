"""What a graph has to be before it is planned: sizes that are numbers, one axis a reduction, no dead nodes."""

from __future__ import annotations

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node


def prepared(graph: Graph) -> Graph:
    """The same program in the form that plans are made for; raises RewrightError where it cannot be.

    Reductions over several axes become reductions over one axis each, which is what they are; nothing else changes.
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
    builder = GraphBuilder(graph.name)
    places: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if position not in live:
            continue
        operands = [places[p] for p in node.operands]
        if isinstance(node.op, ops.Input):
            builder.span = node.span
            places[position] = builder.input(node.op.label, node.op)
        else:
            places[position] = _copied(builder, node, operands)
    for name, position in graph.outputs.items():
        builder.output(name, places[position])
    found = builder.build()
    return Graph(found.nodes, found.inputs, found.outputs, graph.name, graph.metadata)


def _copied(builder: GraphBuilder, node: Node, operands: list[int]) -> int:
    if isinstance(node.op, ops.Reduce) and len(node.op.dimensions) > 1:
        position = operands[0]
        for axis in sorted(node.op.dimensions, reverse=True):
            position = builder.add(ops.Reduce(node.op.kind, (axis,)), position, span=node.span)
        return position
    return builder.add(node.op, *operands, span=node.span)
