"""Places that depend on sizes alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import rewright as rw
from rewright.ir.digest import digest
from rewright.optimize.sizes.bounding import STATED, bound_places
from tests.optimize.programs import normal

ROWS = 24


class Positions(nn.Module):
    """Tokens with learned positions, for as many as the table has."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(50, 8), nn.Embedding(ROWS, 8), nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.words(x) + self.places(torch.arange(x.shape[1])))


def test_learned_positions_have_one_plan_for_all_lengths() -> None:
    module = Positions().requires_grad_(False)
    tokens = torch.randint(50, (2, ROWS), generator=torch.Generator().manual_seed(0))
    named = {"x": {0: "batch", 1: "tokens"}}
    fast = rw.optimize(module, (tokens[:, :10],), target="cpu", dynamic=named, floor=False)

    assert (fast.status, fast.notes) == ("proved", [])
    assert STATED in fast.trust.assumptions
    for length in (1, 7, ROWS):
        torch.testing.assert_close(fast(tokens[:1, :length]), module(tokens[:1, :length]))
    assert not fast.notes
    with pytest.raises(IndexError):  # the program's own, one position after the last
        fast(torch.zeros(1, ROWS + 1, dtype=torch.int64))


def test_places_that_are_given_and_numbers_stay_as_they_are() -> None:
    def program(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        return table[places] + table[torch.arange(3)][0]

    given = normal(5, 4), torch.tensor([1, 2, 3])
    named = {"places": {0: "count"}}
    for graph in (rw.capture(program, given), rw.capture(program, given, dynamic=named)):
        assert digest(bound_places(graph)) == digest(graph)
