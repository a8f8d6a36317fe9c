"""Bugs that people have had: the right program is proved, the wrong one refuted at the place of the bug."""

from __future__ import annotations

import pytest

from bench.history import MOST, distance, verdict
from zoo.patterns import PATTERNS

OPEN = frozenset({"own count of tokens overwritten by the sum"})
"""Right programs that are not proved yet: a one-hot adds up to one, added up over tokens before it is over experts."""
FAR = frozenset(
    {
        "stages clipped by their own norm",
        "gathered logits in a loss over parts of the vocabulary",
        "seed of a loader drawn on one rank",
    }
)
"""Wrong programs that are refuted at another line."""


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", [name for name in PATTERNS if name not in OPEN])
def test_the_right_program_is_proved(name: str) -> None:
    found = verdict(PATTERNS[name], wrong=False)
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", [name for name in PATTERNS if name not in FAR])
def test_the_bug_is_refuted_near_its_place(name: str) -> None:
    pattern = PATTERNS[name]
    found = verdict(pattern, wrong=True)
    assert found.status == "refuted"
    off = distance(pattern, found.findings[0])
    assert off is not None and off <= MOST


@pytest.mark.parametrize("name", sorted(OPEN))
def test_a_right_program_without_a_proof_is_unknown(name: str) -> None:
    assert verdict(PATTERNS[name], wrong=False).status == "unknown"


@pytest.mark.parametrize("name", sorted(FAR))
def test_a_bug_at_another_line_is_refuted_all_the_same(name: str) -> None:
    assert verdict(PATTERNS[name], wrong=True).status == "refuted"


def test_many_bugs_are_in_backward_passes_and_leave_the_loss_right() -> None:
    names = [name for name, pattern in PATTERNS.items() if pattern.gradient]
    assert len(names) >= 8
    for name in names[:3]:
        assert verdict(PATTERNS[name], wrong=True).relation["loss"].holds
