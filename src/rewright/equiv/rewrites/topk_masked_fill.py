"""Choices of the largest elements among some that are kept, where the others are filled with a number below these.

Programs that fill with other numbers all get minus infinity, where that makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws.fillings import Fillings
from rewright.refine.rewriting.drafts import Draft


def filled_alike(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """The programs with minus infinity where what a ``top_k`` never chooses is filled, and no filling where it is none.

    They are returned as they are where all of them fill with the same numbers.
    """
    if not any(isinstance(node.op, ops.TopK) for draft in drafts for node in draft.graph.nodes):
        return tuple(drafts)
    laws = [Fillings(draft.graph, draft.facts) for draft in drafts]
    fills = [_fills(draft.graph, law) for draft, law in zip(drafts, laws, strict=True)]
    if all(own == fills[0] for own in fills):
        return tuple(drafts)
    return tuple(d.by_law("fillings", law, d.graph.live()) for d, law in zip(drafts, laws, strict=True))


def _fills(graph: Graph, law: Fillings) -> set[float]:
    """The numbers that are filled in among what a program chooses."""
    found = (law.filling(p) for p in graph.live())
    return {one[1] for one in found if one is not None}
