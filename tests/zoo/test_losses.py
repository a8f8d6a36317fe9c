"""Losses that ranks take together: smoothed labels of a split vocabulary, and pairs of which each has a part."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo.patterns.pattern import (
    dist,
    enter,
    exchange,
    gathered,
    leave,
    reduced,
    scattered,
    sum_gradients,
    weight,
)

ROWS, WIDTH, CLASSES = 5, 4, 8


def whole(x: torch.Tensor, w: torch.Tensor, labels: torch.Tensor, penalty: float) -> dict[str, torch.Tensor]:
    """A quarter of each label is shared by all classes; the square of the log of their sum may be kept small."""
    likely = F.log_softmax(x @ w, -1)
    own = likely.gather(-1, labels[:, None])[:, 0]
    loss: Any = -(0.75 * own + 0.25 * likely.mean(-1)).mean()
    if penalty:
        loss = loss + penalty * torch.logsumexp(x @ w, -1).square().mean()
    loss.backward()
    return {"loss": loss.detach()}


def smoothed(*, classes: int = CLASSES, beyond: int = 0, penalty: float = 0, of_top: bool = True) -> Verdict:
    """The same where a rank has half of the classes; ``beyond`` how many classes of the next rank it takes for its.

    Of the log of the sum that is penalised, the maximum that was subtracted before is a part, where it is ``of_top``.
    """

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
            total = leave(scores.exp().sum(-1)).log()
            loss: Any = (total - 0.75 * own - 0.25 * mean).mean()
            if penalty:
                loss = loss + penalty * (total + top if of_top else total).square().mean()
            loss.backward()
            return {"loss": loss.detach()}

        return step, (torch.zeros(ROWS, WIDTH), weight(WIDTH, count), torch.zeros(ROWS, dtype=torch.long))

    args = torch.zeros(ROWS, WIDTH), weight(WIDTH, CLASSES), torch.zeros(ROWS, dtype=torch.long), penalty
    relations = {"x": "Replicate()", "w": "Shard(1)", "labels": "Replicate()"}
    return rw.refine(rw.capture(whole, args), rw.capture_ranks(build, {"tp": 2}), relations, audit=True)


@pytest.mark.parametrize("penalty", [0, 1e-4])
def test_smoothed_labels(penalty: float) -> None:
    verdict = smoothed(penalty=penalty)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    assert verdict.relation["grad:w"].placement == "Shard(1)"


@pytest.mark.parametrize("slip", [{"classes": CLASSES // 2}, {"beyond": 1}, {"penalty": 1e-4, "of_top": False}])
def test_smoothed_labels_of_other_classes(slip: dict[str, Any]) -> None:
    assert smoothed(**slip).status == "refuted"


PAIRS = 4


def alike(image: torch.Tensor, text: torch.Tensor, images: torch.Tensor, texts: torch.Tensor, first: int) -> Any:
    """Entropy of which text is an image's and which image is a text's, each of them under cosines with all."""
    own = torch.arange(image.shape[0]) + first
    return (F.cross_entropy(image @ texts.T, own) + F.cross_entropy(text @ images.T, own)) / 2


def contrasted(x: torch.Tensor, y: torch.Tensor, wx: Any, wy: Any) -> dict[str, torch.Tensor]:
    image, text = F.normalize(x @ wx, dim=-1), F.normalize(y @ wy, dim=-1)
    loss = alike(image, text, image, text, 0)
    loss.backward()
    return {"loss": loss.detach()}


def contrast(*, cut: bool = False, shifted: bool = True) -> Verdict:
    """Every rank has some pairs and gathers the others; gradients of what it gathered go back to where that came from.

    ``cut`` leaves the gradient of gathered texts out; where places are not ``shifted`` all ranks have the first ones.
    """

    def build(mesh: DeviceMesh) -> Any:
        rows, rank = PAIRS // mesh.size(), mesh.get_local_rank()

        def step(x: torch.Tensor, y: torch.Tensor, wx: Any, wy: Any) -> dict[str, torch.Tensor]:
            image, text = F.normalize(x @ wx, dim=-1), F.normalize(y @ wy, dim=-1)
            images = exchange(image, gathered, scattered)
            texts = gathered(text.detach()) if cut else exchange(text, gathered, scattered)
            loss = alike(image, text, images, texts, rank * rows if shifted else 0) / mesh.size()
            loss.backward()
            sum_gradients(wx, wy)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(rows, 4), torch.zeros(rows, 5), weight(4, 3), weight(5, 3))

    args = torch.zeros(PAIRS, 4), torch.zeros(PAIRS, 5), weight(4, 3), weight(5, 3)
    relations = {"x": "Shard(0)", "y": "Shard(0)", "wx": "Replicate()", "wy": "Replicate()"}
    return rw.refine(rw.capture(contrasted, args), rw.capture_ranks(build, {"dp": 2}), relations, audit=True)


def test_gradients_of_pairs_that_are_contrasted_with_those_of_other_ranks() -> None:
    verdict = contrast()
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    assert verdict.relation["grad:wx"].placement == "Replicate()"


@pytest.mark.parametrize("slip", [{"cut": True}, {"shifted": False}])
def test_gradients_of_other_pairs(slip: dict[str, bool]) -> None:
    verdict = contrast(**slip)
    assert verdict.status == "refuted"
    assert verdict.relation["loss"].holds == ("cut" in slip)
