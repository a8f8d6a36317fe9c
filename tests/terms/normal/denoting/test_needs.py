"""Where both sides of a claim are defined: reads at places that come from data."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import rewright as rw
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

TABLE, PLACES = torch.randn(11, 2), torch.arange(36) % 11


def as_one_row(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return table[places].view(4, 9, 2)


def as_a_rectangle(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return table[places.view(4, 9)]


def as_a_box(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    return table[places.view(4, 3, 3)].view(4, 9, 2)


@pytest.mark.parametrize("other", [as_a_rectangle, as_a_box])
def test_axes_of_places_may_be_one_axis_on_the_other_side(other: Callable[..., torch.Tensor]) -> None:
    sides = [rw.capture(program, (TABLE, PLACES)) for program in (as_one_row, other)]

    for left, right in (sides, sides[::-1]):
        outcome = prove(Claim(left, right))
        assert outcome.status == "proved", outcome.reason


def test_places_that_only_one_side_reads_have_to_be_in_range() -> None:
    def fewer(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return table[places[:27].view(3, 9)].sum(1)

    def more(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return table[places].view(4, 9, 2)[:3].sum(1)

    outcome = prove(Claim(rw.capture(fewer, (TABLE, PLACES)), rw.capture(more, (TABLE, PLACES))))

    assert outcome.status == "unknown" and "reads out of range" in outcome.reason
