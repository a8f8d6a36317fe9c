"""Buckets of relative positions: cut off from a logarithm in one program, written out in another one."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
import torch.nn.functional as functional

import rewright as rw
from rewright.equiv.engine import Equivalence, equiv
from rewright.equiv.rewrites.integer_tables import with_wholes
from rewright.refine.rewriting.drafts import Draft
from tests.equiv.rewriting import alone, taken

Tensor = torch.Tensor
LENGTH, BUCKETS, FARTHEST = 9, 8, 16
ARGUMENTS = torch.zeros(2, 3, LENGTH, LENGTH), torch.zeros(BUCKETS, 3)


def apart() -> Tensor:
    place = torch.arange(LENGTH)
    return place[:, None] - place[None]


def cut_off(far: Tensor, farthest: int = FARTHEST) -> Tensor:
    """As T5 has them: every place near by, and then by the logarithm."""
    far, exact = far.clamp(min=0), BUCKETS // 2
    grown = torch.log(far.float() / exact) / math.log(farthest / exact) * (BUCKETS - exact)
    return torch.where(far < exact, far, torch.min(exact + grown.long(), torch.tensor(BUCKETS - 1)))


def difference_of_logarithms(far: Tensor) -> Tensor:
    far, exact = far.clamp(min=0), BUCKETS // 2
    grown = (far.clamp(min=1).float().log() - math.log(exact)) / (math.log(FARTHEST) - math.log(exact))
    return torch.where(far < exact, far, (exact + (grown * (BUCKETS - exact)).floor().long()).clamp(max=BUCKETS - 1))


def written_out(more: int = 0) -> Tensor:
    edges = [0, 1, 2, 3, 4, 6, 8, 12]
    rows = [[sum(max(q - k + more, 0) >= edge for edge in edges[1:]) for k in range(LENGTH)] for q in range(LENGTH)]
    return torch.tensor(rows)


def attention(buckets: Callable[[], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda scores, w: (scores + w[buckets()].permute(2, 0, 1)).softmax(-1)


def in_a_row(scores: Tensor, w: Tensor) -> Tensor:
    bias = functional.embedding(cut_off(apart()).flatten(), w).view(LENGTH, LENGTH, 3)
    return (scores + bias.permute(2, 0, 1)).softmax(-1)


def verdict(right: Callable[[Tensor, Tensor], Tensor]) -> Equivalence:
    left = attention(lambda: cut_off(apart()))
    return equiv(rw.capture(left, ARGUMENTS), rw.capture(right, ARGUMENTS), explain=False)


@pytest.mark.parametrize(
    "right",
    [
        attention(written_out),
        attention(lambda: difference_of_logarithms(apart())),
        attention(lambda: cut_off(torch.arange(1 - LENGTH, LENGTH))[apart() + LENGTH - 1]),
        in_a_row,
    ],
)
def test_the_same_buckets(right: Callable[[Tensor, Tensor], Tensor]) -> None:
    found = verdict(right)
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason


@pytest.mark.parametrize("buckets", [lambda: written_out(1), lambda: cut_off(apart(), 12), lambda: written_out().T])
def test_other_buckets(buckets: Callable[[], Tensor]) -> None:
    assert verdict(attention(buckets)).status == "refuted"


def test_what_rounding_takes_from_a_whole_number_is_said() -> None:
    graph = rw.capture(attention(lambda: difference_of_logarithms(apart())), ARGUMENTS)
    written = with_wholes(Draft(graph))
    assert len(written.graph) < len(graph)
    assert any("stands for" in text for text in taken([written]))


def test_what_an_infinite_number_is_cut_off_to_is_not_known() -> None:
    def open_ended(scores: Tensor, w: Tensor) -> Tensor:
        return scores + w[torch.log(torch.arange(LENGTH).float()).long().clamp(0, 7)][:, 0]

    graph = rw.capture(open_ended, ARGUMENTS)
    assert alone(with_wholes, graph) is graph


@pytest.mark.parametrize(
    ("number", "kind"), [(999999.95, torch.float32), (3 - 3e-7, torch.float32), (3 - 1e-9, torch.float64)]
)
def test_what_its_type_tells_from_a_whole_number_is_another_number(number: float, kind: torch.dtype) -> None:
    """However large it is, and however small the share that is missing."""

    def cut(w: Tensor) -> Tensor:
        place = torch.full((4,), number, dtype=kind) * torch.ones(4, dtype=kind)
        return w[place.floor().long() % 16]

    def exact(w: Tensor) -> Tensor:
        return w[torch.full((4,), round(number)) % 16]

    w = torch.zeros(16)
    assert equiv(rw.capture(cut, (w,)), rw.capture(exact, (w,)), explain=False).status == "refuted"
