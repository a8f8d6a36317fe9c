"""What is known about a rule after a proof and a search for a counterexample."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from rewright.ir.errors import RewrightError
from rewright.rules.counterexample import Counterexample, find
from rewright.rules.rule import Rule
from rewright.terms.normal.denoting.functions import Grade
from rewright.terms.normal.prove import Outcome, may_hold, prove

Status = Literal["proved", "refuted", "unknown"]
GRADES: tuple[Grade, ...] = ("move", "assoc", "real")
"""From the strongest: bit-exact data movement, one sum reassociated, identities of real numbers."""


@dataclass(frozen=True)
class RuleVerdict:
    """The outcome for a rule: proved with a grade, refuted with a counterexample, or unknown with the reason."""

    rule: Rule
    status: Status
    grade: Grade | None
    reason: str
    counterexample: Counterexample | None
    outcome: Outcome
    seconds: float


def judge(rule: Rule, budget: float = 10.0, search: bool = True) -> RuleVerdict:
    """Prove a rule, or look for a counterexample where that fails; all of it within the budget in seconds.

    Raises RewrightError where the conditions of the rule contradict each other.
    """
    started = time.monotonic()
    grade, outcome = prove_graded(rule, budget * 0.7)
    if outcome.status == "vacuous" or not may_hold(rule.claim()):
        raise RewrightError(
            f"rule {rule.name!r} holds for nothing: its conditions and the validity of its left side contradict "
            "each other; correct the conditions"
        )
    if outcome.status == "proved":
        return RuleVerdict(rule, "proved", grade, "", None, outcome, time.monotonic() - started)
    left = budget - (time.monotonic() - started)
    found = find(rule, outcome.sizes, seconds=left) if search and left > 0 else None
    status: Status = "refuted" if found is not None else "unknown"
    return RuleVerdict(rule, status, None, outcome.reason, found, outcome, time.monotonic() - started)


def prove_graded(rule: Rule, budget: float) -> tuple[Grade | None, Outcome]:
    """The proof of the strongest grade that succeeds; where none does, what came of the weakest."""
    deadline = time.monotonic() + budget
    # Identities of reals decide whether there is a proof at all, so they come first and have most of the time.
    weakest = prove(rule.claim(), budget * 0.8, "real")
    if weakest.status != "proved":
        return None, weakest
    for grade in GRADES[:-1]:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        outcome = prove(rule.claim(), left, grade)
        if outcome.status == "proved":
            outcome.queries += weakest.queries
            return grade, outcome
    return "real", weakest
