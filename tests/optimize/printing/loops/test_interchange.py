"""Rows as the innermost loop of kernels in C++: where neighbours in memory are rows, and what comes out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import rewright as rw
from rewright.optimize.api import Optimized
from tests.optimize.programs import normal

Program = Callable[[torch.Tensor], torch.Tensor | tuple[torch.Tensor, ...]]


def kernels(program: Program, x: torch.Tensor) -> Optimized:
    found = rw.optimize(program, (x,), target="cpu", floor=False, remember=False)
    assert found.status == "proved" and found.runner is not None, found.reason
    return found


def loops(found: Optimized) -> str:
    """The counters of loops over tiles and rows, in the order of the code."""
    assert found.printed is not None
    lines = [line.strip() for source in found.printed.sources for line in source.text.splitlines()]
    heads = [line.removeprefix("for (long ").partition(" ")[0] for line in lines if line.startswith("for (long ")]
    return "".join(head for head in heads if head in ("r", "c"))


def moments(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(-2), x.var(-2, correction=0), x.exp().mean(-2)


def extrema(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.amax(-2), x.amin(-2), x.argmax(-2), x.max(-2).values * 2


def weights(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.softmax(x, -2), torch.logsumexp(x, -2), x - x.mean(-2, keepdim=True)


def conditions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (x > 2).any(-2), (x > -3).all(-2), (x > 0).sum(-2), (x * 1000).long().sum(-2)


def shares(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Columns are side by side; each row has a maximum and a sum, which are read once for all of them."""
    return (torch.softmax(x, -1).mean(-2),)


PROGRAMS: dict[str, Program] = {f.__name__: f for f in (moments, extrema, weights, conditions, shares)}
SHAPES = [(7, 16), (130, 33), (3, 129), (1, 40), (65, 17), (2, 65, 40), (4, 3, 130), (2, 2, 5, 64)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_are_what_they_are_in_float64(name: str, shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    found = kernels(PROGRAMS[name], x)

    for got, exact, own in zip(found(x), PROGRAMS[name](x.double()), PROGRAMS[name](x), strict=True):
        if own.is_floating_point():
            torch.testing.assert_close(got.double(), exact, rtol=2e-6, atol=1e-5, equal_nan=True)
        else:
            assert torch.equal(got, own)


def test_ties_infinities_and_no_numbers() -> None:
    x = normal(70, 32).round()
    x[0, 1], x[69, 2], x[:, 3], x[5, 4], x[5, 5] = torch.nan, torch.nan, -torch.inf, torch.inf, -torch.inf
    for program in (extrema, weights, shares):
        for got, own in zip(kernels(program, x)(x), program(x), strict=True):
            torch.testing.assert_close(got, own, equal_nan=True)


def test_large_numbers_do_not_overflow_in_between() -> None:
    x = normal(300, 32) * 1e4

    for got, exact in zip(kernels(weights, x)(x), weights(x.double()), strict=True):
        torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-2)


def test_a_long_sum_has_the_error_of_a_short_one() -> None:
    x = torch.full((100_000, 16), 0.1)

    (total,) = [kernels(lambda x: (x.sum(0),), x)(x)[0]]

    torch.testing.assert_close(total.double(), x.double().sum(0), rtol=1e-6, atol=0)


def test_rows_that_are_side_by_side_are_the_inner_loop() -> None:
    assert "cr" in loops(kernels(moments, normal(130, 64)))


@pytest.mark.parametrize(
    ("program", "shape"),
    [(lambda x: torch.softmax(x, -1), (64, 130)), (lambda x: (x @ x.T).softmax(0), (64, 32))],
    ids=["rows", "products"],
)
def test_rows_that_are_not_stay_the_outer_loop(program: Program, shape: tuple[int, int]) -> None:
    assert "cr" not in loops(kernels(program, normal(*shape))).replace("rc", "")


def test_what_columns_share_does_not_turn_loops() -> None:
    """Two tensors of one element a row of x are beside x itself, of which no tile is turned in memory."""
    found = kernels(shares, normal(300, 200))

    assert found.printed is not None
    assert not any("across" in source.text for source in found.printed.sources)
