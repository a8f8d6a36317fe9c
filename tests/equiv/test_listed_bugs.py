"""Root causes of public bug reports: the right pair is proved, the wrong one refuted, and the operator is named."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

from tests.equiv.listed_bugs import BUGS, named

ELSEWHERE = {
    "no soft-cap",
    "halves rotated for neighbours",
    "no factor of logits",
    "the part that is rotated halved twice",
    "the bias of attention ignored",
    "tanh for erf",
    "a weight that is multiplied after the cast",
}
"""The same bugs are in ``test_bugs.py`` and ``test_precision.py``."""
SLOW = {"a softmax after the choice for one before"} | ELSEWHERE
CASES = [
    pytest.param(name, dtype, marks=pytest.mark.slow if name in SLOW or dtype is torch.bfloat16 else ())
    for name in BUGS
    for dtype in (torch.float32, torch.bfloat16)
]


@pytest.mark.sample(6)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_the_right_pair_is_proved_and_the_wrong_one_refuted(name: str, dtype: torch.dtype) -> None:
    bug = BUGS[name]
    right = bug.pair(dtype, wrong=False)
    assert right.status == "proved", right.reason
    verdict = bug.pair(dtype, wrong=True)
    if not bug.is_wrong:
        assert verdict.status == "proved"
        return
    assert verdict.status == "refuted"
    assert named(bug, verdict.findings) == 1, verdict.findings
