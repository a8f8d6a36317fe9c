"""Quotients by the sum of their own row are one whatever is taken out of all of a row, and only then."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright import ops
from rewright.analysis.values import facts_of_ranks
from rewright.equiv.engine import equiv
from rewright.equiv.rewrites.canonical_softmax import with_softmax
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from tests.equiv.rewriting import alone, rewritten

Function = Callable[[torch.Tensor], torch.Tensor]
X = torch.zeros(3, 5)


def divided(x: torch.Tensor) -> torch.Tensor:
    return x / x.sum(-1, keepdim=True)


def usual(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


SAME: dict[str, Function] = {
    "nothing is subtracted": lambda x: divided(torch.exp(x)),
    "the largest twice": lambda x: torch.softmax(x - x.amax(-1, keepdim=True), -1),
    "the mean": lambda x: divided(torch.exp(x - x.mean(-1, keepdim=True))),
    "a sum of exponentials as a factor": lambda x: divided(torch.softmax(x, -1) * (1 + x.square().sum(-1, True))),
    "of what is a share already": lambda x: divided(torch.softmax(x, -1)),
}
OTHER: dict[str, Function] = {
    "a shift for each column": lambda x: divided(torch.exp(x - torch.arange(5.0))),
    "a factor for each column": lambda x: divided(torch.exp(x) * (1 + torch.arange(5.0))),
    "of another row": lambda x: torch.exp(x) / torch.exp(x).sum(0, keepdim=True),
    "a little in the sum": lambda x: torch.exp(x) / (torch.exp(x).sum(-1, keepdim=True) + 1e-3),
    "a factor of zero": lambda x: divided(torch.exp(x) * 0.0),
    "a shift that is infinite": lambda x: divided(torch.exp(x + torch.full((3, 1), -math.inf))),
    "a factor of any sign": lambda x: divided(torch.exp(x) * x.mean(-1, keepdim=True)),
}


def captured(function: Function) -> Graph:
    return rw.capture(function, (X,))


@pytest.mark.parametrize("name", SAME)
def test_one_form(name: str) -> None:
    graphs = captured(SAME[name]), captured(usual)
    after = rewritten(with_softmax, graphs)
    assert equiv(*graphs).status == "proved"
    x = np.random.default_rng(0).normal(size=(3, 5))
    for before, changed in zip(graphs, after, strict=True):
        (label,) = before.inputs
        for output, value in run(before, {label: x}).items():
            np.testing.assert_allclose(run(changed, {label: x})[output], value, rtol=1e-12)


@pytest.mark.parametrize("name", OTHER)
def test_another_function_stays(name: str) -> None:
    assert equiv(captured(OTHER[name]), captured(usual), explain=False).status != "proved"


def test_the_usual_softmax_stays_as_it_is() -> None:
    graph = captured(usual)
    assert alone(with_softmax, graph) is graph


def test_an_element_more_in_the_sum() -> None:
    """A sink is a score that has no value: beside the others in one softmax, or only in the sum below."""

    def beside(x: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
        scores = torch.cat([x, sink.expand(3, 1)], -1)
        return torch.softmax(scores - scores.amax(-1, keepdim=True), -1)[:, :-1]

    def below(x: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
        largest = torch.maximum(x.amax(-1, keepdim=True), sink)
        grown = torch.exp(x - largest)
        return grown / (grown.sum(-1, keepdim=True) + torch.exp(sink - largest))

    def plain(x: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.cat([x, sink.expand(3, 1)], -1), -1)[:, :-1]

    left, right, third = (rw.capture(function, (X, torch.zeros(1))) for function in (beside, below, plain))
    assert equiv(left, third).status == "proved"
    assert equiv(left, right).status == "proved"
    forgotten = rw.capture(lambda x, sink: torch.softmax(x, -1) + 0 * sink, (X, torch.zeros(1)))
    assert equiv(left, forgotten, explain=False).status == "refuted"


def rank_graph(*, divides: bool) -> Graph:
    builder = GraphBuilder("rank")
    x = builder.input("x", ops.Input("x", TensorType((4,), DType.F32)))
    sent = builder.add(ops.Divide(), x, x) if divides else x
    builder.output("y", builder.add(ops.AllReduce("sum", ((0, 1),)), sent))
    return builder.build()


def test_what_ranks_send_is_real_where_all_of_it_is() -> None:
    plain, risky = rank_graph(divides=False), rank_graph(divides=True)
    assert all(known[plain.outputs["y"]].is_finite for known in facts_of_ranks([plain, plain]))
    assert facts_of_ranks([plain, risky])[0][plain.outputs["y"]].nan
