"""Sliding windows are found in expressions, and written as the operator that they are."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph
from rewright.optimize.planning.planner import Planner
from rewright.optimize.planning.preparing import prepare_graph
from rewright.optimize.proving.proofs import trust
from rewright.optimize.proving.regraph import regraph
from rewright.optimize.running.checking import draw
from tests.optimize.programs import normal

POOLS = {
    "average": lambda x: F.avg_pool1d(x, 5, 1, 2),
    "of a product": lambda x: F.avg_pool1d(x * x, 3, 1, 0),
    "with steps": lambda x: F.avg_pool1d(x, 4, 3, 2),
    "of a part": lambda x: F.avg_pool1d(x[..., 3:30], 3, 2, 1),
}


def written(program: object) -> tuple[Graph, Graph]:
    graph = prepare_graph(rw.capture(program, (normal(2, 3, 41),)))
    return graph, regraph(Planner(graph).plan(), as_computed=False)


@pytest.mark.parametrize("name", POOLS)
def test_a_pooling_is_its_operator_again(name: str) -> None:
    graph, plan = written(POOLS[name])

    assert any(isinstance(node.op, ops.ReduceWindow) for node in plan.nodes)
    inputs = draw(graph, 1.0, 0)
    for mine, expected in zip(run(plan, inputs).values(), run(graph, inputs).values(), strict=True):
        torch.testing.assert_close(torch.as_tensor(mine), torch.as_tensor(expected))
    assert trust(Planner(graph).plan()).certificate is not None


def test_a_weighted_window_is_no_pooling() -> None:
    """A convolution's weights go with the window: there is no body that windows slide over."""

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x, (1, 1))
        return sum(padded[..., k : k + x.shape[-1]] * w[k] for k in range(3))  # type: ignore[return-value]

    found = rw.optimize(program, (normal(2, 41), normal(3, seed=1)), target="torch")

    assert found.status == "proved"
    torch.testing.assert_close(
        found(normal(2, 41), normal(3, seed=1)), program(normal(2, 41), normal(3, seed=1)), rtol=1e-5, atol=1e-6
    )
