"""Look-ups in a vocabulary that is split: however a rank keeps its index in range and leaves out what others have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo.patterns.pattern import reduced

ROWS, WIDTH, WORDS, RANKS = 5, 4, 8, 2
OWN = WORDS // RANKS
Tensor = torch.Tensor
Index = Callable[[Tensor, Tensor], Tensor]
"""From the distance to a rank's first word, and whether it has the word, to where it looks up."""


def has(distance: Tensor) -> Tensor:
    return (distance >= 0) & (distance < OWN)


def chosen(found: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask, found, 0.0)


def multiplied(found: Tensor, mask: Tensor) -> Tensor:
    return found * mask


def refined(index: Index, left_out: Callable[[Tensor, Tensor], Tensor], mask: Callable[[Tensor], Tensor]) -> Verdict:
    def model(x: Tensor, w: Tensor, words: Tensor) -> Tensor:
        return (x @ w).gather(1, words[:, None])[:, 0]

    def parallel(mesh: DeviceMesh) -> Any:
        first = OWN * mesh.get_local_rank()

        def rank(x: Tensor, w: Tensor, words: Tensor) -> Tensor:
            own = mask(words - first)
            return reduced(left_out((x @ w).gather(1, index(words - first, own)[:, None])[:, 0], own))

        return rank, (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, OWN), words)

    words = torch.zeros(ROWS, dtype=torch.long)
    sequential = rw.capture(model, (torch.zeros(ROWS, WIDTH), torch.zeros(WIDTH, WORDS), words))
    given = {"x": "Replicate()", "w": "Shard(1)", "words": "Replicate()"}
    return rw.refine(
        sequential, rw.capture_ranks(parallel, {"tp": RANKS}), given, {"output": "Replicate()"}, audit=True
    )


RIGHT: dict[str, Index] = {
    "chosen": lambda distance, own: torch.where(own, distance, 0),
    "filled": lambda distance, own: distance.masked_fill(~own, 0),
    "clamped": lambda distance, own: distance.clamp(0, OWN - 1),
    "chosen and clamped": lambda distance, own: torch.where(own, distance, 0).clamp(max=OWN - 1),
}


@pytest.mark.parametrize("left_out", [chosen, multiplied])
@pytest.mark.parametrize("name", RIGHT)
def test_right_look_ups(name: str, left_out: Callable[[Tensor, Tensor], Tensor]) -> None:
    verdict = refined(RIGHT[name], left_out, has)
    assert verdict.status == "proved", verdict.reason


WRONG: dict[str, tuple[Index, Callable[[Tensor, Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "from one on": (lambda distance, own: distance.clamp(1, OWN - 1), multiplied, has),
    "the last word left out": (lambda distance, own: distance.clamp(0, OWN - 2), chosen, has),
    "one word too many below": (RIGHT["clamped"], multiplied, lambda d: (d >= -1) & (d < OWN)),
    "one word too many above": (RIGHT["clamped"], chosen, lambda d: (d >= 0) & (d <= OWN)),
    "one word too few": (RIGHT["clamped"], multiplied, lambda d: (d > 0) & (d < OWN)),
    "nothing left out": (RIGHT["clamped"], lambda found, mask: found, has),
    "the others left out": (RIGHT["clamped"], lambda found, mask: found * ~mask, has),
    "one word further": (lambda distance, own: (distance - 1).clamp(0, OWN - 1), multiplied, has),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_look_ups(name: str) -> None:
    assert refined(*WRONG[name]).status == "refuted"
