"""Rewrites in front of a proof, by themselves: what they make of programs, and what that takes for granted."""

from collections.abc import Callable, Iterable, Sequence

from rewright.ir.graph import Graph
from rewright.proof.rewriting.numbers.closed import taken_sentences
from rewright.refine.rewriting.drafts import Draft, graphs_of
from rewright.refine.rewriting.steps import Steps

Rewrite = Callable[[Sequence[Draft]], Iterable[Draft]]


def rewritten(rewrite: Rewrite, graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs as a rewrite of several leaves them."""
    return tuple(graphs_of(rewrite([Draft(graph) for graph in graphs])))


def alone(rewrite: Callable[[Draft], Draft], graph: Graph) -> Graph:
    """The program as a rewrite of one leaves it."""
    return rewrite(Draft(graph)).graph


def taken(rewrite: Rewrite, graphs: Sequence[Graph]) -> tuple[str, ...]:
    """What a rewrite takes for granted of numbers; that every step is shown is asserted."""
    steps = Steps()
    drafts = list(rewrite([Draft(graph) for graph in graphs]))
    for draft in drafts:
        steps.rewriting(draft)
    return taken_sentences(one for draft in drafts for one in steps.premises(draft))
