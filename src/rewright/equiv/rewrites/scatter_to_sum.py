"""Tensors that are zero but for what is written at the places of a choice, written or added.

The engine knows sums. Programs that weigh experts in several ways get them all as sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.proof.rewriting.laws.places import Places
from rewright.proof.rewriting.parts import splat
from rewright.refine.rewriting.drafts import Draft


def placed_alike(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """The programs with what is written into zeros at different places as sums.

    They are returned as they are where all of them write in the same ways.
    """
    ways = [_ways(draft.graph) for draft in drafts]
    if all(own == ways[0] for own in ways):
        return tuple(drafts)
    laws = [Places(draft.graph, draft.facts) for draft in drafts]
    pairs = zip(drafts, laws, strict=True)
    return tuple(draft.by_law("places", law) if law.written else draft for draft, law in pairs)


def _ways(graph: Graph) -> set[object]:
    """How a program writes at places, and what it does with that."""
    found = {(node.op, splat(graph, node.operands[2])) for node in graph.nodes if isinstance(node.op, ops.Scatter)}
    written = {p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Scatter)}
    readers = {type(node.op) for node in graph.nodes if written.intersection(node.operands)}
    return {*found, *readers}
