"""What attention that goes over its keys block by block begins with: minus infinity as the largest score so far.

``maximum(-inf, x)`` is ``x``, and the sums so far are multiplied by ``exp(-inf - m)``, which is zero where ``m`` is a
real number. Programs that begin with the first block have neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.facts import Facts, is_no_number
from rewright.refine.rewriting.drafts import Draft

_MOST_ROUNDS = 8


def without_starts(draft: Draft) -> Draft:
    """The program without maxima with minus infinity, and with zero for what is multiplied by its exponential."""
    for _ in range(_MOST_ROUNDS if any(_is_minus_infinity(node) for node in draft.graph.nodes) else 0):
        graph = draft.graph
        numbers = _numbers(draft.facts, graph)
        aliases = {p: q for p, node in enumerate(graph.nodes) if (q := _largest(node, numbers)) is not None}
        fresh = {p: v for p, v in numbers.items() if splat(graph, p) is None}
        if not aliases and not fresh:
            break
        draft = _rewritten(draft, aliases, fresh)
    return draft


def _is_minus_infinity(node: Node) -> bool:
    return isinstance(node.op, ops.Constant) and node.op.values == (-math.inf,)


def _rewritten(draft: Draft, aliases: Mapping[int, int], fresh: Mapping[int, float]) -> Draft:
    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position in aliases:
            return operands[node.operands.index(aliases[position])]
        return builder.add(ops.Constant(node.type, (fresh[position],))) if position in fresh else None

    return draft.rebuild(make)


def _largest(node: Node, numbers: Mapping[int, float]) -> int | None:
    """The operand that a maximum is, where the other is minus infinity."""
    if isinstance(node.op, ops.Maximum):
        for k in (0, 1):
            if numbers.get(node.operands[k]) == -math.inf:
                return node.operands[1 - k]
    return None


def _numbers(known: Sequence[Facts], graph: Graph) -> dict[int, float]:
    """By node the number that all of its elements are: minus infinity or zero."""
    found: dict[int, float] = {}
    for position, facts in enumerate(known):
        if not graph.nodes[position].type.dtype.is_float or facts.nan or facts.plus_infinity:
            continue
        if facts.is_finite and facts.low == facts.high == 0:
            found[position] = 0.0
        elif is_no_number(facts) and facts.minus_infinity:
            found[position] = -math.inf
    return found
