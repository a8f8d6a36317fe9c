"""Small layers written twice, as people write them in other places: what is right is proved, what is wrong refuted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
from torch import nn

import rewright as rw
from rewright.equiv.engine import Equivalence, equiv
from tests.equiv.written_pairs import OTHER, SAME, Pair


class _Module(nn.Module):
    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, arguments: tuple[torch.Tensor, ...]) -> torch.Tensor:
        assert callable(self.function)
        return self.function(*arguments)


def judged(pair: Pair, *, explain: bool = True) -> Equivalence:
    return equiv(*(rw.capture(_Module(side), (pair.arguments,)) for side in (pair.left, pair.right)), explain=explain)


@pytest.mark.parametrize("name", SAME)
def test_the_same_layer(name: str) -> None:
    verdict = judged(SAME[name])
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


@pytest.mark.parametrize("name", OTHER)
def test_another_layer(name: str) -> None:
    verdict = judged(OTHER[name], explain=False)
    assert verdict.status == "refuted", verdict.reason
