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
    """The program without choices by whether a number is an infinity that it cannot be, as of a maximum of numbers.

    What is not a number for a row of which nothing counts is then no part of a program whose rows all count.
    """
    graph = draft.graph

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        asked = graph.nodes[node.operands[0]] if isinstance(node.op, ops.Select) else None
        if asked is None or not isinstance(asked.op, ops.Compare) or asked.op.direction not in ("EQ", "NE"):
            return None
        pairs = permutations(asked.operands)
        if not any(_differ(draft.facts[a], splat(graph, b)) for a, b in pairs):
            return None
        return operands[1] if asked.op.direction == "NE" else operands[2]

    has_none = any(isinstance(n.op, ops.Constant) and any(map(math.isnan, n.op.values)) for n in graph.nodes)
    return draft.rebuild(make) if has_none else draft


def _differ(facts: Facts, number: float | None) -> bool:
    """Whether what is known of a node says that it is nowhere this infinity."""
    if number is None or not math.isinf(number) or facts.nan:
        return False
    return not (facts.plus_infinity if number > 0 else facts.minus_infinity)
