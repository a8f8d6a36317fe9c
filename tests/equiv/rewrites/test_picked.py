"""Weights of experts looked up at the places of a choice, and scores that marks at these places leave."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import equiv

Weigh = Callable[[torch.Tensor], torch.Tensor]


def chosen(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scores = x.softmax(-1)
    values, places = scores.topk(2, -1)
    return scores, values, places


def written(x: torch.Tensor) -> torch.Tensor:
    scores, values, places = chosen(x)
    return torch.zeros_like(scores).scatter(1, places, values)


def looked_up(x: torch.Tensor) -> torch.Tensor:
    scores, _, places = chosen(x)
    return torch.zeros_like(scores).scatter(1, places, scores.gather(1, places))


def marked(x: torch.Tensor) -> torch.Tensor:
    scores, _, places = chosen(x)
    return scores * torch.zeros_like(scores).scatter(1, places, 1.0)


def filled(x: torch.Tensor) -> torch.Tensor:
    scores, _, places = chosen(x)
    return scores.masked_fill(~torch.zeros_like(scores, dtype=torch.bool).scatter(1, places, True), 0.0)


def kept(x: torch.Tensor) -> torch.Tensor:
    scores, _, places = chosen(x)
    return torch.where(torch.zeros_like(scores).scatter(1, places, 1.0) > 0, scores, 0.0)


def left_over(x: torch.Tensor) -> torch.Tensor:
    return chosen(x)[0] - marked(x)


def of_logits(x: torch.Tensor) -> torch.Tensor:
    scores, _, places = chosen(x)
    return torch.zeros_like(scores).scatter(1, places, x.gather(1, places))


def of_other_rows(x: torch.Tensor) -> torch.Tensor:
    scores, _, places = chosen(x)
    return torch.zeros_like(scores).scatter(1, places, scores.flip(0).gather(1, places))


def twice(x: torch.Tensor) -> torch.Tensor:
    scores, _, places = chosen(x)
    return scores * torch.zeros_like(scores).scatter(1, places, 2.0)


def turned(x: torch.Tensor) -> torch.Tensor:
    scores, _, places = chosen(x)
    return scores.masked_fill(torch.zeros_like(scores, dtype=torch.bool).scatter(1, places, True), 0.0)


@pytest.mark.sample(2)
@pytest.mark.parametrize("other", [looked_up, marked, filled, kept])
def test_the_scores_that_were_chosen(other: Weigh) -> None:
    verdict = equiv(*(rw.capture(weigh, (torch.zeros(5, 4),)) for weigh in (written, other)), explain=False)
    assert verdict.status == "proved", verdict.reason


@pytest.mark.parametrize("other", [left_over, of_logits, of_other_rows, twice, turned])
def test_other_scores(other: Weigh) -> None:
    for one in (written, marked):
        assert equiv(*(rw.capture(w, (torch.zeros(5, 4),)) for w in (one, other)), explain=False).status == "refuted"


def test_what_may_be_infinite_is_chosen_and_not_multiplied() -> None:
    """Zero times infinity is no number."""

    def infinite(x: torch.Tensor, multiplied: bool = False) -> torch.Tensor:
        scores = torch.where(x > 0, x, -torch.inf)
        marks = torch.zeros_like(scores).scatter(1, x.topk(2, -1).indices, 1.0)
        return scores * marks if multiplied else torch.where(marks > 0, scores, 0.0)

    graphs = [rw.capture(infinite, (torch.zeros(5, 4), multiplied)) for multiplied in (False, True)]
    assert equiv(*graphs, explain=False).status != "proved"
