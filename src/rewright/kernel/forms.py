"""Claims that both programs have one normal form as a whole, which need no parts to be related.

The prover of rules decides them, and again when a certificate is audited. There are several claims about two programs,
since what a kernel looks up, and the numbers that are written in it, can be said in more ways than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from rewright.analysis.obligations import Obligation
from rewright.ir.graph import Graph, GraphBuilder
from rewright.kernel.bounds import facts_of
from rewright.kernel.constants import with_decimals
from rewright.kernel.counting import read_into
from rewright.kernel.marks import with_marks
from rewright.kernel.short_folds import written_out
from rewright.ops.elementwise import Elementwise
from rewright.ops.functions.record import EVERYWHERE
from rewright.proof.conditions import REALS, conditions, open_obligations
from rewright.proof.wrapping import insert_wrapping
from rewright.terms.claim import Claim

_DECIMALS = "a number of few digits is that decimal, and a rounded 1/n is 1/n: 0.1 stands for 1/10"
Given = Literal["nothing", "look-ups", "tables", "marks"]
"""What is known of inputs: that look-ups are in bounds, that all elements of tables are, or which labels count."""


@dataclass(frozen=True)
class Way:
    """One claim that both programs have one normal form."""

    given: Given
    decimals: bool = False
    """Whether numbers of few digits are decimals."""
    products: bool = False
    """Whether short folds and products of matrices are written out."""


ClaimWithPremises = tuple[Claim, tuple[str, ...]]
"""A claim, and what it takes for granted in words."""


def claims(left: Graph, right: Graph, condition: Graph | None) -> Iterator[tuple[Way, ClaimWithPremises]]:
    """What to try, the fewest conditions first; ``condition`` is what the inputs meet, as facts."""
    kinds: tuple[Given, ...] = ("nothing", "look-ups", "tables", "marks")
    plain = [Way(given) for given in kinds if _given(given, left, right, condition) is not None]
    most = plain[-1]
    last = (replace(most, products=True), replace(most, decimals=True, products=True))
    for way in (*plain, *(replace(way, decimals=True) for way in plain), *last):
        found = claim_of(way, left, right, condition)
        if found is not None:
            yield way, found


def claim_of(way: Way, left: Graph, right: Graph, condition: Graph | None) -> ClaimWithPremises | None:
    """One claim about two programs, with short integers that count from the other end; None where it is no other."""
    found = _given(way.given, insert_wrapping(left), insert_wrapping(right), condition)
    if found is None:
        return None
    claim, texts = found
    for applies, change in ((way.decimals, with_decimals), (way.products, _WRITTEN_OUT)):
        if applies:
            one, other = change(claim.left), change(claim.right)
            if one is None and other is None:
                return None
            facts = _WRITTEN_OUT(claim.facts) if way.products and claim.facts is not None else None
            claim = Claim(one or claim.left, other or claim.right, facts=facts or claim.facts)
    return claim, (*texts, *([_DECIMALS] if way.decimals else []))


_WRITTEN_OUT: Callable[[Graph], Graph | None] = partial(written_out, products=True)


def _given(given: Given, left: Graph, right: Graph, condition: Graph | None) -> ClaimWithPremises | None:
    """The programs with what is known of their inputs; None where that is nothing more."""
    if given == "nothing":
        return Claim(left, right, facts=condition), ()
    if given == "marks":
        marked = with_marks(left, right) if condition is None else None  # which has other inputs
        return None if marked is None else (Claim(*marked[:2], facts=marked[2]), marked[3])
    facts, texts = facts_of(left, right, tables=given == "tables")
    if facts is None or (given == "tables" and texts == facts_of(left, right)[1]):
        return None
    return Claim(left, right, facts=facts if condition is None else _joined(facts, condition)), texts


def _joined(facts: Graph, condition: Graph) -> Graph:
    """The facts of two programs over inputs of the same names."""
    builder, inputs = GraphBuilder(), dict[str, int]()
    for graph in (facts, condition):
        for name, position in graph.outputs.items():
            builder.output(name, read_into(builder, graph, position, inputs))
    return builder.build()


def premises_of(left: Graph, right: Graph) -> tuple[str, ...]:
    """What any claim about two programs rests on, in words; raises Violated where no input meets a condition.

    Where infinities meet, the prover has their values, so that is no premise here.
    """
    sides = insert_wrapping(left), insert_wrapping(right)
    asked = open_obligations(sides, {}, ())
    asked = replace(asked, found=tuple(one for one in asked.found if not _is_of_infinities(one)))
    found = [REALS, *conditions(asked, lambda program, position: None)]
    for graph in sides:
        found += [text for text in graph.metadata.get("assumptions", "").split("; ") if text]
    return tuple(dict.fromkeys(found))


def _is_of_infinities(one: Obligation) -> bool:
    """Whether an operator on elements needs only that two infinities do not cancel, or are not compared."""
    record = one.node.op.record(one.node.type.dtype) if isinstance(one.node.op, Elementwise) else None
    return record is not None and not record.domain.bounds and one.condition == record.domain.needs != EVERYWHERE.needs
