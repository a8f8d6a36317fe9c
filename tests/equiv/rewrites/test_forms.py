"""The form of a program is that of the program alone, and a program that has it is returned as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.equiv.inputs.weights import WeightMap
from rewright.equiv.preparing import prepare_pair
from rewright.equiv.rewrites.forms import REAL, WHOLE, Rewrite, before_counting, rewrite
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram
from rewright.refine.rewriting.drafts import Draft
from tests.equiv import written_blocks, written_pairs, written_sequences

PAIRS = {**written_pairs.SAME, **written_blocks.SAME, **written_sequences.SAME}
ROWS = (*before_counting(counts=True), *WHOLE, *REAL)


def softmax_of_the_mean(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    power = torch.exp(x - x.mean(-1, keepdim=True))
    return power / power.sum(-1, keepdim=True) + w[:, :1].float()


def routed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    values, places = x.softmax(-1).topk(2)
    weights = torch.zeros_like(x).scatter(1, places, values / values.sum(-1, keepdim=True))
    return weights + w[:3, :1].float() % 16


def masked(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    seen = torch.ones(3, 6, dtype=torch.bool).tril()
    return ((x + (seen.float() - 1) * 1e9).softmax(-1) + (w & 15).float()[:3]).clamp(min=0)


def moved(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    kernel = w[:1, None, :3].float()
    return torch.conv1d(x[None, :1], kernel, padding=1)[0] + x.round().clamp(-7, 7) + x.square().relu()


PROGRAMS = (softmax_of_the_mean, routed, masked, moved)
ARGUMENTS = torch.zeros(3, 6), torch.zeros(3, 6, dtype=torch.uint8)


def programs() -> Iterator[Graph]:
    for program in PROGRAMS:
        yield rw.capture(program, ARGUMENTS)


def sides(name: str) -> Iterator[Graph]:
    pair = PAIRS[name]
    for side in (pair.left, pair.right):
        yield rw.capture(side, pair.arguments)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_program_that_has_the_form_is_returned_as_it_is(row: Rewrite) -> None:
    for graph in programs():
        once = rewrite(Draft(graph), [row], proposed=True).graph
        assert rewrite(Draft(once), [row], proposed=True).graph is once


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("proposed", [False, True])
def test_the_forms_of_layers_are_found_once(name: str, proposed: bool) -> None:
    for graph in sides(name):
        once = rewrite(Draft(graph), REAL, proposed=proposed).graph
        assert rewrite(Draft(once), REAL, proposed=proposed).graph == once


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("proposed", [False, True])
def test_the_form_is_the_same_whatever_a_program_is_compared_with(counts: bool, proposed: bool) -> None:
    graphs = list(programs())
    for graph in graphs:
        forms = {id(graph): _form(graph, other, counts=counts, proposed=proposed) for other in graphs}
        assert len({str(form) for form in forms.values()}) == 1


def _form(left: Graph, right: Graph, *, counts: bool, proposed: bool) -> Graph:
    program = RankProgram((right,), Mesh.of({"rank": 1}), {}, {})
    return prepare_pair(left, program, WeightMap(()), None, counts=counts, proposed=proposed).left


def test_what_is_proposed_is_tried_where_a_proof_needs_it() -> None:
    """A convolution is left as it is beside another one, and is a sum beside a sum."""

    def summed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        wide = torch.nn.functional.pad(x, (2, 0))
        return sum((w[:, k, None] * wide[:, k : k + 6] for k in range(3)), torch.zeros(()))

    def convolved(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.conv1d(x[None], w[:, None], padding=2, groups=3)[0, :, :6]

    one, other = (rw.capture(f, (torch.zeros(3, 6), torch.zeros(3, 3))) for f in (convolved, summed))
    for right, is_first in ((one, True), (other, False)):
        verdict = equiv(one, right)
        assert verdict.status == "proved", verdict.reason
        assert ("first form" not in verdict.stats.seconds) is is_first
