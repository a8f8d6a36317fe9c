"""Rewrites in front of a proof, by themselves: what they make of programs, and what that takes for granted."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from rewright.ir.graph import Graph
from rewright.proof.rewriting.numbers.closed import taken_sentences
from rewright.refine.rewriting.drafts import Draft
from rewright.refine.rewriting.steps import LemmaSearch

Rewrite = Callable[[Draft], Draft]


def alone(rewrite: Rewrite, graph: Graph) -> Graph:
    """The program as a rewrite leaves it."""
    return rewrite(Draft(graph)).graph


def rewritten(rewrite: Rewrite, graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs as a rewrite leaves each of them."""
    return tuple(alone(rewrite, graph) for graph in graphs)


def law(name: str) -> Rewrite:
    """The rewrite by a law of the checker."""
    return partial(Draft.by_law, name=name)


def taken(drafts: Iterable[Draft]) -> tuple[str, ...]:
    """What rewrites took for granted of numbers; that every step is shown is asserted."""
    steps, made = LemmaSearch(), list(drafts)
    for draft in made:
        steps.rewriting(draft)
    return taken_sentences(one for draft in made for one in steps.premises(draft))
