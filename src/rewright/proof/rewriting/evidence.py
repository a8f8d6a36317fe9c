"""How lemmas are known to hold, and why one does not.

``x / 2 == x * 0.5`` is proved by normal forms; ``cos(0) == 1`` by numbers; that a choice among logits is one among
their exponentials by a law. Nothing else is evidence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from rewright import ops
from rewright.analysis.ends import Bound
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.rebuilding import remove_dead_nodes
from rewright.proof.rewriting.given import as_claim, is_of_numbers
from rewright.proof.rewriting.laws import follows
from rewright.proof.rewriting.lemma import Lemma, is_well_formed
from rewright.proof.rewriting.numbers.closed import Taken, by_value, compare_closed
from rewright.proof.rewriting.parts import copy_nodes
from rewright.proof.wrapping import wrapping
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

SECONDS = 4.0
PROVED = "proved"
"""Normal forms show it for all inputs, at the sizes that the programs have, which may be symbols."""
NUMBERS = "computed at its size"
"""Its sides read nothing, and are computed; or they are functions of one byte, and computed for each."""
LAW = "law "
"""Before the name of a law that shows it."""
_MOST_PARTS = 32
Proves = Callable[[Claim, float], str | None]
"""Why a claim is not proved within a number of seconds; None where it is."""


def proves(claim: Claim, seconds: float) -> str | None:
    """Why normal forms do not show a claim; None where they do, of the whole or of each part that a side is made of."""
    outcome = prove(claim, seconds)
    if outcome.status == "proved" or (claim.facts is None and _proves_parts(claim.left, claim.right, seconds)):
        return None
    return outcome.reason or "its conditions contradict each other"


@dataclass
class Checked:
    """Checks lemmas, each of them once."""

    seconds: float = SECONDS
    proves: Proves = proves
    reasons: dict[tuple[str, str, bool], str | None] = field(default_factory=dict[tuple[str, str, bool], str | None])
    taken: dict[str, tuple[Taken, ...]] = field(default_factory=dict[str, tuple[Taken, ...]])
    """By the key of a lemma what it takes for granted, where that is anything."""

    def why_not(self, lemma: Lemma, *, counts: bool) -> str | None:
        """Why a lemma does not hold; None where it does.

        With ``counts`` short integers of its sides have no end: where they may not fit, that is written out.
        """
        if not all(is_well_formed(side) for side in (lemma.left, lemma.right)):
            return "its sides read other inputs than they name, or other ranks"
        if not all(is_of_numbers(facts) for _, facts in lemma.given):
            return "what it is given is not between numbers"
        key = lemma.evidence, lemma.key, counts
        if key not in self.reasons:
            self.reasons[key] = self._why_not(lemma, counts)
        return self.reasons[key]

    def _why_not(self, lemma: Lemma, counts: bool) -> str | None:
        sides = lemma.left, lemma.right
        if any(len(side.outputs) != 1 for side in sides):
            return "it is not about one tensor"
        try:
            return self._of_kind(lemma, counts)
        except RewrightError as error:
            return f"its sides do not fit together: {error}"

    def _of_kind(self, lemma: Lemma, counts: bool) -> str | None:
        wraps = wrapping((lemma.whole, lemma.right), _bounds(lemma))
        if lemma.evidence == NUMBERS:
            if counts and wraps:
                return f"numbers count from the other end, and its short integers have no end: {wraps}"
            taken = compare_closed(lemma)
            if taken is None and (counts or not by_value(lemma)):  # a byte that has no end is not one of 256 numbers
                return "its sides are other numbers, or are computed with rounding"
            self.taken[lemma.key] = taken or ()
            return None
        if not counts and wraps:
            return wraps
        if lemma.evidence == PROVED:
            return self.proves(as_claim(lemma), self.seconds)
        if lemma.evidence.startswith(LAW):
            is_one = follows(lemma.evidence.removeprefix(LAW), lemma)
            return None if is_one else f"the {lemma.evidence} does not say it"
        return f"there is no evidence of the kind {lemma.evidence!r:.40}"


def _bounds(lemma: Lemma) -> dict[str, Bound]:
    """Between which numbers the inputs of a lemma are given to lie."""
    return {
        name: (facts.low, facts.high)
        for name, facts in lemma.given
        if facts.is_finite and math.isfinite(facts.low) and math.isfinite(facts.high) and facts.low <= facts.high
    }


def _proves_parts(left: Graph, right: Graph, seconds: float) -> bool:
    """Whether a side is put together from parts along an axis, and each is that part of the other side.

    A recurrence that is written out step by step is such a side, where the other one is a sum over all of the axis.
    """
    for whole, joined in ((left, right), (right, left)):
        parts = list(_parts(joined))
        if 1 < len(parts) <= _MOST_PARTS:
            claims = (Claim(_slice(whole, where), part) for where, part in parts)
            return all(prove(claim, seconds / 2).status == "proved" for claim in claims)
    return False


_Where = tuple[int, int, int]
"""An axis, and where on it a part begins and ends."""


def _parts(graph: Graph) -> Iterator[tuple[_Where, Graph]]:
    """The parts that the result of a program is put together from; none where it is not."""
    ((name, position),) = graph.outputs.items()
    node = graph.nodes[position]
    if not isinstance(node.op, ops.Concatenate) or not node.type.is_static():
        return
    start, axis = 0, node.op.dimension
    for operand in node.operands:
        end = start + int(str(graph.nodes[operand].type.shape[axis]))
        yield (axis, start, end), remove_dead_nodes(replace(graph, outputs={name: operand}))
        start = end


def _slice(graph: Graph, where: _Where) -> Graph:
    """The program with a part of its result."""
    builder = GraphBuilder(graph.name)
    places = {position: builder.input(name, graph.nodes[position].op) for name, position in graph.inputs.items()}
    copy_nodes(builder, graph, range(len(graph.nodes)), places)
    ((name, position),) = graph.outputs.items()
    axis, start, end = where
    sizes = [int(str(n)) for n in graph.nodes[position].type.shape]
    begins = tuple(start if a == axis else 0 for a in range(len(sizes)))
    ends = tuple(end if a == axis else n for a, n in enumerate(sizes))
    builder.output(name, builder.add(ops.Slice(begins, ends, (1,) * len(sizes)), places[position]))
    return builder.build()
