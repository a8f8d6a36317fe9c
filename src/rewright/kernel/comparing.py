"""The program that was read of a kernel beside its reference: by ``equiv``, and where that is open by other ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from rewright.equiv import Equivalence, equiv
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.kernel.certificate import KernelCertificate, Part, Variant, certificate_of, in_words, programs_of, said_of
from rewright.kernel.forms import Way, claims, premises_of
from rewright.refine.alarm import PREFIX
from rewright.refine.verdict import Evidence, OutputRelation
from rewright.terms.normal.prove import prove

_SECONDS = 60.0
"""How long proofs are looked for where nobody says."""
_SHARE = 0.6
"""What part of that is for proofs by parts, and of what is left for one normal form."""
_MOST_OUTPUTS = 16
_VARIANTS: tuple[Variant, ...] = ("with look-ups", "with infinities", "written out")
_WRITTEN_OUT = "short folds of the reference are written out in the certificate"


@dataclass(frozen=True)
class _Found:
    """A part that is proved: what its certificate is made of, and what it takes for granted."""

    outputs: tuple[str, ...]
    variant: Variant
    proof: Callable[[], Any] | Way
    assumptions: tuple[str, ...]

    def part(self) -> Part:
        proof = self.proof if isinstance(self.proof, Way) else cast("EquivalenceCertificate", self.proof())
        return Part(self.outputs, self.variant, proof)


def compared(
    left: Graph, right: Graph, budget: float | None, explain: bool, condition: Graph | None = None
) -> Equivalence:
    """The verdict of the proof; where that is open, of its other forms, as long as ``budget`` seconds are left.

    ``condition`` is what inputs meet, as facts: a difference on others is none.

    These are: as one normal form; for inputs for which the kernel's look-ups are in bounds; with minus infinity where
    masks fill in large negative numbers; with short folds of the reference written out; each output by itself.
    """
    deadline = time.monotonic() + (_SECONDS if budget is None else budget)
    verdict = equiv(left, right, budget=None if budget is None else _SHARE * budget, explain=explain)
    if condition is not None and verdict.status == "refuted":
        reason = f"{verdict.reason}, on inputs that may not meet the condition"
        verdict = replace(verdict, status="unknown", reason=reason, findings=())
    outputs = tuple(left.outputs)
    if verdict.status != "unknown" or verdict.reason.startswith(PREFIX) or not set(outputs) <= right.outputs.keys():
        return verdict  # or an alarm
    search = _Search(left, right, condition, deadline)
    whole = search.by_normal_form(outputs, "as they are")
    if whole is not None:
        return search.proved(verdict, [whole], "both programs have one normal form")
    for variant in _VARIANTS:
        found = search.by_parts(outputs, variant)
        if found is not None:
            notes = (_WRITTEN_OUT,) if variant == "written out" else ()
            proved = search.proved(verdict, [found], "both programs compute the same outputs")
            return replace(proved, notes=(*verdict.notes, *notes))
    whole = search.by_normal_form(outputs, "with infinities")
    if whole is not None:
        return search.proved(verdict, [whole], "both programs have one normal form")
    each = search.by_outputs(outputs) if 1 < len(outputs) <= _MOST_OUTPUTS else None
    if each is not None:
        return search.proved(verdict, each, "each output is proved by itself")
    if search.violated:
        return replace(verdict, reason=f"both programs have one normal form, and {search.violated[0]}")
    return verdict


@dataclass(frozen=True)
class _Search:
    """Two programs, what their inputs meet, and until when ways to prove them are tried."""

    left: Graph
    right: Graph
    condition: Graph | None
    deadline: float
    violated: list[str] = field(default_factory=list[str])
    """What must hold for a normal form that both programs have, and holds for no input."""

    def proved(self, verdict: Equivalence, found: list[_Found], reason: str) -> Equivalence:
        """The verdict where all outputs are proved in parts."""
        left, right, condition = self.left, self.right, self.condition

        def certificate() -> KernelCertificate:
            return certificate_of(left, right, tuple(one.part() for one in found), condition)

        names = left.outputs
        relation = {name: OutputRelation(name, "", f"{name} (left) = {name} (right)", None, True) for name in names}
        texts = dict.fromkeys(verdict.assumptions)
        texts |= dict.fromkeys(() if condition is None else in_words(condition))
        texts |= dict.fromkeys(text for one in found for text in one.assumptions)
        return replace(
            verdict,
            status="proved",
            evidence=Evidence.PROVED,
            reason=reason,
            findings=(),
            relation=relation,
            certify=cast("Any", certificate),
            assumptions=tuple(texts),
        )

    def by_parts(self, outputs: tuple[str, ...], variant: Variant) -> _Found | None:
        """Some outputs as ``equiv`` proves them of programs that are made of both."""
        sides, seconds = programs_of(variant, outputs, self.left, self.right), self.deadline - time.monotonic()
        if sides is None or seconds <= 0:
            return None
        again = equiv(*sides, budget=seconds, explain=False)
        if again.status != "proved" or again.certify is None:
            return None
        return _Found(outputs, variant, again.certify, (*said_of(variant), *again.assumptions))

    def by_normal_form(self, outputs: tuple[str, ...], variant: Variant) -> _Found | None:
        """Some outputs that have one normal form in both programs, under the conditions of some claim."""
        sides = programs_of(variant, outputs, self.left, self.right)
        if sides is None:
            return None
        deadline = time.monotonic() + _SHARE * (self.deadline - time.monotonic())
        for way, (claim, texts) in claims(*sides, self.condition):
            seconds = deadline - time.monotonic()
            if seconds <= 0:
                return None
            try:
                if prove(claim, seconds).status != "proved":
                    continue
            except RewrightError:
                continue
            try:
                return _Found(outputs, variant, way, (*said_of(variant), *premises_of(*sides), *texts))
            except RewrightError as error:
                self.violated.append(str(error))
        return None

    def by_outputs(self, outputs: tuple[str, ...]) -> list[_Found] | None:
        """Each output by itself, by one way or another; None where one is open."""
        found: list[_Found] = []
        for name in outputs:
            is_short = programs_of("written out", (name,), self.left, self.right) is not None
            variant: Variant = "written out" if is_short else "as they are"
            one = self.by_parts((name,), variant) or self.by_normal_form((name,), variant)
            if one is None:
                return None
            found.append(one)
        return found
