"""Contrastive losses over all pairs of a batch that is split: features are gathered, with gradients or without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed.nn.functional as torch_nn
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo.patterns.pattern import exchange, gathered, reduced, scattered, sum_gradients, weight

ROWS, RANKS = 4, 2
OWN = ROWS // RANKS
Tensor = torch.Tensor


def pictures_and_texts(rows: int) -> tuple[Tensor, ...]:
    return torch.zeros(rows, 3), torch.zeros(rows, 2), weight(3, 2), weight(2, 2), torch.zeros((), requires_grad=True)


def model(x: Tensor, y: Tensor, a: Tensor, b: Tensor, scale: Tensor) -> dict[str, Tensor]:
    left, right = F.normalize(x @ a, dim=-1), F.normalize(y @ b, dim=-1)
    logits, which = scale.exp() * left @ right.T, torch.arange(ROWS)
    loss = (F.cross_entropy(logits, which) + F.cross_entropy(logits.T, which)) / 2
    loss.backward()
    return {"loss": loss.detach()}


Gather = Callable[[Tensor], Tensor]


def everyone(x: Tensor) -> Tensor:
    return exchange(x, gathered, scattered)


def refined(gather: Gather, first: int, ranks: int, *, audit: bool = False) -> Verdict:
    """``first`` times its number is the label of a rank's first row, and its loss is divided by ``ranks``."""

    def parallel(mesh: DeviceMesh) -> Any:
        def rank(x: Tensor, y: Tensor, a: Tensor, b: Tensor, scale: Tensor) -> dict[str, Tensor]:
            left, right = F.normalize(x @ a, dim=-1), F.normalize(y @ b, dim=-1)
            which = torch.arange(OWN) + first * mesh.get_local_rank()
            one = F.cross_entropy(scale.exp() * left @ gather(right).T, which)
            other = F.cross_entropy(scale.exp() * right @ everyone(left).T, which)
            loss = (one + other) / 2 / ranks
            loss.backward()
            sum_gradients(a, b, scale)
            return {"loss": reduced(loss.detach())}

        return rank, pictures_and_texts(OWN)

    given = {"x": "Shard(0)", "y": "Shard(0)", "a": "Replicate()", "b": "Replicate()", "scale": "Replicate()"}
    program = rw.capture_ranks(parallel, {"dp": RANKS})
    return rw.refine(rw.capture(model, pictures_and_texts(ROWS)), program, given, audit=audit)


@pytest.mark.parametrize("audit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_loss_and_gradients_with_a_temperature_that_is_learned(audit: bool) -> None:
    verdict = refined(everyone, OWN, RANKS, audit=audit)
    assert verdict.status == "proved", verdict.reason


def by_torch(x: Tensor) -> Tensor:
    """Its gradients travel by an all-to-all and are added up on the rank that they belong to."""
    return torch.cat(torch_nn.all_gather(x))


def test_features_that_torch_gathers_with_gradients() -> None:
    verdict = refined(by_torch, OWN, RANKS, audit=True)
    assert verdict.status == "proved", verdict.reason


WRONG: dict[str, tuple[Gather, int, int]] = {
    "gathered without gradient": (lambda x: gathered(x.detach()), OWN, RANKS),
    "labels of the first rank": (everyone, 0, RANKS),
    "a sum for a mean": (everyone, OWN, 1),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [n if n == "labels of the first rank" else pytest.param(n, marks=pytest.mark.slow) for n in WRONG]
)
def test_another_loss_or_gradient(name: str) -> None:
    assert refined(*WRONG[name]).status == "refuted"
