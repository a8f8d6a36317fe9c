"""How much of a product a mask of places leaves, however the mask is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from rewright import ops
from rewright.frontends.torch.capture import capture
from rewright.optimize.planning.skipped import kept_share
from tests.optimize.programs import normal

LENGTH = 256
CAUSAL = 10 / 16  # tiles of 64 by 64, those of the diagonal included


def places() -> torch.Tensor:
    """How far behind its query a key is."""
    return torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None]


def chosen(s: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.where(places() >= 0, s, float("-inf")), -1)


def filled(s: torch.Tensor) -> torch.Tensor:
    return torch.softmax(s.masked_fill(places() < 0, float("-inf")), -1)


def added(s: torch.Tensor) -> torch.Tensor:
    return torch.softmax(s + torch.full((LENGTH, LENGTH), float("-inf")).triu(1), -1)


def every_second(s: torch.Tensor) -> torch.Tensor:
    return s.masked_fill(places() % 2 == 0, 0.0)


def unmasked(s: torch.Tensor) -> torch.Tensor:
    return torch.softmax(s + places() / 100, -1)


@pytest.mark.parametrize(
    ("weights", "share"),
    [(chosen, CAUSAL), (filled, CAUSAL), (added, CAUSAL), (every_second, 1.0), (unmasked, 1.0)],
)
def test_the_share_of_tiles(weights: Callable[[torch.Tensor], torch.Tensor], share: float) -> None:
    assert shares(lambda q, k, v: weights(q @ k.T) @ v) == [share, share]


def test_what_is_multiplied_by_masked_weights() -> None:
    """The gradients of weights are needed where these are no zeros."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (v @ v.T) * filled(q @ k.T)

    assert shares(run) == [CAUSAL, CAUSAL]


def test_a_mask_that_is_given_is_not_known() -> None:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.T).masked_fill(v[:, :1] > 0, 0.0)

    assert shares(run) == [1.0]


def shares(function: Callable[..., torch.Tensor]) -> list[float]:
    """Of the matrix products of a program, in order."""
    graph = capture(function, [normal(LENGTH, 8, seed=seed) for seed in range(3)])
    users = graph.users()
    products = [p for p in sorted(graph.live()) if isinstance(graph.nodes[p].op, ops.DotGeneral)]
    return [kept_share(graph, users, p) for p in products]
