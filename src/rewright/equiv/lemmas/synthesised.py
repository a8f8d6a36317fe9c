"""The rules that a pair of programs asked for: lemmas, for all sizes where that is proved, and where they were used."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from rewright.equiv.lemmas.equations import Prover
from rewright.proof.rewriting.lemma import Lemma
from rewright.rules.reading import canonical
from rewright.rules.scheme import Scheme

FOR_ALL_SIZES = "proved for all sizes"
FOR_SOME_SIZES = "proved for all sizes that it leaves free"
_SECONDS = 2.0
"""Seconds of CPU to make one rule of a lemma, so that a busy machine finds the same."""
_ALL_SECONDS = 6.0
_PLACES = 3
"""Places at which a rule was used that are named."""


@dataclass(frozen=True)
class SynthesisedRule:
    """An equation that nobody wrote: two programs asked for it, and it was proved."""

    name: str
    scheme: Scheme
    evidence: str
    """``"proved for all sizes"``, or all that it leaves free; else how its lemma was proved, at the sizes it has."""
    lemmas: tuple[Lemma, ...]
    """What it says at the sizes of these programs, and where."""
    earlier: bool = False
    """Whether it was known from another pair of programs."""

    @property
    def statement(self) -> str:
        """The equation; ``n0`` and so on are sizes, ``c0`` and so on numbers or tables that may be any."""
        return self.scheme.statement

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Source lines of both sides, wherever it was used."""
        return tuple(place for lemma in self.lemmas for place in lemma.places)

    def __str__(self) -> str:
        count, lines = len(self.places), list(dict.fromkeys(self.places))
        where = "; ".join(f"{left} and {right}" for left, right in lines[:_PLACES])
        more = f"; {len(lines) - _PLACES} more" if len(lines) > _PLACES else ""
        times = f"used {count} time{'s' if count != 1 else ''}{', at ' if where else ''}{where}{more}"
        known = ", known before" if self.earlier else ""
        return f"{self.name} ({self.evidence}{known}): {self.statement}; {times}"


def synthesise_rules(
    lemmas: Iterable[Lemma], prover: Prover, before: Collection[Scheme], deadline: float | None = None
) -> tuple[SynthesisedRule, ...]:
    """The rules that lemmas are instances of; ``before`` are those that are from other programs."""
    most = _ALL_SECONDS if deadline is None else min(_ALL_SECONDS, deadline - time.monotonic())
    ends = time.process_time() + most
    found: list[SynthesisedRule] = []
    for lemma in lemmas:
        left = min(_SECONDS, ends - time.process_time())
        scheme = prover.generalise(lemma.left, lemma.right, left) if left > 0 else None
        known = next((n for n, rule in enumerate(found) if rule.scheme is scheme), None)
        if known is not None:
            found[known] = replace(found[known], lemmas=(*found[known].lemmas, lemma))
            continue
        evidence = lemma.evidence
        if scheme is not None and scheme.is_general:
            evidence = FOR_SOME_SIZES if scheme.narrowed else FOR_ALL_SIZES
        scheme = scheme or Scheme(*canonical(lemma.left, lemma.right))
        found.append(SynthesisedRule(f"rule {len(found) + 1}", scheme, evidence, (lemma,), scheme in before))
    return tuple(found)
