"""Rewrites of single elements, stated as rules: what attention block by block begins with, and floors that are none.

Attention that goes over its keys block by block begins with minus infinity as the largest score so far:
``maximum(-inf, x)`` is ``x``, and the sums so far are multiplied by ``exp(-inf - m)``, which is zero where ``m`` is a
real number. A variance in one pass, the mean of squares less the square of the mean, may come out below zero where it
is rounded; so programs take zero then. Over the reals it never is.

Casts of whole numbers (``integer_casts``) and masks (``mask_choices``) are no such rules: types change in them, or what
is chosen is laid out in between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.ir.graph import GraphBuilder
from rewright.proof.rewriting.given import number
from rewright.proof.rewriting.laws import as_maker
from rewright.refine.rewriting.drafts import Draft
from rewright.rules.library.arithmetic import RULES as ARITHMETIC
from rewright.rules.pattern import floats, maximum
from rewright.rules.pointwise import build_right, match_elements
from rewright.rules.rule import rule

_MOST_ROUNDS = 8
_A = floats("A", 1)
RULES = (
    *(one for one in ARITHMETIC if one.name == "max-minus-infinity"),
    rule("max-floor", "max(A, 0) = A where A >= 0", maximum(_A, 0.0), _A, where=[_A >= 0.0]),
)
"""What is applied to programs over the reals, from left to right."""
_LEFT_BEHIND = (0.0, -math.inf)
"""What facts say is one of these numbers is written as it: sums so far, and the largest score so far."""


def with_rules(draft: Draft) -> Draft:
    """The program after all rules that apply, and with numbers for what attention begins with."""
    for _ in range(_MOST_ROUNDS):
        made = _apply(draft)
        if made is draft:
            break
        draft = made
    return draft


def _apply(draft: Draft) -> Draft:
    graph, known = draft.graph, draft.facts
    begins = any(isinstance(node.op, ops.Constant) and node.op.values == (-math.inf,) for node in graph.nodes)

    def number_at(position: int) -> float | None:
        value = splat(graph, position)
        return number(known[position]) if value is None else value

    def make(builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        node = graph.nodes[position]
        if not node.type.dtype.is_float or not isinstance(node.op, ops.TensorOperator):
            return None
        value = number(known[position]) if begins and splat(graph, position) is None else None
        if value is not None and value in _LEFT_BEHIND:
            return builder.add(ops.Constant(node.type, (float(value),)))
        for one in RULES:
            bound = match_elements(one, graph, position, known, number_at)
            if bound is not None:
                return build_right(one, builder, node.type, {name: places[p] for name, p in bound.items()})
        return None

    return draft.rebuild(as_maker(graph, make))
