"""Choices of the largest elements among some that are kept, where the others are filled with a number below these.

Programs that fill with other numbers all get minus infinity, where that makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.analysis.values import facts_where_defined
from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws import applied
from rewright.proof.rewriting.laws.fillings import Fillings


def filled_alike(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with minus infinity where what a ``top_k`` never chooses is filled, and no filling where it is none.

    They are returned as they are where all of them fill with the same numbers.
    """
    if not any(isinstance(node.op, ops.TopK) for graph in graphs for node in graph.nodes):
        return tuple(graphs)
    laws = [Fillings(graph, known) for graph, known in zip(graphs, facts_where_defined(graphs), strict=True)]
    fills = [_fills(graph, law) for graph, law in zip(graphs, laws, strict=True)]
    if all(own == fills[0] for own in fills):
        return tuple(graphs)
    return tuple(applied(graph, law, graph.live()) for graph, law in zip(graphs, laws, strict=True))


def _fills(graph: Graph, law: Fillings) -> set[float]:
    """The numbers that are filled in among what a program chooses."""
    found = (law.filling(p) for p in graph.live())
    return {one[1] for one in found if one is not None}
