"""Choices of the largest elements under functions that keep their order.

Where programs choose after different functions, each ``top_k`` gets the tensor in front of them, and the functions are
applied to the values that it chose.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws.growing import Growing
from rewright.refine.rewriting.drafts import Draft


def chosen_alike(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """The programs with their choices made among the tensors in front of functions that keep the order.

    They are returned as they are where all of them choose after the same functions.
    """
    laws = [Growing(draft.graph, draft.facts()) for draft in drafts]
    functions = [_functions(draft.graph, law) for draft, law in zip(drafts, laws, strict=True)]
    if all(own == functions[0] for own in functions):
        return tuple(drafts)
    return tuple(draft.by_law("growing", law) for draft, law in zip(drafts, laws, strict=True))


def _functions(graph: Graph, law: Growing) -> frozenset[tuple[str, ...]]:
    """The growing functions that a program chooses after."""
    choices = (p for p in graph.live() if isinstance(graph.nodes[p].op, ops.TopK))
    return frozenset(law.functions(p) for p in choices if law.chain(p))
