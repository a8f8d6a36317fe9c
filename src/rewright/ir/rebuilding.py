"""Graphs made from other graphs, node by node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rewright.ir.graph import Graph, GraphBuilder, Node

Maker = Callable[[GraphBuilder, int, Node, tuple[int, ...]], int | None]
"""Given the builder, an old position, its node and the new places of its operands: the new place, or None to copy."""


def rebuild(graph: Graph, make: Maker, *, whole: bool = False) -> Graph:
    """The graph with some nodes made anew, and without those that :func:`remove_dead_nodes` leaves out then.

    With ``whole`` all nodes stay. Raises TypeMismatch where a replacement
    does not fit what reads it.
    """
    made, _ = with_places(graph, make)
    return made if whole else remove_dead_nodes(made)


def with_places(graph: Graph, make: Maker) -> tuple[Graph, dict[int, int]]:
    """As :func:`rebuild`, with all nodes, and where each of the old ones is in the new graph."""
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


def remove_dead_nodes(graph: Graph, *, alone: bool = False) -> Graph:
    """The graph without nodes that no output depends on; inputs stay, and what other ranks take part in.

    A collective that is left out makes the next one of a rank meet it in the place of its own. With ``alone`` nothing
    but what outputs depend on is of interest.
    """
    kept = kept_places(graph, alone=alone)
    if len(kept) == len(graph.nodes):
        return graph
    nodes = tuple(
        replace(graph.nodes[position], operands=tuple(kept[p] for p in graph.nodes[position].operands))
        for position in kept
    )
    inputs = {name: kept[p] for name, p in graph.inputs.items()}
    outputs = {name: kept[p] for name, p in graph.outputs.items()}
    return replace(graph, nodes=nodes, inputs=inputs, outputs=outputs)


def kept_places(graph: Graph, *, alone: bool = False) -> dict[int, int]:
    """The nodes that :func:`remove_dead_nodes` keeps, with their new places."""
    met = () if alone else tuple(p for p, node in enumerate(graph.nodes) if node.op.is_met)
    live = graph.live() | graph.ancestors(met)
    return {position: number for number, position in enumerate(sorted(live))}
