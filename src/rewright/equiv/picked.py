"""What is read at the places of a choice from the row that was chosen from: the values of the choice."""

from __future__ import annotations

from rewright import ops
from rewright.analysis.values import facts_where_defined
from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws import applied
from rewright.proof.rewriting.laws.picked import Picked, reads_rows


def with_values(graph: Graph) -> Graph:
    """The program with the values of a choice for what is looked up at its own places."""
    chosen = any(isinstance(node.op, ops.TopK) for node in graph.nodes)
    if not chosen or not any(reads_rows(node) for node in graph.nodes):
        return graph
    return applied(graph, Picked(graph, facts_where_defined([graph])[0]))
