"""Numbers that a certificate takes for minus infinity have to be left out by a softmax of the program."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.proof.rewriting.filled import why_not
from rewright.proof.rewriting.numbers.taken import Taken
from rewright.proof.rewriting.splices import Splice, Stage

SHAPE = (4, 8)
ROWS = TensorType(SHAPE, DType.F32)
LOWEST = -3.4028234663852886e38
Make = Callable[["Masked"], int]


class Masked:
    """A program of scores, a mask and a number that the mask is filled with."""

    def __init__(self, number: float) -> None:
        self.b = GraphBuilder()
        self.scores = self.b.input("scores", ops.Input("scores", ROWS))
        self.mask = self.b.input("mask", ops.Input("mask", TensorType(SHAPE, DType.BOOL)))
        self.filling = self.b.add(ops.Constant(ROWS, (number,)))

    def of(self, op: ops.TensorOperator, *operands: int) -> int:
        return self.b.add(op, *operands)

    def number(self, value: float) -> int:
        return self.b.add(ops.Constant(ROWS, (value,)))

    def row(self, kind: str, x: int) -> int:
        return self.of(ops.BroadcastInDim(SHAPE, (0,)), self.of(ops.Reduce(kind, (1,)), x))

    def softmax(self, x: int) -> int:
        power = self.of(ops.Exponential(), self.of(ops.Subtract(), x, self.row("maximum", x)))
        return self.of(ops.Divide(), power, self.row("sum", power))

    def graph(self, result: int) -> Graph:
        self.b.output("y", result)
        return self.b.build()


def reason(number: float, make: Make) -> str:
    """Why the filling of a program is no minus infinity; empty where it is."""
    masked = Masked(number)
    graph = masked.graph(make(masked))
    kind = "mask" if number == LOWEST else "filling"
    numbers = () if number == LOWEST else (number,)
    stage = Stage((Splice(masked.filling, "lemma"),), ())
    return why_not(graph, stage, {"lemma": (Taken(kind, numbers),)}) or ""


def chosen(m: Masked) -> int:
    return m.of(ops.Select(), m.mask, m.scores, m.filling)


def added(m: Masked) -> int:
    return m.of(ops.Add(), m.scores, m.of(ops.Select(), m.mask, m.number(0.0), m.filling))


@pytest.mark.parametrize("number", [-1e4, -1e9, LOWEST])
@pytest.mark.parametrize("masked", [chosen, added])
def test_a_softmax_leaves_it_out(number: float, masked: Make) -> None:
    assert reason(number, lambda m: m.softmax(masked(m))) == ""


@pytest.mark.parametrize(
    "make",
    [
        chosen,  # returned as it is
        lambda m: m.of(ops.Multiply(), chosen(m), m.scores),
        lambda m: m.of(ops.Tanh(), chosen(m)),
        lambda m: m.row("sum", chosen(m)),
        lambda m: m.row("maximum", chosen(m)),  # read by more than the row that it is subtracted from
        lambda m: m.softmax(m.of(ops.Multiply(), chosen(m), m.number(1e-6))),  # scaled down to a score
        lambda m: m.softmax(m.of(ops.Add(), chosen(m), m.number(1e9))),  # brought back by as large a number
        lambda m: m.of(ops.Compare("LT"), chosen(m), m.number(-1e3)),
        lambda m: m.of(ops.Subtract(), m.scores, m.filling),
        lambda m: m.of(ops.Sine(), m.filling),
    ],
)
def test_a_number_that_does_something_else_is_none(make: Make) -> None:
    assert "is not left out by a softmax" in reason(-1e9, make)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.softmax(m.of(ops.Add(), chosen(m), m.number(1e38))),
        lambda m: m.softmax(m.of(ops.Multiply(), chosen(m), m.number(1e-30))),
        lambda m: m.softmax(m.of(ops.Divide(), chosen(m), m.number(1e30))),
        lambda m: m.of(ops.Multiply(), m.of(ops.Negate(), chosen(m)), m.number(1e-30)),
        lambda m: m.of(ops.Add(), m.of(ops.Negate(), chosen(m)), m.number(-1e38)),
        lambda m: m.of(ops.Multiply(), m.of(ops.Subtract(), m.scores, chosen(m)), m.number(1e-30)),
        lambda m: m.of(ops.Subtract(), m.number(-1e38), chosen(m)),
        lambda m: m.of(ops.Subtract(), chosen(m), m.number(-1e38)),
        lambda m: m.of(ops.Subtract(), chosen(m), m.filling),
        lambda m: m.of(ops.Multiply(), m.of(ops.Multiply(), chosen(m), m.number(1e-15)), m.number(1e-15)),
        lambda m: m.of(ops.Multiply(), m.of(ops.Multiply(), chosen(m), m.number(-1.0)), m.number(1e-30)),
        lambda m: m.of(ops.Divide(), m.scores, chosen(m)),  # small, and may be multiplied
        lambda m: m.of(ops.Log(), m.of(ops.Negate(), chosen(m))),  # 88
        lambda m: m.of(ops.Rsqrt(), m.of(ops.Abs(), chosen(m))),
        lambda m: m.of(ops.Sine(), chosen(m)),
        lambda m: m.of(ops.Compare("EQ"), chosen(m), m.number(-math.inf)),
        lambda m: m.of(ops.Compare("EQ"), chosen(m), m.number(LOWEST)),  # which is not taken for infinite itself
        lambda m: m.of(ops.Convert(DType.I64), chosen(m)),
    ],
)
def test_no_usual_number_may_be_made_of_the_most_negative_one(make: Make) -> None:
    assert "may be another number" in reason(LOWEST, make)


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.of(ops.Negate(), chosen(m)),
        lambda m: m.of(ops.Subtract(), m.scores, m.of(ops.Abs(), chosen(m))),
        lambda m: m.of(ops.Exponential(), m.of(ops.Multiply(), chosen(m), m.number(0.125))),
        lambda m: m.of(ops.Multiply(), m.of(ops.Tanh(), chosen(m)), m.number(1e-30)),
        lambda m: m.of(ops.Compare("GT"), chosen(m), m.number(-1e38)),
        lambda m: m.of(ops.Compare("EQ"), chosen(m), m.filling),
        lambda m: m.of(ops.Multiply(), chosen(m), m.scores),
        lambda m: m.of(ops.Maximum(), chosen(m), m.number(-1e38)),
    ],
)
def test_what_is_infinite_or_the_same_for_both_is_fine(make: Make) -> None:
    assert reason(LOWEST, make) == ""


def test_other_things_that_are_taken_are_not_asked() -> None:
    masked = Masked(-1e9)
    graph = masked.graph(chosen(masked))
    stage = Stage((Splice(masked.filling, "lemma"),), ())
    assert why_not(graph, stage, {"lemma": (Taken("scalars", (1.0, 1.0)),), "other": (Taken("mask"),)}) is None
