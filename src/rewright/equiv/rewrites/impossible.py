"""Choices by whether a number is an infinity that it cannot be."""

from __future__ import annotations

import math
from itertools import permutations

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.ir.graph import GraphBuilder, Node
from rewright.ops.facts import Facts
from rewright.refine.rewriting.drafts import Draft


def without_impossible(draft: Draft) -> Draft:
    """The program without what is no number where a number is an infinity, if it cannot be that: a maximum of numbers.

    Kernels give no number for a row in which nothing counts, and a certificate has none.
    """
    graph = draft.graph

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        asked = graph.nodes[node.operands[0]] if isinstance(node.op, ops.Select) else None
        if asked is None or not isinstance(asked.op, ops.Compare) or asked.op.direction not in ("EQ", "NE"):
            return None
        kept, dropped = (1, 2) if asked.op.direction == "NE" else (2, 1)
        number = splat(graph, node.operands[dropped])
        if number is None or not math.isnan(number):
            return None
        pairs = permutations(asked.operands)
        return operands[kept] if any(_differ(draft.facts[a], splat(graph, b)) for a, b in pairs) else None

    return draft.rebuild(make)


def _differ(facts: Facts, number: float | None) -> bool:
    """Whether what is known of a node says that it is nowhere this infinity."""
    if number is None or not math.isinf(number) or facts.nan:
        return False
    return not (facts.plus_infinity if number > 0 else facts.minus_infinity)
