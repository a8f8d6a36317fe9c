"""Rows that a mask leaves nothing of are no numbers in skipped tiles; what is known to be finite is not asked."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import rewright as rw
from rewright.optimize.phases import variants
from rewright.optimize.planning.plan import Plan
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.printing.tiles.kernel import lower
from rewright.optimize.printing.triton.renderer import render
from rewright.optimize.running.targets import Target
from rewright.optimize.scalars.finite import Certain, needs
from tests.optimize.programs import normal, places

INF = float("inf")
Mask = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Scores = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def selected(s: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return torch.softmax(s.masked_fill(~keep, -INF), -1)


def added(s: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    s = s + torch.where(keep, 0.0, -INF)
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def without_maximum(s: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    e = torch.exp(s) * keep
    return e / e.sum(-1, keepdim=True)


def program(weigh: Scores, mask: Mask, extremes: bool = False) -> Callable[..., Any]:
    """Attention that is written out, with sums of its columns, of which tiles are skipped, or with their extremes."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        i, j = places(q.shape[-2], k.shape[-2])
        p = weigh(q @ k.transpose(-1, -2) / 4, mask(i, j))
        return (p @ v, p.amax(-2), (p >= 0.01).any(-2)) if extremes else (p @ v, p.sum(-2), (p**2).sum(-2))

    return run


def random_mask(seed: int) -> Mask:
    """A condition that leaves nothing of some rows, or of none."""
    draw = random.Random(seed)
    a, b, c, d = draw.choice([-1, 1]), draw.choice([-1, 1, 2]), draw.randint(-60, 60), draw.randint(3, 60)
    if seed % 3 == 0:
        return lambda i, j: (a * i + b * j) >= c
    if seed % 3 == 1:
        return lambda i, j: (j <= i - c) & (j > i - c - d)
    return lambda i, j: (i // d == j // d + a) | (j < i - 100)


def arguments(size: int = 200) -> tuple[torch.Tensor, ...]:
    return tuple(normal(1, 2, size, 16, seed=s) for s in range(3))


def agrees(mine: Any, expected: Any) -> None:
    for a, b in zip(mine, expected, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-4, atol=1e-5)


@pytest.mark.sample(9)
@pytest.mark.parametrize("weigh", [selected, added, without_maximum])
@pytest.mark.parametrize("target", ["torch", "cpu"])
@pytest.mark.parametrize("seed", range(3))
def test_columns_of_rows_without_elements_are_no_numbers(weigh: Scores, target: Target, seed: int) -> None:
    run, args = program(weigh, random_mask(seed)), arguments()

    found = rw.optimize(run, args, target=target, verify=False, floor=False, remember=False)

    assert found.status == "proved", found.reason
    agrees(found(*args), run(*args))


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(2))
def test_extremes_of_columns_of_rows_without_elements_are_no_numbers(seed: int) -> None:
    run, args = program(selected, random_mask(seed), extremes=True), arguments()

    found = rw.optimize(run, args, target="cpu", verify=False, floor=False, remember=False)

    assert found.status == "proved", found.reason
    agrees(found(*args), run(*args))


@pytest.mark.slow
@pytest.mark.parametrize("weigh", [selected, added, without_maximum])
@pytest.mark.parametrize("seed", range(3, 24))
def test_columns_under_more_masks(weigh: Scores, seed: int) -> None:
    run, args = program(weigh, random_mask(seed), seed % 5 == 0), arguments(150 + seed)

    found = rw.optimize(run, args, target="cpu", verify=False, allow="tested", floor=False, remember=False)

    agrees(found(*args), run(*args))


