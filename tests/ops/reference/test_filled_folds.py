"""Folds of blocks that were filled up are the folds of what was there before, with the same values."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb
from rewright.ops.reference.simplifying import SimplifyingBuilder

KINDS: dict[ReductionKind, float] = {"sum": 0.0, "maximum": -math.inf, "minimum": math.inf, "product": 1.0}


def filled(b: GraphBuilder, shape: tuple[int, int], more: tuple[int, int], value: float) -> int:
    """An input in a block of whole tiles, with its last axis in two."""
    x = b.input("x", ops.Input("x", TensorType(shape, DType.F64)))
    x = rb.pad(b, x, [0, 0], list(more), value)
    rows, columns = b.type(x).shape
    assert isinstance(columns, int)
    return rb.reshape(b, x, (rows, columns // 2, 2)) if columns % 2 == 0 else rb.reshape(b, x, (rows, 1, columns))


def both(build: Callable[[GraphBuilder], int]) -> list[Graph]:
    """A program as it is written, and simplified."""
    found: list[Graph] = []
    for b in (GraphBuilder(), SimplifyingBuilder()):
        b.output("out", build(b))
        found.append(b.build())
    return found


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 5)),
    more=st.tuples(st.integers(0, 2), st.integers(0, 3)),
    axes=st.sampled_from([(1, 2), (0, 1, 2), (2,), (0,)]),
    doubled=st.booleans(),
)
def test_values_are_the_same(
    kind: ReductionKind, shape: tuple[int, int], more: tuple[int, int], axes: tuple[int, ...], doubled: bool
) -> None:
    def build(b: GraphBuilder) -> int:
        x = filled(b, shape, more, KINDS[kind])
        x = b.add(ops.Maximum(), x, x) if doubled else x
        return rb.reduce(b, kind, x, axes)

    x = np.random.default_rng(0).standard_normal(shape)
    left, right = (run(graph, {"x": x})["out"] for graph in both(build))
    assert np.allclose(left, right)


def test_a_maximum_of_what_was_filled_up_is_one_of_what_was_there() -> None:
    _, graph = both(lambda b: rb.reduce(b, "maximum", filled(b, (3, 5), (0, 3), -math.inf), (0, 1, 2)))

    assert not any(isinstance(graph.nodes[p].op, ops.Pad) for p in graph.ancestors(graph.outputs.values()))


def test_what_is_not_neutral_stays() -> None:
    _, graph = both(lambda b: rb.reduce(b, "maximum", filled(b, (3, 5), (0, 3), 0.0), (0, 1, 2)))
    values = run(graph, {"x": np.full((3, 5), -1.0)})["out"]

    assert values == 0.0


def test_a_sort_of_what_was_filled_up() -> None:
    def build(b: GraphBuilder) -> int:
        x = b.input("x", ops.Input("x", TensorType((2, 5), DType.F64)))
        x = rb.pad(b, x, [0, 0], [0, 3], -math.inf)
        return rb.slice_axis(b, b.add(ops.Sort(1, True, "values"), x), 1, 0, 4)

    x = np.array([[3.0, -math.inf, 1, 1, 2], [0, math.inf, -1, 5, 5]])
    left, right = both(build)
    assert np.array_equal(run(left, {"x": x})["out"], run(right, {"x": x})["out"])
    assert not any(isinstance(right.nodes[p].op, ops.Pad) for p in right.ancestors(right.outputs.values()))


@pytest.mark.parametrize("result", ["indices", "values"])
def test_the_largest_of_rows_that_were_filled_up(result: str) -> None:
    def build(b: GraphBuilder) -> int:
        x = b.input("x", ops.Input("x", TensorType((3, 4), DType.F64)))
        x = rb.reshape(b, rb.pad(b, x, [0, 0], [1, 4], -math.inf), (2, 2, 8))
        return b.add(ops.TopK(1, result), x)  # pyright: ignore[reportArgumentType]

    x = np.array([[1.0, 3, 3, 2], [-math.inf] * 4, [5, 0, 5, 0]])
    left, right = (run(graph, {"x": x})["out"] for graph in both(build))
    assert np.array_equal(left, right)


def test_a_truth_value_that_was_a_number_is_one_again() -> None:
    def build(b: GraphBuilder) -> int:
        x = b.input("x", ops.Input("x", TensorType((4,), DType.BOOL)))
        return rb.compare(b, "NE", rb.convert(b, x, DType.I8), rb.splat(b, 0, (4,), DType.I8))

    _, graph = both(build)
    assert graph.outputs["out"] == graph.inputs["x"]


def test_long_chains_of_functions_are_not_walked_through() -> None:
    def build(b: GraphBuilder) -> int:
        x = b.input("x", ops.Input("x", TensorType((3,), DType.F64)))
        x = rb.pad(b, x, [0], [1], 0.0)
        for _ in range(3000):
            x = b.add(ops.Maximum(), x, x)
        return rb.reduce(b, "sum", x, [0])

    assert all(run(graph, {"x": np.arange(3.0)})["out"] == 3.0 for graph in both(build))


def test_what_is_no_number_stays_behind_infinity() -> None:
    def build(b: GraphBuilder) -> int:
        x = b.input("x", ops.Input("x", TensorType((3,), DType.F64)))
        return b.add(ops.Sort(0, False, "values"), rb.pad(b, x, [0], [1], math.inf))

    left, right = (run(graph, {"x": np.array([math.nan, 1.0, 2.0])})["out"] for graph in both(build))
    assert np.array_equal(left, right, equal_nan=True)
