"""Programs that work in tiles against those that take all at once: ends of ranges, edges of masks, skipped tiles."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import rewright as rw
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

Program = Callable[..., torch.Tensor]
TILE, COUNT = 16, 50
"""Three whole tiles and two elements of a fourth."""


def status(left: Program, right: Program, *args: torch.Tensor) -> str:
    one, other = (rw.capture(f, args, validate=False) for f in (left, right))
    return prove(Claim(one, other), 10.0).status


def in_tiles(x: torch.Tensor, count: int = COUNT) -> torch.Tensor:
    """The sum of rows, tile by tile, each with zeros where nothing is left."""
    padded = torch.nn.functional.pad(x, (0, 4 * TILE - x.shape[-1]))
    inside = torch.arange(4 * TILE) < count
    return torch.where(inside, padded, 0.0).unflatten(-1, (4, TILE)).sum(-1).sum(-1)


@pytest.mark.parametrize(("count", "wanted"), [(COUNT, "proved"), (COUNT - 1, "unknown")])
def test_a_statistic_in_tiles_stands_in_a_quotient_and_under_a_maximum(count: int, wanted: str) -> None:
    def at_once(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt((x * x).sum(-1) + (x * y).sum(-1).square() + 1.0)
        return (x.abs() * scale[:, None]).amax(-1)

    def by_tiles(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt(in_tiles(x * x, count) + in_tiles(x * y, count).square() + 1.0)
        return (x.abs() * scale[:, None]).amax(-1)

    assert status(at_once, by_tiles, torch.randn(3, COUNT), torch.randn(3, COUNT)) == wanted


@pytest.mark.parametrize(("divisor", "wanted"), [(COUNT, "proved"), (COUNT - 1, "unknown")])
def test_a_deviation_from_the_mean_of_tiles(divisor: int, wanted: str) -> None:
    """The mean of squares less the square of the mean is not negative, whatever the tiles."""

    def at_once(x: torch.Tensor) -> torch.Tensor:
        mean = x.sum(-1) / COUNT
        return torch.sqrt((x * x).sum(-1) / COUNT - mean * mean)

    def by_tiles(x: torch.Tensor) -> torch.Tensor:
        first, last = x[:, :48], x[:, 48:]
        squares, total = (first * first).sum(-1) + (last * last).sum(-1), first.sum(-1) + last.sum(-1)
        return torch.sqrt(squares / COUNT - total * total / (COUNT * divisor))

    assert status(at_once, by_tiles, torch.randn(3, COUNT)) == wanted


@pytest.mark.parametrize(("window", "wanted"), [(7, "proved"), (6, "unknown")])
def test_a_window_over_tiles_of_keys(window: int, wanted: str) -> None:
    """Queries see the keys of a window behind them, which begins and ends within tiles."""
    size = 53

    def at_once(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        apart = torch.arange(size)[:, None] - torch.arange(size)
        weights = torch.where((apart >= 0) & (apart < 7), scores, float("-inf")).softmax(-1)
        return weights @ values

    def by_tiles(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        keys = torch.arange(4 * TILE).unflatten(0, (4, TILE))
        apart = torch.arange(size)[:, None, None] - keys
        wide = torch.nn.functional.pad(scores, (0, 4 * TILE - size)).unflatten(1, (4, TILE))
        seen = (apart >= 0) & (apart < window)
        weights = torch.where(seen, wide.exp(), 0.0)
        deep = torch.nn.functional.pad(values, (0, 0, 0, 4 * TILE - size)).unflatten(0, (4, TILE))
        added = (weights[..., None] * deep).sum(2).sum(1)
        return added / weights.sum(2).sum(1)[:, None]

    assert status(at_once, by_tiles, torch.randn(size, size), torch.randn(size, 2)) == wanted


@pytest.mark.parametrize(("kind", "wanted"), [("all", "proved"), ("one", "unknown")])
def test_a_tile_whose_elements_all_count_needs_no_mask(kind: str, wanted: str) -> None:
    """What is true of all elements of a tile is true of the one at hand; what is true of one of them is not."""

    def at_once(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.where((x[:, None] >= y).any(1), 1.0, 0.0)

    def skipping(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        seen = (x[:, None] >= y).any(1)
        whole = seen.all() if kind == "all" else seen.any()
        return torch.where(whole | seen, 1.0, 0.0)

    assert status(at_once, skipping, torch.randn(TILE), torch.randn(20)) == wanted


@pytest.mark.parametrize(("most", "wanted"), [(0.0, "proved"), (1.0, "unknown")])
def test_of_two_equal_numbers_either_may_be_the_larger(most: float, wanted: str) -> None:
    """``exp(min(d, 0))`` by cases: where d is zero both are one; with ``exp(1)`` in one of them they are not."""

    def one_way(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        apart = a[:, None] - a
        return (torch.where(apart >= 0, 1.0, apart.exp()) * x).sum(-1)

    def other_way(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        apart = a[:, None] - a
        return (torch.where(apart <= 0, (apart + (apart == 0) * most).exp(), 1.0) * x).sum(-1)

    assert status(one_way, other_way, torch.randn(20), torch.randn(20)) == wanted
