"""Gradients of attention around a ring: right ones are proved and confirmed, and each slip is refuted."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from unittest import mock

import pytest
import torch

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo import ring_training
from zoo.ring import Ring


def proof(plan: str, order: str | None, degree: int = 2, **slips: Any) -> Verdict:
    program, args, kwargs = ring_training.sequential(degree, causal=order is not None)
    sequential = rw.capture(program, args, kwargs)
    held = "HeadTail(1)" if order == "balanced" else "Shard(1)"
    with ExitStack() as stack:
        for name, slip in slips.items():
            stack.enter_context(mock.patch.object(ring_training, name, slip))
        ranks = rw.capture_ranks(ring_training.parallel(plan, order), {"cp": degree})
    relations = dict.fromkeys(ring_training.NAMES, held)
    gradients = {f"grad:{name}": held for name in ("query", "key", "value")}
    expected = {"output": held, "loss": "Partial(sum)", **gradients}
    return rw.refine(sequential, ranks, relations, expected, audit=True)


PROGRAMS: list[Any] = [
    ("looped", None),
    ("looped", "contiguous"),
    ("by hand", None),
    ("by hand", "balanced"),
    pytest.param("looped", "balanced", marks=pytest.mark.slow),
    pytest.param("by hand", "contiguous", marks=pytest.mark.slow),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("plan", "order"), PROGRAMS)
def test_gradients_around_a_ring(plan: str, order: str | None) -> None:
    verdict = proof(plan, order)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize("degree", [3, 4])
@pytest.mark.parametrize("order", [None, "contiguous", "balanced"])
@pytest.mark.parametrize("plan", ring_training.PLANS)
def test_more_ranks(plan: str, order: str | None, degree: int) -> None:
    verdict = proof(plan, order, degree)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


def no_delta(gradient: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(gradient[..., :1])


def delta_of_another_row(gradient: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    return (gradient * output).sum(-1, keepdim=True).roll(1, -2)


def stays(ring: Ring, gradient: torch.Tensor) -> torch.Tensor:
    return gradient


def twice(ring: Ring, gradient: torch.Tensor) -> torch.Tensor:
    return ring.passed_on(gradient, 2)


def one_more(query: torch.Tensor, key: torch.Tensor, rows: Any, columns: Any) -> torch.Tensor:
    return scores(query, key, rows + 1, columns)


scores = ring_training.scores


def of_another_row(largest: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    return (largest + torch.log(total)).roll(1, -2)


def unscaled(largest: torch.Tensor, larger: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(largest)


def upside_down(largest: torch.Tensor, larger: torch.Tensor) -> torch.Tensor:
    return torch.exp(larger - largest)


SLIPS: list[Any] = [
    pytest.param("by hand", {"deltas": no_delta}, id="no delta"),
    pytest.param("by hand", {"deltas": delta_of_another_row}, id="delta of another row"),
    pytest.param("by hand", {"home": stays}, id="gradients that stay where keys were last"),
    pytest.param("by hand", {"with_keys": stays}, id="gradients that do not travel with their keys"),
    pytest.param("by hand", {"logarithms": of_another_row}, id="the sum of another row"),
    pytest.param("by hand", {"rescaling": unscaled}, id="no rescaling by hand"),
    pytest.param("looped", {"rescaling": unscaled}, id="no rescaling"),
    pytest.param("looped", {"rescaling": upside_down}, id="rescaling upside down"),
    pytest.param("looped", {"scores": one_more}, id="a key too many"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("plan", "slips"), SLIPS)
def test_slips(plan: str, slips: dict[str, Any]) -> None:
    verdict = proof(plan, "contiguous" if "scores" in slips else None, **slips)
    assert verdict.status == "refuted", verdict.reason


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "slips"), SLIPS)
@pytest.mark.parametrize("order", ["contiguous", "balanced"])
def test_slips_behind_a_mask(plan: str, slips: dict[str, Any], order: str) -> None:
    assert proof(plan, order, **slips).status == "refuted"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["home", "with_keys"])
def test_gradients_that_go_too_far(name: str) -> None:
    assert proof("by hand", None, 3, **{name: twice}).status == "refuted"
