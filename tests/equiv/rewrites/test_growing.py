"""A choice behind a function is the choice in front of it where the function keeps the order, and only there."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright import ops
from rewright.equiv.engine import equiv
from rewright.interp.program import run
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from tests.equiv.rewriting import law, rewritten
from tests.programs import Builder

Function = Callable[[torch.Tensor], torch.Tensor]
X = torch.zeros(5, 6)


def chosen(function: Function, *, weighed: bool = False) -> Graph:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, index = torch.topk(function(x), 2)
        return (values / values.sum(-1, keepdim=True) if weighed else values), index

    return rw.capture(program, (X,))


def plain(x: torch.Tensor) -> torch.Tensor:
    return x


KEEPING: dict[str, Function] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "exponential": torch.exp,
    "logistic": torch.sigmoid,
    "shifted": lambda x: x - x.amax(-1, keepdim=True),
    "scaled": lambda x: 3 * x + 1,
    "by a positive sum": lambda x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True),
}
OTHER: dict[str, Function] = {
    "negated": lambda x: -x,
    "squared": lambda x: x * x,
    "a shift for each column": lambda x: x - torch.arange(6.0),
    "by a factor of any sign": lambda x: x * x.mean(-1, keepdim=True),
    "softmax over another axis": lambda x: torch.softmax(x, 0),
    "subtracted": lambda x: x.amax(-1, keepdim=True) - x,
    "by zero": lambda x: x * 0.0,
    "by an exponential of minus infinity": lambda x: x * torch.exp(torch.full((5, 1), -math.inf)),
    "plus minus infinity": lambda x: torch.sigmoid(x + torch.full((5, 1), -math.inf)),
    "cut off": torch.relu,
}


@pytest.mark.parametrize("name", KEEPING)
def test_the_same_is_chosen(name: str) -> None:
    graphs = chosen(KEEPING[name]), chosen(plain)
    after = rewritten(law("growing"), graphs)
    inputs = np.random.default_rng(0).normal(size=(5, 6))
    for before, changed in zip(graphs, after, strict=True):
        (label,) = before.inputs
        expected, found = run(before, {label: inputs}), run(changed, {label: inputs})
        for output, value in expected.items():
            np.testing.assert_allclose(found[output], value, rtol=1e-12)
    assert all(isinstance(_source(graph), ops.Input) for graph in after)


def _source(graph: Graph) -> object:
    (node,) = {node.operands: node for node in graph.nodes if isinstance(node.op, ops.TopK)}.values()
    return graph.nodes[node.operands[0]].op


@pytest.mark.parametrize("name", OTHER)
def test_something_else_is_chosen(name: str) -> None:
    after = rewritten(law("growing"), [chosen(OTHER[name]), chosen(plain)])
    assert not isinstance(_source(after[0]), ops.Input)
    assert equiv(chosen(OTHER[name]), chosen(plain), explain=False).status != "proved"


def test_what_another_rank_sends_sets_no_program_apart() -> None:
    """The logits of a rank are sums of what others send, of which nothing is known; its softmax is the same one."""

    def program(world: int) -> Graph:
        build = Builder("rank")
        x = build.matmul(build.tensor("x", (5, 8 // world)), build.tensor("w", (8 // world, 6)))
        x = build.all_reduce(x, world) if world > 1 else x
        power = build.add(ops.Exponential(), build.add(ops.Subtract(), x, _row(build, "maximum", x)))
        shares = build.add(ops.Divide(), power, _row(build, "sum", power))
        build.output("values", build.add(ops.TopK(2, "values"), shares))
        build.output("places", build.add(ops.TopK(2, "indices"), shares))
        return build.build()

    graphs = program(1), program(2), program(2)
    mesh = Mesh.of({"tp": 2})
    held = {"x": place((5, 8), mesh, ["Shard(1)"]), "w": place((8, 6), mesh, ["Shard(0)"])}
    assert equiv(graphs[0], RankProgram(graphs[1:], mesh, held, {}), explain=False).status == "proved"


def _row(build: Builder, kind: str, x: int) -> int:
    return build.add(ops.BroadcastInDim((5, 6), (0,)), build.add(ops.Reduce(kind, (1,)), x))


def test_weights_of_the_chosen() -> None:
    """``softmax``, the choice and a division by the sum of the chosen is the choice and then ``softmax``."""
    after = rw.capture(lambda x: (torch.softmax((best := torch.topk(x, 2)).values, -1), best.indices), (X,))
    assert equiv(chosen(KEEPING["softmax"], weighed=True), after).status == "proved"
    assert equiv(chosen(KEEPING["softmax"]), after, explain=False).status == "refuted"
