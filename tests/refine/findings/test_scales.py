"""Gradients that are all wrong by one number: the loss is told, the factor, and a repair that was proved."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import rewright as rw
from rewright.refine.verdict import Verdict


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


def step(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    F.mse_loss(model(x), y).backward()
    return {}


def averaged(divisor: float, *, only: str = "") -> Verdict:
    """A step over two ranks whose gradients are added up and divided by a number; with ``only`` some of them are."""

    def build(mesh: Any) -> Any:
        def part(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            F.mse_loss(model(x), y).backward()
            for name, parameter in model.named_parameters():
                assert parameter.grad is not None
                dist.all_reduce(parameter.grad, group=mesh.get_group())
                parameter.grad /= divisor if only in name else 2
            return {}

        return part, (net(), torch.zeros(2, 4), torch.zeros(2, 2))

    whole = rw.capture(step, (net(), torch.zeros(4, 4), torch.zeros(4, 2)))
    return rw.refine(whole, rw.capture_ranks(build, mesh={"dp": 2}))


def test_a_mean_over_ranks_is_proved() -> None:
    assert averaged(2).status == "proved"


def test_gradients_that_are_not_averaged_are_the_degree_times_too_large() -> None:
    verdict = averaged(1)
    assert verdict.status == "refuted"
    assert "exactly 2 times too large, and 2 is dp" in verdict.reason
    first = verdict.findings[0]
    assert first.kind == "wrong_scale"
    assert first.message.startswith("all 4 gradients are exactly 2 times too large, and 2 is dp: the loss")
    assert first.distributed is not None
    assert not first.distributed.backward
    assert "mse_loss" not in first.message
    assert first.suggestion is not None
    assert first.suggestion.startswith("divide the loss at test_scales.py:")
    assert first.suggestion.endswith("by 2 before backward()")
    assert len(verdict.findings) == 1


def test_any_other_number_is_told_too() -> None:
    first = averaged(6).findings[0]
    assert "0.333333 times the right value" in first.message
    assert first.suggestion is not None
    assert "multiply the loss" in first.suggestion


def test_some_gradients_with_a_factor_are_no_matter_of_the_loss() -> None:
    verdict = averaged(1, only="2.weight")
    assert verdict.status == "refuted"
    assert "grad:2.weight is exactly 2 times too large, and 2 is dp" in verdict.findings[0].message
    assert verdict.findings[0].kind != "wrong_scale"
