"""A maximum with zero of a variance is the variance, and one of anything that may be below zero is none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.equiv.rewrites.local import RULES, with_rules
from rewright.ops import Elementwise, Leaf, Maximum, View
from rewright.rules.rule import Rule
from rewright.rules.verdict import judge
from tests.equiv.rewriting import alone

Tensor = torch.Tensor
ARGUMENTS = torch.zeros(3, 8), torch.zeros(8)


def two_passes(x: Tensor, w: Tensor) -> Tensor:
    moved = x - x.mean(-1, keepdim=True)
    return moved * torch.rsqrt(moved.square().mean(-1, keepdim=True) + 1e-6) * w


def one_pass(x: Tensor, w: Tensor, take: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = take(x, mean).clamp(min=0)
    return (x - mean) * (torch.rsqrt(variance + 1e-6) * w)


TAKEN: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "product": lambda x, mean: (x * x).mean(-1, keepdim=True) - mean * mean,
    "power": lambda x, mean: x.pow(2).sum(-1, keepdim=True) / 8 - mean.pow(2),
}
OTHER: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "of another tensor": lambda x, mean: (x * x).mean(-1, keepdim=True) - (2 * mean).square(),
    "one element less": lambda x, mean: (x * x).sum(-1, keepdim=True) / 9 - mean.square(),
    "no square": lambda x, mean: (x * x).mean(-1, keepdim=True) - mean,
    "of all rows": lambda x, mean: x.square().mean(-1, keepdim=True) - mean.square().flip(0),
}


def norm(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda x, w: one_pass(x, w, {**TAKEN, **OTHER}[name])


@pytest.mark.parametrize("name", TAKEN)
def test_a_variance_in_one_pass_is_never_below_zero(name: str) -> None:
    verdict = equiv(rw.capture(two_passes, ARGUMENTS), rw.capture(norm(name), ARGUMENTS))
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


@pytest.mark.parametrize("name", OTHER)
def test_what_may_be_below_zero_keeps_its_maximum(name: str) -> None:
    graph = rw.capture(norm(name), ARGUMENTS)
    kept = alone(with_rules, graph)
    assert sum(isinstance(node.op, Maximum) for node in kept.nodes) == 1


def test_a_maximum_of_what_is_never_below_zero_is_none() -> None:
    def squares(x: Tensor) -> Tensor:
        return torch.relu(x * x)

    kept = alone(with_rules, rw.capture(squares, ARGUMENTS[:1]))
    assert not any(isinstance(node.op, Maximum) for node in kept.nodes)


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.name)
def test_the_rules_are_proved_for_every_shape_that_they_are_used_at(one: Rule) -> None:
    assert judge(one).status == "proved"
    shapes = {node.type.shape for side in (one.left, one.right) for node in side.nodes if node.type.rank}
    assert len(shapes) == 1
    assert all(isinstance(node.op, Elementwise | Leaf | View) for side in (one.left, one.right) for node in side.nodes)


def test_numbers_are_seen_through_their_layouts_and_on_either_side() -> None:
    def starts(x: Tensor) -> Tensor:
        lowest = torch.full((1, 1), -math.inf).expand(3, 8)
        return torch.maximum(torch.maximum(lowest, x), lowest)

    kept = alone(with_rules, rw.capture(starts, ARGUMENTS[:1]))
    assert not any(isinstance(node.op, Maximum) for node in kept.nodes)
