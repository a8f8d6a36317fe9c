"""Leaving out what no output needs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from rewright import ops
from rewright.ir.graph import Graph


def prune_graph(graph: Graph, superseded: Set[int] = frozenset()) -> Graph:
    """The graph without nodes that neither an output nor another rank needs.

    Inputs are kept, and collectives except those in ``superseded``, which another one replaces.
    """
    kept = sorted(live_nodes(graph, superseded))
    moved = {old: new for new, old in enumerate(kept)}
    nodes = tuple(
        replace(graph.nodes[old], operands=tuple(moved[p] for p in graph.nodes[old].operands)) for old in kept
    )
    inputs = {name: moved[position] for name, position in graph.inputs.items()}
    outputs = {name: moved[position] for name, position in graph.outputs.items()}
    return Graph(nodes, inputs, outputs, graph.name, graph.metadata)


def live_nodes(graph: Graph, superseded: Set[int] = frozenset()) -> set[int]:
    """The positions of nodes that stay."""
    found = set(graph.outputs.values()) | set(graph.inputs.values())
    for position in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[position]
        if position in found or (isinstance(node.op, ops.Collective) and position not in superseded):
            found.add(position)
            found.update(node.operands)
    return found
