"""Bounds of tensors that are made of numbers alone, held against what these programs compute."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewright import ops
from rewright.equiv.bounds import bounds
from rewright.interp.ranks import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType

N = 5
ROW = TensorType((N,), DType.F64)
ONE = (ops.Negate(), ops.Abs(), ops.Exponential(), ops.Tanh(), ops.Logistic(), ops.Sine(), ops.Erf())
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
        elif kind < 0.45:
            made.append(builder.add(source.choice(ONE), source.choice(made)))
        else:
            made.append(builder.add(source.choice(TWO), source.choice(made), source.choice(made)))
    builder.output("sum", builder.add(ops.Reduce("sum", (0,)), made[-1]))
    for number, position in enumerate(made):
        builder.output(str(number), position)
    return builder.build()


@pytest.mark.parametrize("seed", range(200))
def test_every_element_is_within_bounds(seed: int) -> None:
    graph = random_program(random.Random(seed))
    known = bounds(graph)

    with np.errstate(all="ignore"):
        values = run(graph, {}).outputs

    for name, position in graph.outputs.items():
        found = known[position]
        if found is not None:
            low, high = found
            slack = 1e-9 * (1 + abs(low) + abs(high))
            assert np.all((values[name] >= low - slack) & (values[name] <= high + slack)), (name, found, values[name])


def test_most_of_them_are_known() -> None:
    programs = [random_program(random.Random(seed)) for seed in range(50)]

    assert sum(found is not None for graph in programs for found in bounds(graph)) > 250


def test_nothing_is_known_of_one_over_what_may_be_nought() -> None:
    builder = GraphBuilder("inverse")
    values = builder.add(ops.Constant(ROW, (-1.0, -0.001, 0.001, 0.5, 1.0)))
    power = builder.add(ops.Power(), values, builder.add(ops.Constant(ROW, (-1.0,))))
    quotient = builder.add(ops.Divide(), builder.add(ops.Constant(ROW, (1.0,))), values)
    builder.output("0", power)
    builder.output("1", quotient)

    assert [bounds(builder.build())[p] for p in (power, quotient)] == [None, None]
