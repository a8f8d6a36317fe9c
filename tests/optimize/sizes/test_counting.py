"""Counting elements: sums of ones where sizes are symbols, numbers where they are numbers."""

from __future__ import annotations

import math

import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.digest import digest
from rewright.ir.dims import Dim, evaluate, symbol
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.sizes import with_sizes
from rewright.ir.types import DType, TensorType
from rewright.ops.leaf import splat
from rewright.optimize.sizes.counting import add_count, fold_counts

B, S = symbol("b"), symbol("s")
SIZES = {"b": 3, "s": 11}


def counting(value: Dim, dtype: DType) -> Graph:
    """A count of elements as a program of its own."""
    builder = GraphBuilder()
    builder.output("output", add_count(builder, value, dtype))
    return builder.build()


@pytest.mark.parametrize("value", [7, S, S - 1, 2 * B * S + S - 4, 1 - S])
@pytest.mark.parametrize("dtype", [DType.F32, DType.I64])
def test_a_size_is_the_number_that_it_has(value: Dim, dtype: DType) -> None:
    fixed = with_sizes(counting(value, dtype), SIZES)

    assert int(run(fixed, {})["output"]) == evaluate(value, SIZES)
    assert splat(fold_counts(fixed).nodes[-1].op) == evaluate(value, SIZES)


def spread(value: float, dtype: DType = DType.F32) -> Graph:
    """One number in a row of three."""
    builder = GraphBuilder()
    one = builder.add(ops.Constant(TensorType((), dtype), (value,)))
    builder.output("output", builder.add(ops.BroadcastInDim((3,), ()), one))
    return builder.build()


@pytest.mark.parametrize("value", [0.0, -0.0, 0.5, math.inf, math.nan])
def test_only_whole_numbers_are_folded(value: float) -> None:
    assert digest(fold_counts(spread(value))) == digest(spread(value))


def test_the_zeros_stay_two() -> None:
    assert digest(fold_counts(spread(0.0))) != digest(fold_counts(spread(-0.0)))


@pytest.mark.parametrize("kind", ["maximum", "product"])
def test_other_reductions_are_not_counts(kind: str) -> None:
    builder = GraphBuilder()
    ones = builder.add(ops.Constant(TensorType((5,), DType.F32), (1.0,)))
    builder.output("output", builder.add(ops.Reduce(kind, (0,)), ones))
    graph = builder.build()

    assert digest(fold_counts(graph)) == digest(graph)


def test_integers_that_wrap_are_not_folded() -> None:
    builder = GraphBuilder()
    many = builder.add(ops.Constant(TensorType((4,), DType.I32), (1 << 30,)))
    builder.output("output", builder.add(ops.Reduce("sum", (0,)), many))
    graph = builder.build()

    assert digest(fold_counts(graph)) == digest(graph)
