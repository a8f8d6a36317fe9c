"""What is rewritten before plans are made is the same program, infinities, ties and NaN included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.optimize import optimize
from rewright.optimize.preparing import prepared


def first(result: str, shape: tuple[int, ...], dtype: DType) -> Graph:
    """The first of ``top_k`` along the last axis."""
    builder = GraphBuilder("first")
    x = builder.input("x", ops.Input("x", TensorType(shape, dtype)))
    builder.output("0", builder.add(ops.TopK(1, result), x))  # type: ignore[arg-type]
    return builder.build()


@given(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 2.0, np.inf, np.nan]), min_size=12, max_size=12))
def test_the_first_of_top_k_is_an_extremum_and_its_place(values: list[float]) -> None:
    given_ = {"x": np.array(values).reshape(2, 6)}
    for result in ("values", "indices"):
        graph = first(result, (2, 6), DType.F64)
        found = prepared(graph, places=True)

        assert not any(isinstance(node.op, ops.TopK) for node in found.nodes)
        assert found.nodes[found.outputs["0"]].type == graph.nodes[graph.outputs["0"]].type
        np.testing.assert_array_equal(run(found, given_)["0"], run(graph, given_)["0"])


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3, 4)])
def test_integers_have_places_too(shape: tuple[int, ...]) -> None:
    given_ = {"x": np.random.default_rng(0).integers(-2, 3, shape)}
    graph = first("indices", shape, DType.I64)

    np.testing.assert_array_equal(run(prepared(graph, places=True), given_)["0"], run(graph, given_)["0"])


def test_a_place_that_is_looked_up_stays_one_that_is_known_to_exist() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        scores = torch.tanh(x @ w)
        return torch.gather(scores, -1, scores.argmax(-1, keepdim=True)) * 2

    generator = torch.Generator().manual_seed(0)
    args = torch.randn(9, 16, generator=generator), torch.randn(16, 40, generator=generator)

    found = optimize(program, args, target="torch", allow="tested")

    assert found.status == "proved", found.reason
    torch.testing.assert_close(found(*args), program(*args))
