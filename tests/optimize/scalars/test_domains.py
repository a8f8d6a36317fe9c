"""What has to hold of a call's values for a program to be defined."""

from __future__ import annotations

import torch

from rewright.frontends.torch.capture import capture
from rewright.optimize.scalars.domains import Domain


def bias(table: torch.Tensor) -> torch.Tensor:
    """A number for each distance, by its logarithm: whether places are in range is not read off the formula."""
    apart = torch.arange(8)[:, None] - torch.arange(8)
    return table[(torch.log(apart.clamp(min=1).float()) * 2).long()]


def test_a_look_up_at_places_that_no_input_changes_is_looked_at_once() -> None:
    assert Domain.of(capture(bias, (torch.randn(4),))).obligations == ()


def test_one_that_is_out_of_range_stays_a_condition() -> None:
    domain = Domain.of(capture(bias, (torch.randn(3),)))

    assert len(domain.obligations) == 1
    assert "reads out of range" in domain.violation({})


def test_places_that_are_given_are_looked_at_in_every_call() -> None:
    domain = Domain.of(capture(lambda table, places: table[places], (torch.randn(4), torch.tensor([0, 3]))))

    assert domain.violation({"places": torch.tensor([0, 3])}) == ""
    assert "reads out of range" in domain.violation({"places": torch.tensor([0, 4])})
