"""Random numbers of two implementations on one device: the same numbers, or it is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import rewright as rw
from rewright.equiv.engine import Equivalence
from rewright.ir.unknowns import UNKNOWN, unknowns

Program = Callable[[torch.Tensor], torch.Tensor]
X = torch.zeros(4, 6)


def compared(left: Program, right: Program) -> Equivalence:
    return rw.equiv(rw.capture(left, (X,)), rw.capture(right, (X,)))


def uniform(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rand(4, 6)


def seeded(seed: int) -> Program:
    def program(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(seed)
        return x * torch.rand(4, 6)

    return program


def second(x: torch.Tensor) -> torch.Tensor:
    torch.rand(3)
    return x * torch.rand(4, 6)


def dropped(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x, 0.5)


def test_one_state_gives_the_same_numbers() -> None:
    def masked(x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.rand(4, 6) < 0.5, x, 0) * 2

    assert compared(dropped, masked).status == "proved"
    assert compared(seeded(1), seeded(1)).status == "proved"


@pytest.mark.parametrize("right", [seeded(2), uniform], ids=["another seed", "no seed"])
def test_a_seed_fixes_numbers_that_are_not_those_of_another_state(right: Program) -> None:
    verdict = compared(seeded(1), right)
    assert verdict.status == "unknown"
    assert "a seed that a program sets" in verdict.reason


def test_numbers_of_a_stream_that_are_matched_in_order_are_an_assumption() -> None:
    verdict = compared(uniform, second)
    assert verdict.status == "proved"
    assert any("in order" in line for line in verdict.assumptions)


def test_a_draw_of_one_program_is_not_two_of_the_other() -> None:
    def once(x: torch.Tensor) -> torch.Tensor:
        kept = torch.rand(4, 6)
        return x * kept + x * kept

    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * torch.rand(4, 6) + x * torch.rand(4, 6)

    assert compared(twice, once).status == "unknown"


def test_numbers_without_a_stream_are_not_those_of_a_seed() -> None:
    """Programs of other doors say what they draw and where, and not from which state."""
    left = rw.capture(uniform, (X,))
    left = replace(left, metadata={UNKNOWN + name: what for name, what in unknowns(left).items()})
    assert rw.equiv(left, rw.capture(seeded(1), (X,))).status == "unknown"
