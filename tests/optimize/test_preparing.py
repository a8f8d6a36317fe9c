"""What is rewritten before plans are made is the same program, infinities, ties and NaN included."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rewright as rw
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


def test_axes_side_by_side_are_one_where_no_loop_goes_over_some_of_them() -> None:
    def norm(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.group_norm(x, 4)

    def entropies(x: torch.Tensor) -> torch.Tensor:
        return torch.special.entr(torch.softmax(x, -1)).sum((-2, -1))

    def longest(program: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> int:
        graph = prepared(rw.capture(program, (x,)))
        read = [graph.nodes[n.operands[0]].type.shape for n in graph.nodes if isinstance(n.op, ops.Reduce)]
        return max(int(str(shape[-1])) for shape in read)

    assert longest(norm, torch.zeros(2, 12, 7, 5)) == 3 * 7 * 5
    assert longest(entropies, torch.zeros(3, 4, 6)) == 6


def test_what_has_no_elements_is_left_out_or_said() -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))

    joined = optimize(lambda x, none: torch.softmax(torch.cat([none, x], -1), -1), (x, x[:, :0]), target="torch")
    nothing = optimize(lambda x: torch.softmax(x, -1), (x[:0],), target="torch")

    assert joined.status == "proved", joined.reason
    torch.testing.assert_close(joined(x, x[:, :0]), torch.softmax(x, -1))
    assert "no elements" in nothing.reason
    assert nothing(x[:0]).shape == (0, 8)
