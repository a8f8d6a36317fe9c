"""The program that was read of a kernel beside its reference: by ``equiv``, and where that is open by other ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from rewright.equiv import Equivalence, equiv
from rewright.equiv.certificate import EquivalenceCertificate
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.kernel.certificate import KernelCertificate, Made, Part, certificate_of
from rewright.kernel.certificate import compared as sides_of
from rewright.kernel.forms import Way, claims, stated
from rewright.refine.alarm import PREFIX
from rewright.refine.verdict import Evidence, OutputRelation
from rewright.terms.normal.prove import prove

_SECONDS, _FORMS = 60.0, 30.0
"""How long proofs are looked for, and normal forms are computed, where nobody says."""
_MOST_OUTPUTS = 16
_WRITTEN_OUT = "short folds of the reference are written out in the certificate"


@dataclass(frozen=True)
class _Found:
    """A part that is proved: what its certificate is made of, and what it takes for granted."""

    outputs: tuple[str, ...]
    made: Made
    proof: Callable[[], Any] | Way
    assumptions: tuple[str, ...]

    def part(self) -> Part:
        proof = self.proof if isinstance(self.proof, Way) else cast("EquivalenceCertificate", self.proof())
        return Part(self.outputs, self.made, proof)


def compared(left: Graph, right: Graph, budget: float | None, explain: bool) -> Equivalence:
    """The verdict of the proof; where that is open, of its other forms, as long as ``budget`` seconds are left.

    These are: for inputs for which the kernel's look-ups are in bounds; with short folds of the reference written out;
    as one normal form; each output by itself.
    """
    deadline = time.monotonic() + (_SECONDS if budget is None else budget)
    verdict = equiv(left, right, budget=budget, explain=explain)
    outputs = tuple(left.outputs)
    if verdict.status != "unknown" or verdict.reason.startswith(PREFIX) or not set(outputs) <= right.outputs.keys():
        return verdict  # or an alarm
    ways: tuple[Made, Made] = ("with look-ups", "written out")
    for made in ways:
        found = _by_parts(left, right, outputs, made, deadline)
        if found is not None:
            notes = (_WRITTEN_OUT,) if made == "written out" else ()
            proved = _proved(verdict, left, right, [found], "both programs compute the same outputs")
            return replace(proved, notes=(*verdict.notes, *notes))
    whole = _by_normal_form(left, right, outputs, "as they are", min(deadline, time.monotonic() + _FORMS))
    if whole is not None:
        return _proved(verdict, left, right, [whole], "both programs have one normal form")
    each = _by_outputs(left, right, outputs, deadline) if 1 < len(outputs) <= _MOST_OUTPUTS else None
    return verdict if each is None else _proved(verdict, left, right, each, "each output is proved by itself")


def _proved(verdict: Equivalence, left: Graph, right: Graph, found: list[_Found], reason: str) -> Equivalence:
    """The verdict where all outputs are proved in parts."""

    def certificate() -> KernelCertificate:
        return certificate_of(left, right, tuple(one.part() for one in found))

    relation = {name: OutputRelation(name, "", f"{name} (left) = {name} (right)", None, True) for name in left.outputs}
    texts = dict.fromkeys((*verdict.assumptions, *(text for one in found for text in one.assumptions)))
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


def _by_parts(left: Graph, right: Graph, outputs: tuple[str, ...], made: Made, deadline: float) -> _Found | None:
    """Some outputs as ``equiv`` proves them of programs that are made of both."""
    sides, seconds = sides_of(made, outputs, left, right), deadline - time.monotonic()
    if sides is None or seconds <= 0:
        return None
    again = equiv(*sides, budget=seconds, explain=False)
    if again.status != "proved" or again.certify is None:
        return None
    return _Found(outputs, made, again.certify, again.assumptions)


def _by_normal_form(left: Graph, right: Graph, outputs: tuple[str, ...], made: Made, deadline: float) -> _Found | None:
    """Some outputs that have one normal form in both programs, under the conditions of some claim."""
    sides = sides_of(made, outputs, left, right)
    if sides is None:
        return None
    for way, (claim, texts) in claims(*sides):
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return None
        try:
            outcome = prove(claim, seconds)
            if outcome.status == "proved":
                return _Found(outputs, made, way, (*stated(*sides), *texts))
        except RewrightError:
            continue
    return None


def _by_outputs(left: Graph, right: Graph, outputs: tuple[str, ...], deadline: float) -> list[_Found] | None:
    """Each output by itself, by one way or another; None where one is open."""
    found: list[_Found] = []
    for name in outputs:
        made: Made = "as they are" if sides_of("written out", (name,), left, right) is None else "written out"
        one = _by_parts(left, right, (name,), made, deadline)
        if one is None:
            seconds = min(_FORMS, deadline - time.monotonic())
            one = _by_normal_form(left, right, (name,), made, time.monotonic() + seconds)
        if one is None:
            return None
        found.append(one)
    return found
