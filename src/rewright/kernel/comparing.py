"""The program that was read of a kernel beside its reference: by ``equiv``, and where that is open by other ways."""

from __future__ import annotations

import time
from dataclasses import replace

from rewright.equiv import Equivalence, equiv
from rewright.ir.graph import Graph
from rewright.ir.rebuilding import remove_dead_nodes
from rewright.kernel.bounds import with_look_ups
from rewright.kernel.forms import by_normal_forms
from rewright.kernel.short_folds import written_out
from rewright.refine.alarm import PREFIX
from rewright.refine.verdict import Evidence

_SECONDS, _FORMS = 60.0, 30.0
"""How long proofs are looked for, and normal forms are computed, where nobody says."""
_MOST_OUTPUTS = 16
_WRITTEN_OUT = "short folds of the reference are written out in the certificate"


def compared(left: Graph, right: Graph, budget: float | None, explain: bool) -> Equivalence:
    """The verdict of the proof; where that is open, of its other forms, as long as ``budget`` seconds are left.

    These are: for inputs for which the kernel's look-ups are in bounds; with short folds of the reference written out;
    as one normal form; each output by itself.
    """
    deadline = time.monotonic() + (_SECONDS if budget is None else budget)
    verdict = equiv(left, right, budget=budget, explain=explain)
    if verdict.status != "unknown" or verdict.reason.startswith(PREFIX):  # an alarm
        return verdict
    bounded, short = with_look_ups(left, right), written_out(left)
    for sides, note in ((bounded, ""), (None if short is None else (short, right), _WRITTEN_OUT)):
        seconds = deadline - time.monotonic()
        if sides is not None and seconds > 0:
            again = equiv(*sides, budget=seconds, explain=False)
            if again.status == "proved":
                return replace(again, notes=(*again.notes, note)) if note else again
    whole = by_normal_forms(left, right, verdict, min(_FORMS, deadline - time.monotonic()))
    are_several = 1 < len(left.outputs) <= _MOST_OUTPUTS and set(left.outputs) <= set(right.outputs)
    if whole.status == "proved" or not are_several:
        return whole
    return _by_outputs(left if short is None else short, right, whole, deadline)


def _by_outputs(left: Graph, right: Graph, verdict: Equivalence, deadline: float) -> Equivalence:
    """The verdict where each output is proved by itself, by one way or another."""
    found: list[Equivalence] = []
    for name in left.outputs:
        sides = [remove_dead_nodes(replace(g, outputs={name: g.outputs[name]})) for g in (left, right)]
        if time.monotonic() > deadline:
            return verdict
        one = equiv(sides[0], sides[1], budget=deadline - time.monotonic(), explain=False)
        if one.status != "proved":
            one = by_normal_forms(sides[0], sides[1], one, min(_FORMS, deadline - time.monotonic()))
        if one.status != "proved":
            return verdict
        found.append(one)
    assumptions = tuple(dict.fromkeys(text for one in found for text in one.assumptions))
    return replace(
        verdict,
        status="proved",
        evidence=Evidence.PROVED,
        reason="each output is proved by itself (there is no certificate of all)",
        findings=(),
        certify=None,
        assumptions=assumptions,
    )
