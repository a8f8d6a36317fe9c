"""Bounds of tensors that are made of numbers alone, held against what these programs compute."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewright import ops
from rewright.analysis.ends import ends
from rewright.interp.ranks import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType

N = 5
ROW = TensorType((N,), DType.F64)
WINDOW = ops.ReduceWindow("sum", (N,), (1,), ((N - 1, 0),))
ONE = (
    ops.Negate(),
    ops.Abs(),
    ops.Exponential(),
    ops.Tanh(),
    ops.Logistic(),
    ops.Sine(),
    ops.Erf(),
    ops.Rsqrt(),
    WINDOW,
)
ONE += (ops.ExponentialMinusOne(), ops.LogPlusOne(), ops.Floor(), ops.Sign(), ops.Sort(0, False, "values"))
TWO = (ops.Add(), ops.Subtract(), ops.Multiply(), ops.Divide(), ops.Maximum(), ops.Minimum(), ops.Power())


def random_program(source: random.Random) -> Graph:
    """Numbers and places combined with each other, the last one summed up."""
    builder = GraphBuilder("numbers")
    places = builder.add(ops.Convert(DType.F64), builder.add(ops.Iota(TensorType((N,), DType.I64), 0)))
    made = [places]
    for _ in range(2):
        values = tuple(source.choice((-3.0, -1.0, -0.5, 0.0, 0.25, 2.0)) for _ in range(N))
        made.append(builder.add(ops.Constant(ROW, values)))
    made.append(builder.add(ops.Constant(ROW, (source.choice((-2.0, -1.0, 2.0, 3.0)),))))
    for _ in range(4):
        kind = source.random()
        if kind < 0.1:
            whole = builder.add(ops.Convert(DType.I64), source.choice(made))
            by = builder.add(ops.Constant(TensorType((N,), DType.I64), (source.choice((-3, 2, 4)),)))
            made.append(builder.add(ops.Convert(DType.F64), builder.add(ops.Divide(), whole, by)))
        elif kind < 0.2:
            made.append(builder.add(ops.Clamp(), *(source.choice(made) for _ in range(3))))
        elif kind < 0.5:
            made.append(builder.add(source.choice(ONE), source.choice(made)))
        else:
            made.append(builder.add(source.choice(TWO), source.choice(made), source.choice(made)))
    builder.output("sum", builder.add(ops.Reduce("sum", (0,)), made[-1]))
    for number, position in enumerate(made):
        builder.output(str(number), position)
    return builder.build()


@pytest.mark.parametrize("seed", range(200))
def test_every_element_is_within_ends(seed: int) -> None:
    graph = random_program(random.Random(seed))
    known = ends(graph)

    with np.errstate(all="ignore"):
        values = run(graph, {}).outputs

    for name, position in graph.outputs.items():
        found = known[position]
        if found is not None:
            low, high = found
            numbers = values[name][~np.isnan(values[name])]
            slack = 1e-9 * (1 + np.abs(numbers))
            assert np.all((numbers >= low - slack) & (numbers <= high + slack)), (name, found, numbers)


def test_most_of_them_are_known() -> None:
    programs = [random_program(random.Random(seed)) for seed in range(50)]

    assert sum(found is not None for graph in programs for found in ends(graph)) > 250


@pytest.mark.parametrize(("value", "found"), [(200.0, None), (100.0, (100.0, 100.0)), (-129.0, None)])
def test_whole_numbers_that_do_not_fit_have_no_ends(value: float, found: object) -> None:
    """They are counted from the other end."""
    builder = GraphBuilder("short")
    short = builder.add(ops.Convert(DType.I8), builder.add(ops.Constant(ROW, (value,))))
    builder.output("0", short)

    assert ends(builder.build())[short] == found


def test_a_place_is_within_its_axis_whatever_is_looked_at() -> None:
    builder = GraphBuilder("place")
    given = builder.input("x", ops.Input("x", ROW))
    place = builder.add(ops.TopK(1, "indices"), given)
    turned = builder.add(ops.Cosine(), given)
    builder.output("0", place)
    builder.output("1", turned)

    assert [ends(builder.build())[p] for p in (given, place, turned)] == [None, (0.0, N - 1.0), (-1.0, 1.0)]


def test_nothing_is_known_of_one_over_what_may_be_zero() -> None:
    builder = GraphBuilder("inverse")
    values = builder.add(ops.Constant(ROW, (-1.0, -0.001, 0.001, 0.5, 1.0)))
    power = builder.add(ops.Power(), values, builder.add(ops.Constant(ROW, (-1.0,))))
    quotient = builder.add(ops.Divide(), builder.add(ops.Constant(ROW, (1.0,))), values)
    builder.output("0", power)
    builder.output("1", quotient)

    assert [ends(builder.build())[p] for p in (power, quotient)] == [None, None]
