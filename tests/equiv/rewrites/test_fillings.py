"""What is filled in where a choice keeps enough elements is never chosen, and only there does it make no difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright import ops
from rewright.equiv.engine import equiv
from rewright.interp.program import run
from rewright.ir.digest import node_digests
from rewright.ir.graph import Graph
from tests.equiv.rewriting import law, rewritten

TOKENS, GROUPS, EACH = 2, 4, 3
X = torch.zeros(TOKENS, GROUPS * EACH)
Scores = Callable[[torch.Tensor], torch.Tensor]


def softmax(x: torch.Tensor) -> torch.Tensor:
    return x.softmax(-1)


def routed(
    fill: float,
    *,
    groups: int = 2,
    count: int = 4,
    scores: Scores = softmax,
    mark: float = 1.0,
    others: bool = False,
) -> Graph:
    """The ``count`` largest scores of the best ``groups`` groups, or of all ``others``, ``fill`` standing elsewhere."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        made = scores(x)
        best = made.view(TOKENS, GROUPS, EACH).amax(-1).topk(groups).indices
        marks = torch.zeros(TOKENS, GROUPS).scatter(1, best, mark)
        kept = marks[..., None].expand(-1, -1, EACH).reshape(X.shape).bool()
        values, places = made.masked_fill(kept if others else ~kept, fill).topk(count)
        return values, places

    return rw.capture(program, (X,))


def status(left: Graph, right: Graph) -> str:
    return equiv(left, right, explain=False).status


def alike(graphs: Sequence[Graph]) -> bool:
    """Whether the results of both programs become one expression."""
    left, right = (
        [node_digests(graph)[p] for p in graph.outputs.values()] for graph in rewritten(law("fillings"), graphs)
    )
    return left == right


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("scores", [softmax, torch.sigmoid, torch.exp])
def test_zero_or_minus_infinity(groups: int, scores: Scores) -> None:
    count = groups * EACH
    pair = [routed(fill, groups=groups, count=count, scores=scores) for fill in (0.0, -math.inf)]
    inputs = np.random.default_rng(0).normal(size=X.shape)
    for before, after in zip(pair, rewritten(law("fillings"), pair), strict=True):
        (name,) = before.inputs
        expected, found = run(before, {name: inputs}), run(after, {name: inputs})
        assert all(np.array_equal(found[output], value) for output, value in expected.items())
    assert alike(pair)


def test_any_number_that_is_not_above_zero() -> None:
    assert alike([routed(-1.0), routed(0.0)])


@pytest.mark.parametrize("groups", [1, 2])
def test_more_are_chosen_than_are_kept(groups: int) -> None:
    graphs = [routed(fill, groups=groups, count=groups * EACH + 1) for fill in (0.0, -math.inf)]
    assert rewritten(law("fillings"), graphs) == tuple(graphs)
    assert status(*graphs) != "proved"


@pytest.mark.parametrize(
    "scores",
    [
        lambda x: x,
        torch.relu,
        lambda x: x.softmax(-1) - 0.5,
        lambda x: torch.exp(x.masked_fill(x < 0, -math.inf)),
        lambda x: x.softmax(-1).log(),
    ],
)
def test_scores_that_are_not_above_zero(scores: Scores) -> None:
    graphs = [routed(fill, scores=scores) for fill in (0.0, -math.inf)]
    assert rewritten(law("fillings"), graphs) == tuple(graphs)
    assert status(*graphs) != "proved"


def test_a_filling_above_scores() -> None:
    assert status(routed(0.5), routed(0.0)) != "proved"


def test_places_that_are_marked_with_zero_keep_nothing() -> None:
    assert status(routed(0.0, mark=0.0), routed(-math.inf, mark=0.0)) != "proved"


def test_the_other_groups() -> None:
    """How many elements are not marked is not known to be enough."""
    assert status(routed(0.0, others=True), routed(-math.inf, others=True)) != "proved"


def test_where_every_group_is_chosen_nothing_is_filled() -> None:
    def plain(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = x.softmax(-1).topk(4)
        return values, places

    greedy = rw.capture(plain, (X,))
    _, after = rewritten(law("fillings"), [greedy, routed(-math.inf, groups=GROUPS)])
    read = {after.nodes[node.operands[0]].op.name for node in after.nodes if isinstance(node.op, ops.TopK)}
    assert "select" not in read
    assert status(greedy, routed(-math.inf, groups=GROUPS)) == "proved"
    assert status(greedy, routed(-math.inf, groups=GROUPS - 1)) == "refuted"


def test_one_group() -> None:
    def grouped(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        made = x.softmax(-1)
        best = made.view(TOKENS, 1, -1).amax(-1).topk(1).indices
        marks = torch.zeros(TOKENS, 1).scatter(1, best, 1.0)
        kept = marks[..., None].expand(-1, -1, X.shape[1]).reshape(X.shape).bool()
        values, places = made.masked_fill(~kept, -math.inf).topk(4)
        return values, places

    def plain(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = x.softmax(-1).topk(4)
        return values, places

    assert status(rw.capture(plain, (X,)), rw.capture(grouped, (X,))) == "proved"
