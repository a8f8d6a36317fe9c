"""Graphs made from other graphs, node by node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rewright.ir.graph import Graph, GraphBuilder, Node

Maker = Callable[[GraphBuilder, int, Node, tuple[int, ...]], int | None]
"""Given the builder, an old position, its node and the new places of its operands: the new place, or None to copy."""


def rebuilt(graph: Graph, make: Maker, *, whole: bool = False) -> Graph:
    """The graph with some nodes made anew; nodes that nothing reads any more are left out, inputs stay.

    With ``whole`` all nodes stay, such as those that only other ranks read. Raises TypeMismatch where a replacement
    does not fit what reads it.
    """
    made, _ = with_places(graph, make)
    return made if whole else pruned(made)


def with_places(graph: Graph, make: Maker) -> tuple[Graph, dict[int, int]]:
    """As :func:`rebuilt`, with all nodes, and where each of the old ones is in the new graph."""
    builder = GraphBuilder(graph.name)
    places: dict[int, int] = {}
    names = {position: name for name, position in graph.inputs.items()}
    for position, node in enumerate(graph.nodes):
        builder.span = node.span
        operands = tuple(places[p] for p in node.operands)
        made = make(builder, position, node, operands)
        if made is None:
            made = builder.input(names[position], node.op) if position in names else builder.add(node.op, *operands)
        places[position] = made
    for name, position in graph.outputs.items():
        builder.output(name, places[position])
    return replace(builder.build(), metadata=graph.metadata), places


def pruned(graph: Graph) -> Graph:
    """The graph without nodes that no output depends on; inputs stay."""
    live = graph.live()
    if len(live) == len(graph.nodes):
        return graph
    places: dict[int, int] = {}
    nodes: list[Node] = []
    for position, node in enumerate(graph.nodes):
        if position in live:
            places[position] = len(nodes)
            nodes.append(replace(node, operands=tuple(places[p] for p in node.operands)))
    inputs = {name: places[p] for name, p in graph.inputs.items()}
    outputs = {name: places[p] for name, p in graph.outputs.items()}
    return replace(graph, nodes=tuple(nodes), inputs=inputs, outputs=outputs)