def test_weights_that_are_returned_are_no_numbers_in_tiles_that_are_masked() -> None:
    """Rows are longer than a tile, so that some tiles are masked as a whole."""

    def run(s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        i, j = places(*s.shape)
        p = torch.softmax(s.masked_fill(j < 1500 * i, -INF), -1)
        return p, p.sum(-1)

    s = normal(5, 4500)
    s[1, 2000] = INF

    found = rw.optimize(run, (s,), target="cpu", verify=False, floor=False, remember=False)

    assert found.status == "proved", found.reason
    agrees(found(s), run(s))


def biased(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    i, j = places(q.shape[-2], k.shape[-2])
    p = torch.softmax((q @ k.transpose(-1, -2) + bias).masked_fill(j > i, -INF), -1)
    return p @ v, p.sum(-2)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_padding_that_is_read_leaves_nothing_of_a_row(target: Target) -> None:
    bias = torch.zeros(200)
    bias[:70] = -INF
    args = (*arguments(), bias)

    found = rw.optimize(biased, args, target=target, verify=False, floor=False, remember=False)

    assert found.status == "proved", found.reason
    assert found(*args)[1].isnan().all()
    agrees(found(*args), biased(*args))


def plan_of(run: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> Plan:
    return Planner(prepare_graph(rw.capture(run, args))).plan()


def asked(plan: Plan) -> list[bool]:
    """Of everything that tiles are skipped for, whether it is known to be finite."""
    found: list[bool] = []
    for kernel in plan.kernels:
        for sweep in kernel.sweeps:
            for taken in variants(plan.table, sweep).taken.values():
                values = needs(plan.graph, plan.table, kernel, sweep, taken)
                found += [False] if values is None else [Certain(plan).finite(kernel, e) for e in values]
    return found


MASKS: list[tuple[Mask, bool]] = [
    (lambda i, j: j <= i, True),
    (lambda i, j: j < i, False),
    (lambda i, j: (j <= i) & (j > i - 7), True),
    (lambda i, j: (j <= i) & (i // 50 == j // 50), True),
    (lambda i, j: (j <= i + 3) & (j > i + 3 - 7), True),
    (lambda i, j: (j <= i - 3) & (j > i - 9), False),
    (lambda i, j: (j + 199 - i) % 11 == 4, True),
    (lambda i, j: (j % 50 == 3) & (i < 190), False),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("mask", "known"), MASKS)
@pytest.mark.parametrize("weigh", [selected, without_maximum])
def test_a_row_is_a_number_where_its_mask_keeps_an_element(weigh: Scores, mask: Mask, known: bool) -> None:
    def run(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        return weigh(q @ k.transpose(-1, -2) / 4, mask(i, j)).sum(-2)

    found = asked(plan_of(run, arguments()[:2]))

    assert all(found) is known


def test_a_causal_mask_takes_no_look_in_triton_and_what_is_read_and_added_does() -> None:
    causal = plan_of(program(selected, lambda i, j: j <= i), arguments())
    padded = plan_of(biased, (*arguments(), torch.zeros(200)))

    assert not any("sound" in render(lower(causal, kernel)) for kernel in causal.kernels)
    assert any("sound" in render(lower(padded, kernel)) for kernel in padded.kernels)


@pytest.mark.parametrize("target", ["torch", "cpu"])
def test_a_root_that_may_be_of_a_negative_number_is_computed_under_a_mask_too(target: Target) -> None:
    """A row is no number where one of its roots is none, though a mask takes that one away."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        i, j = places(q.shape[-2], k.shape[-2])
        s = torch.sqrt(q @ k.transpose(-1, -2) + 100) + torch.where(j <= i, 0.0, -INF)
        p = torch.softmax(s, -1)
        return p @ v, p.sum(-2)

    q, k, v = arguments(300)
    k[..., 290, :] = -1000 * q[..., 3, :]

    found = rw.optimize(run, (q, k, v), target=target, verify=False, floor=False, remember=False)

    assert found.status == "proved", found.reason
    assert found(q, k, v)[0][..., 3, :].isnan().all()
    agrees(found(q, k, v), run(q, k, v))


def test_functions_of_squares_are_numbers_for_certain() -> None:
    """Their roots and quotients by them have no pole where something positive is added."""

    def run(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        i, j = places(q.shape[-2], k.shape[-2])
        s = 1 / (1 + (q @ k.transpose(-1, -2)) ** 2) * (j <= i)
        return (s / s.sum(-1, keepdim=True)).sum(-2)

    plan = plan_of(run, arguments()[:2])

    assert all(asked(plan))
    assert not any("sound" in render(lower(plan, kernel)) for kernel in plan.kernels)
