"""Maxima with zero of what is never below zero, which are no maxima over the reals.

A variance in one pass, the mean of squares less the square of the mean, may come out below zero where it is rounded;
so programs take zero then. Over the reals it never is.
"""

from __future__ import annotations

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.ir.graph import GraphBuilder, Node
from rewright.ops.facts import Facts
from rewright.refine.rewriting.drafts import Draft


def without_floors(draft: Draft) -> Draft:
    """The program without maxima with zero of what is never below it."""
    graph, known = draft.graph, draft.facts
    kept = {
        position: k
        for position, node in enumerate(graph.nodes)
        if isinstance(node.op, ops.Maximum) and node.type.dtype.is_float
        for k in (0, 1)
        if splat(graph, node.operands[1 - k]) == 0 and _is_never_below(known[node.operands[k]])
    }

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        return operands[kept[position]] if position in kept else None

    return draft.rebuild(make) if kept else draft


def _is_never_below(known: Facts) -> bool:
    return known.is_nonnegative and not known.nan
