"""Small layers written twice, as people write them in other places: what is right is proved, what is wrong refuted."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
from torch import nn

import rewright as rw
from rewright.blame.diagnosis import diagnose
from rewright.blame.exchanges import Search
from rewright.equiv.engine import Equivalence, equiv
from rewright.equiv.inputs.alignment import numbers_of
from rewright.refine.relations.known import input_relations
from rewright.refine.twin.twin import Twin, make_twin
from tests.equiv import written_blocks, written_pairs, written_sequences
from tests.equiv.written_pairs import Pair

SAME = {**written_pairs.SAME, **written_blocks.SAME, **{f"{n} in time": p for n, p in written_sequences.SAME.items()}}
OTHER = {
    **written_pairs.OTHER,
    **{f"{name} of a block": pair for name, pair in written_blocks.OTHER.items()},
    **{f"{name} in time": pair for name, pair in written_sequences.OTHER.items()},
}


class _Module(nn.Module):
    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, arguments: tuple[torch.Tensor, ...]) -> torch.Tensor:
        assert callable(self.function)
        return self.function(*arguments)


def judged(pair: Pair, *, explain: bool = True) -> Equivalence:
    return equiv(*(rw.capture(_Module(side), (pair.arguments,)) for side in (pair.left, pair.right)), explain=explain)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SAME)
def test_the_same_layer(name: str) -> None:
    verdict = judged(SAME[name])
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", OTHER)
def test_another_layer(name: str) -> None:
    verdict = judged(OTHER[name], explain=False)
    assert verdict.status == "refuted", verdict.reason


def test_eps_is_found_where_one_side_holds_tokens_in_one_row() -> None:
    """Tables of the right program are longer than those of the left one, and its axes are grouped otherwise."""

    def turned(x: torch.Tensor, places: torch.Tensor, length: int) -> torch.Tensor:
        angles = torch.arange(length).float()[:, None] / 100.0 ** (torch.arange(0, 8, 2).float() / 8)
        cos, sin = (table[places] for table in (angles.cos(), angles.sin()))
        one, other = x.chunk(2, -1)
        return torch.cat([one * cos - other * sin, other * cos + one * sin], -1)

    def norm(x: torch.Tensor, eps: float) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)

    def sequences(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return turned(norm(x, 1e-6) @ w, torch.arange(5), 5)

    def tokens(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return turned(norm(x.reshape(10, 8), 1e-4) @ w, torch.arange(5).repeat(2), 9).reshape(2, 5, 8)

    verdict = equiv(*(rw.capture(f, (torch.zeros(2, 5, 8), torch.zeros(8, 8))) for f in (sequences, tokens)))
    assert verdict.status == "refuted"
    left, right = verdict.left, verdict.right
    assert left is not None
    assert right is not None
    known = input_relations(left, right, None)
    twin = make_twin(left, replace(right, inputs={**known.inferred.first, **known.placements}))
    assert isinstance(twin, Twin)
    numbers = numbers_of(twin)
    assert numbers is not None
    parting = Search(left, right.graphs[0], numbers, loosely=True).run()
    assert parting is not None
    assert parting.is_mended
    assert diagnose(left, right.graphs[0], parting.exchanges[0]).kind == "eps"
