"""What is known about each alternative: proved, tested, refuted, or neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rewright.env.alternatives import Alternative, AlternativeGraph
from rewright.env.claims import prove_alternative
from rewright.env.values import Test
from rewright.ir.text import print_graph

Status = Literal["proved", "tested", "refuted", "unknown"]


@dataclass(frozen=True)
class Evidence:
    """How an alternative is known; ``grade`` says how a proof holds: as that of :class:`rewright.env.claims.Proof`."""

    status: Status
    text: str
    grade: str = ""
    left: str = ""
    right: str = ""
    """The two sides of what was proved, as programs."""

    def __str__(self) -> str:
        grade = f" ({self.grade})" if self.grade else ""
        return f"{self.status}{grade}{': ' if self.text else ''}{self.text}"


def evidence_for(graph: AlternativeGraph, number: int, test: Test | None = None, seconds: float = 0.5) -> Evidence:
    """The evidence for an alternative: its proof, else its test; a test that failed outweighs a proof over the reals.

    What was proved over the reals and refuted on floats says so.
    """
    proof = prove_alternative(graph, number, seconds)
    if test is not None and test.agrees is False:
        reals = "equal over the reals, and not here: " if proof.proved else ""
        return Evidence("refuted", reals + test.what)
    if proof.proved:
        left, right = ("\n".join(print_graph(pair[side]) for pair in proof.pairs) for side in (0, 1))
        return Evidence("proved", "", proof.grade, left, right)
    if test is not None and test.agrees:
        return Evidence("tested", test.what)
    return Evidence("unknown", test.what if test is not None else proof.why)


def describe(alternative: Alternative) -> str:
    """The claim of an alternative in words."""
    places = f"{len(alternative.uses)} use{'s' if len(alternative.uses) != 1 else ''}"
    return f"%{alternative.value} = %{alternative.replacement} at {places}, by {alternative.provenance}"


def to_json(evidence: Evidence) -> dict[str, Any]:
    """The evidence as JSON."""
    return {
        "status": evidence.status,
        "text": evidence.text,
        "grade": evidence.grade,
        "left": evidence.left,
        "right": evidence.right,
    }
