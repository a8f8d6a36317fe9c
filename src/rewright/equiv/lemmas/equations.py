"""Equations between small parts of two programs that were proved because the engine could not relate them."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.proof.rewriting.evidence import SECONDS, proves
from rewright.proof.rewriting.lemma import key_of
from rewright.rules.generalisation import generalise
from rewright.rules.reading import canonical
from rewright.rules.scheme import Scheme
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

_HURRIED = 2.0
"""Seconds for a part of a program that is only asked about to confirm an edit."""


@dataclass
class Prover:
    """Proves statements once each, and remembers what could not be proved."""

    seconds: float = SECONDS
    known: dict[str, bool] = field(default_factory=dict[str, bool])
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    attempts: int = 0
    schemes: list[Scheme] = field(default_factory=list[Scheme])
    """Proved for all sizes; what is an instance of one needs no proof."""
    claimed: list[Scheme] = field(default_factory=list[Scheme])
    """From a file: each is proved when it is first of use."""

    def proves(self, left: Graph, right: Graph) -> bool:
        """Whether two programs over the same inputs are proved to compute the same for all inputs."""
        key = key_of(left, right)
        if key not in self.known and self.covering(left, right) is not None:
            self.known[key] = True
        if key not in self.known:
            self.attempts += 1
            reason = proves(Claim(left, right), self.seconds)
            self.known[key] = reason is None
            self.reasons[key] = reason or ""
        return self.known[key]

    def covering(self, left: Graph, right: Graph) -> Scheme | None:
        """A proved scheme that has two programs as an instance."""
        if not self.schemes and not self.claimed:
            return None
        sides = canonical(left, right)
        for scheme in self.schemes:
            if scheme.covers_canonical(sides):
                return scheme
        for scheme in [scheme for scheme in self.claimed if scheme.covers_canonical(sides)]:
            self.claimed.remove(scheme)
            if self._holds(scheme):
                self.schemes.append(scheme)
                return scheme
        return None

    def generalise(self, left: Graph, right: Graph, seconds: float) -> Scheme | None:
        """A proved scheme that has two programs as an instance; it is made from them where there is none yet."""
        found = self.covering(left, right)
        if found is None:
            found = generalise(left, right, seconds)
            if found is not None:
                self.schemes.append(found)
        return found

    def _holds(self, scheme: Scheme) -> bool:
        try:
            claim = scheme.rule.claim()
        except RewrightError:
            return False
        if scheme.is_general:
            return prove(claim, self.seconds).status == "proved"
        return proves(claim, self.seconds) is None

    def hurry(self) -> Prover:
        """A prover that knows what this one knows and takes less time for what is new; it teaches this one nothing."""
        seconds = min(self.seconds, _HURRIED)
        return Prover(seconds, dict(self.known), dict(self.reasons), 0, list(self.schemes), list(self.claimed))

    def why_not(self, left: Graph, right: Graph) -> str:
        """Why a statement that was tried is not proved."""
        return self.reasons.get(key_of(left, right)) or "no reason is known"

    def why_open(self, claim: Claim, seconds: float) -> str | None:
        """Why a claim is not proved; None where it is, or is known to be."""
        if claim.facts is not None:
            return proves(claim, seconds)
        return None if self.proves(claim.left, claim.right) else self.why_not(claim.left, claim.right)
