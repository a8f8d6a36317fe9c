"""Masks over positions, written in several ways: those that are one mask are one, and those that are not are told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import rewright as rw

TOKENS = 12
Mask = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
CAUSAL: dict[str, Mask] = {
    "as it is": lambda i, j: j <= i,
    "the other way round": lambda i, j: i >= j,
    "strictly": lambda i, j: j < i + 1,
    "transposed": lambda i, j: (i.reshape(1, -1) >= j.reshape(-1, 1)).t(),
    "from above": lambda i, j: ~(j > i),
    "from above, transposed": lambda i, j: ~(j.reshape(-1, 1) > i.reshape(1, -1)).t(),
    "with a wide window": lambda i, j: (j <= i) & (j > i - 2 * TOKENS),
}
WINDOW: dict[str, Mask] = {
    "as it is": lambda i, j: (j <= i) & (j > i - 4),
    "differences": lambda i, j: (i - j >= 0) & (i - j < 4),
    "from above": lambda i, j: ~((j > i) | (j <= i - 4)),
    "the other order": lambda i, j: (i < j + 4) & (i >= j),
    "transposed": lambda i, j: ((i.reshape(1, -1) - j.reshape(-1, 1) < 4) & (j.reshape(-1, 1) <= i.reshape(1, -1))).t(),
}
WRONG: dict[str, Mask] = {
    "one more": lambda i, j: j <= i + 1,
    "one less": lambda i, j: j < i,
    "backwards": lambda i, j: i <= j,
    "backwards, transposed": lambda i, j: (j.reshape(-1, 1) >= i.reshape(1, -1)).t(),
    "a window that is one short": lambda i, j: (j <= i) & (j > i - 3),
    "a window that is one too long": lambda i, j: (i - j >= 0) & (i - j < 5),
    "either": lambda i, j: (j <= i) | (j > i - 4),
}


def status(left: Mask, right: Mask) -> str:
    scores = torch.randn(TOKENS, TOKENS)

    def attention(mask: Mask) -> Callable[[torch.Tensor], torch.Tensor]:
        def program(scores: torch.Tensor) -> torch.Tensor:
            i, j = torch.arange(TOKENS)[:, None], torch.arange(TOKENS)[None]
            return torch.softmax(scores.masked_fill(~mask(i, j), float("-inf")), -1)

        return program

    sides = [rw.capture(attention(mask), (scores,)) for mask in (left, right)]
    program = rw.ranks([sides[1]], {"rank": 1})
    return rw.refine(sides[0], program, {"scores": "Replicate()"}).status


@pytest.mark.parametrize("way", CAUSAL)
def test_causal_masks(way: str) -> None:
    assert status(CAUSAL["as it is"], CAUSAL[way]) == "proved"


@pytest.mark.parametrize("way", WINDOW)
def test_windows(way: str) -> None:
    assert status(WINDOW["as it is"], WINDOW[way]) == "proved"


@pytest.mark.parametrize("way", WRONG)
@pytest.mark.parametrize("right", [CAUSAL["as it is"], WINDOW["as it is"]], ids=["causal", "window"])
def test_other_masks(right: Mask, way: str) -> None:
    assert status(right, WRONG[way]) == "refuted"
