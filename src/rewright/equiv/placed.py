"""Tensors that are nought but for what is written at the places of a choice, written or added.

The engine knows sums. Programs that weigh experts in several ways get them all as sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.analysis.values import facts_where_defined
from rewright.equiv.fillings import splat
from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws import applied
from rewright.proof.rewriting.laws.places import Places


def placed_alike(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with what is written into noughts at different places as sums.

    They are returned as they are where all of them write in the same ways.
    """
    ways = [_ways(graph) for graph in graphs]
    if all(own == ways[0] for own in ways):
        return tuple(graphs)
    laws = [Places(graph, known) for graph, known in zip(graphs, facts_where_defined(graphs), strict=True)]
    return tuple(applied(graph, law) if law.written else graph for graph, law in zip(graphs, laws, strict=True))


def _ways(graph: Graph) -> set[object]:
    """How a program writes at places, and what it does with that."""
    found = {(node.op, splat(graph, node.operands[2])) for node in graph.nodes if isinstance(node.op, ops.Scatter)}
    written = {p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Scatter)}
    readers = {type(node.op) for node in graph.nodes if written.intersection(node.operands)}
    return {*found, *readers}
