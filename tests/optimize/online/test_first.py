"""The first of ``top_k`` is a maximum and its place, by its denotation: infinities, ties and NaN included."""

from __future__ import annotations

from functools import cache

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
from rewright.optimize.api import Optimized
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove


def first(result: str, shape: tuple[int, ...], dtype: DType) -> Graph:
    """The first of ``top_k`` along the last axis."""
    builder = GraphBuilder("first")
    x = builder.input("x", ops.Input("x", TensorType(shape, dtype)))
    builder.output("0", builder.add(ops.TopK(1, result), x))  # type: ignore[arg-type]
    return builder.build()


@cache
def kernels(result: str, shape: tuple[int, ...], dtype: DType) -> Optimized:
    found = optimize(first(result, shape, dtype), target="torch")
    assert found.status == "proved", found.reason
    assert found.plan is not None and len(found.plan.steps) == len(found.plan.kernels) == 1
    return found


@given(st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 2.0, np.inf, np.nan]), min_size=12, max_size=12))
def test_it_is_an_extremum_and_its_place(values: list[float]) -> None:
    x = np.array(values).reshape(2, 6)
    for result in ("values", "indices"):
        expected = run(first(result, (2, 6), DType.F64), {"x": x})["0"]
        found = kernels(result, (2, 6), DType.F64).run({"x": torch.tensor(x)})["0"]
        np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4)])
def test_integers_have_places_too(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-2, 3, shape)

    found = kernels("indices", shape, DType.I64).run({"x": torch.tensor(x)})["0"]

    np.testing.assert_array_equal(found.numpy(), run(first("indices", shape, DType.I64), {"x": x})["0"])


def test_the_second_and_the_last_are_other_ones() -> None:
    """What is chosen is the first in order: neither the least element nor the place of the last largest one."""
    shape = (2, 6)
    right = first("indices", shape, DType.F32)
    for kind, sign in (("minimum", "maximum"), ("maximum", "maximum")):
        builder = GraphBuilder("other")
        x = builder.input("x", ops.Input("x", TensorType(shape, DType.F32)))
        extremum = builder.add(ops.BroadcastInDim(shape, (0,)), builder.add(ops.Reduce(kind, (1,)), x))  # type: ignore[arg-type]
        place = builder.add(ops.Iota(TensorType(shape, DType.I64), 1))
        none = builder.add(ops.Subtract(), place, place)
        chosen = builder.add(ops.Select(), builder.add(ops.Compare("EQ"), x, extremum), place, none)
        found = builder.add(ops.Reduce(sign, (1,)), chosen)  # type: ignore[arg-type]
        builder.output("0", builder.add(ops.Reshape((2, 1)), found))
        assert prove(Claim(right, builder.build()), 2.0).status != "proved"
