"""Leaving out what no output needs."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from rewright import ops
from rewright.ir.graph import Graph


def prune_graph(graph: Graph, superseded: Set[int] = frozenset(), *, reads: bool = False) -> Graph:
    """The graph without nodes that neither an output nor another rank needs.

    Inputs are kept, and collectives except those in ``superseded``, which another one replaces; with ``reads`` also
    look-ups by what is made of integer inputs, since a program raises where these are out of range.
    """
    kept = sorted(live_nodes(graph, superseded, reads=reads))
    moved = {old: new for new, old in enumerate(kept)}
    nodes = tuple(
        replace(graph.nodes[old], operands=tuple(moved[p] for p in graph.nodes[old].operands)) for old in kept
    )
    inputs = {name: moved[position] for name, position in graph.inputs.items()}
    outputs = {name: moved[position] for name, position in graph.outputs.items()}
    return Graph(nodes, inputs, outputs, graph.name, graph.metadata)


def live_nodes(graph: Graph, superseded: Set[int] = frozenset(), *, reads: bool = False) -> set[int]:
    """The positions of nodes that stay."""
    found = set(graph.outputs.values()) | set(graph.inputs.values())
    found |= _reads(graph) if reads else set[int]()
    for position in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[position]
        if position in found or (isinstance(node.op, ops.Collective) and position not in superseded):
            found.add(position)
            found.update(node.operands)
    return found


def _reads(graph: Graph) -> set[int]:
    """Look-ups whose indices are made of integer inputs."""
    found: set[int] = set()
    given: set[int] = set()
    for position, node in enumerate(graph.nodes):
        is_integer = node.type.dtype.is_integer
        if is_integer and (isinstance(node.op, ops.Input) or any(p in given for p in node.operands)):
            given.add(position)
        looked = node.op.indexed(len(node.operands)) if isinstance(node.op, ops.TensorOperator) else ()
        if any(node.operands[number] in given for number, _ in looked):
            found.add(position)
    return found
