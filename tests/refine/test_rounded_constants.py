"""Programs that differ in how constants are rounded, and programs that differ in the constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import rewright as rw
from rewright.proof.checker import audit
from rewright.proof.ledger import Refused
from rewright.refine.verdict import Verdict

Function = Callable[[torch.Tensor], torch.Tensor]

SAME: dict[str, tuple[Function, Function, str]] = {
    "a third": (lambda x: x / 3, lambda x: x * (1 / 3), "0.3333333333333333 for 1/3"),
    "decimals": (lambda x: x * 0.1 * 3, lambda x: x * 0.3, "0.1 for 1/10, 0.3 for 3/10"),
    "what is left of one": (lambda x: 0.9 * x, lambda x: x - 0.1 * x, "0.1 for 1/10, 0.9 for 9/10"),
    "a quotient of decimals": (lambda x: x * (0.1 / 30), lambda x: x * 0.1 / 30, "0.0033333333333333335 for 1/300"),
    "a root twice": (
        lambda x: x / 2,
        lambda x: x / math.sqrt(2) / math.sqrt(2),
        "1.4142135623730951 for the root of 2",
    ),
    "a root and its inverse": (
        lambda x: x / math.sqrt(6),
        lambda x: x * math.sqrt(0.5) * math.sqrt(1 / 3),
        "0.5773502691896257 for the root of 1/3",
    ),
    "behind a function": (
        lambda x: torch.tanh(x / 7),
        lambda x: torch.tanh(x * (1 / 7)),
        "0.14285714285714285 for 1/7",
    ),
    "single precision": (
        lambda x: x / 3,
        lambda x: x * float(torch.tensor(1 / 3)),
        "0.3333333432674408 for 1/3",
    ),
}
OTHER: dict[str, tuple[Function, Function]] = {
    "too few digits": (lambda x: x / 3, lambda x: x * 0.333333),
    "a digit beside the last": (lambda x: x / 3, lambda x: x * (1 / 3 + 1e-13)),
    "another third": (lambda x: x / 3, lambda x: x * (2 / 3)),
    "another root": (lambda x: x / 2, lambda x: x / math.sqrt(2) / math.sqrt(3)),
    "another sign": (lambda x: x / 3, lambda x: x * -(1 / 3)),
    "one root of two": (lambda x: x / 2, lambda x: x / math.sqrt(2)),
    "just below a whole number": (
        lambda x: x * torch.floor(torch.full_like(x, 3.0)),
        lambda x: x * torch.floor(torch.full_like(x, 2.9999999999999996)) + 0.1 * x - x / 10,
    ),
}


def compared(left: Function, right: Function) -> Verdict:
    sequential = rw.capture(lambda x: {"y": left(x)}, (torch.zeros(6, 4),))
    ranks = rw.capture_ranks(lambda mesh: ((lambda x: {"y": right(x)}), (torch.zeros(3, 4),)), {"dp": 2})
    return rw.refine(sequential, ranks, {"x": "Shard(0)"}, audit=True)


@pytest.mark.parametrize("name", SAME)
def test_constants_that_are_rounded_from_one_number(name: str) -> None:
    left, right, text = SAME[name]
    verdict = compared(left, right)
    assert verdict.status == "proved", verdict.reason
    assert verdict.evidence.value == "proved"
    assert any(text in assumption for assumption in verdict.assumptions), verdict.assumptions


@pytest.mark.parametrize("name", OTHER)
def test_other_constants(name: str) -> None:
    assert compared(*OTHER[name]).status != "proved"


def test_what_is_alike_rests_on_nothing() -> None:
    verdict = compared(lambda x: torch.tanh(x * 0.1) * 0.3, lambda x: 0.3 * torch.tanh(0.1 * x))
    assert verdict.status == "proved"
    assert len(verdict.assumptions) == 1


def test_a_certificate_says_what_constants_stand_for() -> None:
    verdict = compared(*SAME["a third"][:2])
    certificate = verdict.certificate
    assert certificate is not None
    assert verdict.programs is not None
    audit(certificate, *verdict.programs)
    silent = replace(certificate, assumptions=certificate.assumptions[:1])
    other = replace(certificate, assumptions=(*certificate.assumptions[:1], "constants are what they are"))
    for forged in (silent, other):
        with pytest.raises(Refused):
            audit(forged, *verdict.programs)
