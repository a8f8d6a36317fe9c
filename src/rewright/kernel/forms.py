"""Proofs where both programs have one normal form as a whole, which needs no parts to be related.

The prover of rules decides that. There is no certificate, which the verdict says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from rewright.equiv import Equivalence
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.kernel.bounds import facts_of
from rewright.kernel.constants import with_decimals
from rewright.kernel.marks import with_marks
from rewright.kernel.short_folds import written_out
from rewright.refine.verdict import Evidence
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

_DECIMALS = "a number of few digits is that decimal, and a rounded 1/n is 1/n: 0.1 stands for 1/10"


def by_normal_forms(left: Graph, right: Graph, verdict: Equivalence, seconds: float) -> Equivalence:
    """The verdict, or *proved* where both programs have one normal form, under the conditions that it lists."""
    deadline = time.monotonic() + seconds
    for claim, assumed in _claims(left, right):
        left_over = deadline - time.monotonic()
        if left_over <= 0:
            break
        try:
            outcome = prove(claim, left_over)
        except RewrightError:
            continue
        if outcome.status == "proved":
            reason = "both programs have one normal form; there is no certificate"
            assumptions = tuple(dict.fromkeys((*verdict.assumptions, *assumed)))
            return replace(
                verdict,
                status="proved",
                evidence=Evidence.PROVED,
                reason=reason,
                findings=(),
                certify=None,
                assumptions=assumptions,
            )
    return verdict


def _claims(left: Graph, right: Graph) -> Iterator[tuple[Claim, tuple[str, ...]]]:
    """What to try, the fewest conditions first."""
    found: list[tuple[Claim, tuple[str, ...]]] = [(Claim(left, right), ())]
    facts, texts = facts_of(left, right)
    if facts is not None:
        found.append((Claim(left, right, facts=facts), texts))
    wide, wide_texts = facts_of(left, right, tables=True)
    if wide is not None and wide_texts != texts:
        found.append((Claim(left, right, facts=wide), wide_texts))
    marked = with_marks(left, right)
    if marked is not None:
        found.append((Claim(*marked[:2], facts=marked[2]), marked[3]))
    decimals = [
        (Claim(one or claim.left, other or claim.right, facts=claim.facts), (*assumed, _DECIMALS))
        for claim, assumed in found
        for one, other in [(with_decimals(claim.left), with_decimals(claim.right))]
        if one is not None or other is not None
    ]
    yield from (*found, *decimals)
    for claim, assumed in [*found[-1:], *decimals[-1:]]:
        one, other = written_out(claim.left, products=True), written_out(claim.right, products=True)
        if one is not None or other is not None:
            facts = claim.facts and (written_out(claim.facts, products=True) or claim.facts)
            yield Claim(one or claim.left, other or claim.right, facts=facts), assumed
