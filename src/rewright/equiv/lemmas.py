"""Equations between small parts of two programs that were proved because the engine could not relate them."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewright.ir.digest import digest
from rewright.ir.graph import Graph
from rewright.terms.normal.assumptions import Claim
from rewright.terms.normal.prove import prove

SECONDS = 4.0
_HURRIED = 2.0
"""Seconds for a part of a program that is only asked about to confirm an edit."""
PROVED = "proved"
"""The evidence of a lemma that normal forms show for all inputs."""


@dataclass(frozen=True)
class Lemma:
    """Two small programs over the same inputs, and how it is known that they compute the same."""

    name: str
    left: Graph
    right: Graph
    evidence: str
    """``"proved"``: by normal forms, for all inputs at the sizes that the programs have, which may be symbols."""
    places: tuple[tuple[str, str], ...] = ()
    """Source lines of both sides, wherever it was used."""

    @property
    def key(self) -> str:
        """A digest of what it says."""
        return key_of(self.left, self.right)


def key_of(left: Graph, right: Graph) -> str:
    """A digest of the statement that two programs compute the same."""
    return digest(left) + digest(right)


@dataclass
class Prover:
    """Proves statements once each, and remembers what could not be proved."""

    seconds: float = SECONDS
    known: dict[str, bool] = field(default_factory=dict[str, bool])
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    attempts: int = 0

    def proves(self, left: Graph, right: Graph) -> bool:
        """Whether two programs over the same inputs are proved to compute the same for all inputs."""
        key = key_of(left, right)
        if key not in self.known:
            self.attempts += 1
            outcome = prove(Claim(left, right), self.seconds)
            self.known[key] = outcome.status == "proved"
            self.reasons[key] = outcome.reason
        return self.known[key]

    def hurried(self) -> Prover:
        """A prover that knows what this one knows and takes less time for what is new; it teaches this one nothing."""
        return Prover(min(self.seconds, _HURRIED), dict(self.known), dict(self.reasons))

    def why_not(self, left: Graph, right: Graph) -> str:
        """Why a statement that was tried is not proved."""
        return self.reasons.get(key_of(left, right)) or "no reason is known"


def described(lemma: Lemma) -> str:
    """One line about a lemma."""
    left, right = len(lemma.left.nodes), len(lemma.right.nodes)
    where = f", first at {lemma.places[0][0]} and {lemma.places[0][1]}" if lemma.places else ""
    count = len(lemma.places)
    return f"{lemma.name}: {left} operators = {right} operators ({lemma.evidence}), used {count} times{where}"
