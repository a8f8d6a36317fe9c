"""Losses over a vocabulary that is split: cross-entropy with smoothed labels, and labels that are one off."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from rewright.zoo.patterns.pattern import dist, enter, leave, weight

ROWS, WIDTH, CLASSES = 5, 4, 8


def whole(x: torch.Tensor, w: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """A quarter of each label is shared by all classes."""
    likely = F.log_softmax(x @ w, -1)
    own = likely.gather(-1, labels[:, None])[:, 0]
    loss: Any = -(0.75 * own + 0.25 * likely.mean(-1)).mean()
    loss.backward()
    return {"loss": loss.detach()}


def smoothed(*, classes: int = CLASSES, beyond: int = 0) -> Verdict:
    """The same where a rank has half of the classes; ``beyond`` how many classes of the next rank it takes for its."""

    def build(mesh: DeviceMesh) -> Any:
        count = CLASSES // 2
        first = mesh.get_local_rank() * count

        def step(x: torch.Tensor, w: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            scores = enter(x) @ w
            top = scores.detach().amax(-1)
            dist.all_reduce(top, op=dist.ReduceOp.MAX)
            scores = scores - top[:, None]
            place = labels - first
            held = (place >= 0) & (place < count + beyond)
            own = leave(scores.gather(-1, place.clamp(0, count - 1)[:, None])[:, 0] * held)
            mean = leave(scores.sum(-1)) / classes
            loss: Any = (leave(scores.exp().sum(-1)).log() - 0.75 * own - 0.25 * mean).mean()
            loss.backward()
            return {"loss": loss.detach()}

        return step, (torch.zeros(ROWS, WIDTH), weight(WIDTH, count), torch.zeros(ROWS, dtype=torch.long))

    args = torch.zeros(ROWS, WIDTH), weight(WIDTH, CLASSES), torch.zeros(ROWS, dtype=torch.long)
    relations = {"x": "Replicate()", "w": "Shard(1)", "labels": "Replicate()"}
    return rw.refine(rw.capture(whole, args), rw.capture_ranks(build, {"tp": 2}), relations, audit=True)


def test_smoothed_labels() -> None:
    verdict = smoothed()
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    assert verdict.relation["grad:w"].placement == "Shard(1)"


@pytest.mark.parametrize("slip", [{"classes": CLASSES // 2}, {"beyond": 1}])
def test_smoothed_labels_of_other_classes(slip: dict[str, int]) -> None:
    assert smoothed(**slip).status == "refuted"
