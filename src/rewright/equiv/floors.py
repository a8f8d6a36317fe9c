"""Maxima with nought of what is never below nought, which are no maxima over the reals.

A variance in one pass, the mean of squares less the square of the mean, may come out below nought where it is rounded;
so programs take nought then. Over the reals it never is.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.analysis.values import facts_where_defined
from rewright.equiv.building import pruned, rebuilt
from rewright.equiv.fillings import splat
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.facts import Facts


def without_floors(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs without maxima with nought of what is never below it."""
    return tuple(_lowered(graph, known) for graph, known in zip(graphs, facts_where_defined(graphs), strict=True))


def _lowered(graph: Graph, known: Sequence[Facts]) -> Graph:
    kept = {
        position: k
        for position, node in enumerate(graph.nodes)
        if isinstance(node.op, ops.Maximum) and node.type.dtype.is_float
        for k in (0, 1)
        if splat(graph, node.operands[1 - k]) == 0 and _is_never_below(known[node.operands[k]])
    }

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        return operands[kept[position]] if position in kept else None

    return pruned(rebuilt(graph, make)) if kept else graph


def _is_never_below(known: Facts) -> bool:
    return known.is_nonnegative and not known.nan
