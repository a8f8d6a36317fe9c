"""A mean of squares less the square of the mean is not negative over the reals, and only that."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from rewright import ops
from rewright.analysis.values import Setting, facts_of
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import UNKNOWN, Facts

F = DType.F64
ROWS, SIZE = 3, 4


class Writer(GraphBuilder):
    """Writes programs of one input, x of shape (3, 4)."""

    def __init__(self) -> None:
        super().__init__()
        self.x = self.input("x", ops.Input("x", TensorType((ROWS, SIZE), F)))

    def number(self, like: int, value: float, dtype: DType = F) -> int:
        kind = TensorType(self.type(like).shape, dtype)
        found = self.add(ops.Constant(kind, (value,)))
        return found if dtype is F else self.add(ops.Convert(F), found)

    def total(self, x: int, axis: int = 1) -> int:
        return self.add(ops.Reduce("sum", (axis,)), x)

    def scaled(self, x: int, value: float, dtype: DType = F) -> int:
        return self.add(ops.Multiply(), x, self.number(x, value, dtype))

    def over(self, x: int, value: float, dtype: DType = F) -> int:
        return self.add(ops.Divide(), x, self.number(x, value, dtype))

    def square(self, x: int) -> int:
        return self.add(ops.Multiply(), x, x)

    def wide(self, x: int) -> int:
        return self.add(ops.BroadcastInDim((ROWS, SIZE), (0,)), x)

    def less(self, x: int, y: int) -> int:
        return self.add(ops.Subtract(), x, y)


def plain(b: Writer) -> int:
    return b.less(b.scaled(b.total(b.square(b.x)), 0.25), b.square(b.scaled(b.total(b.x), 0.25)))


def divided(b: Writer) -> int:
    squares = b.add(ops.Power(), b.x, b.number(b.x, 2))
    return b.less(b.over(b.total(squares), 4, DType.I32), b.square(b.over(b.total(b.x), 4)))


def laid_out(b: Writer) -> int:
    squares = b.scaled(b.wide(b.total(b.square(b.x))), 0.25)
    return b.less(squares, b.square(b.wide(b.scaled(b.total(b.x), 0.25))))


def more_squares(b: Writer) -> int:
    return b.less(b.over(b.total(b.square(b.x)), 3), b.square(b.over(b.total(b.x), 4)))


def elements_beside(b: Writer) -> int:
    other = b.scaled(b.x, 2)
    return b.less(b.over(b.total(b.square(b.x)), 4), b.square(b.over(b.total(other), 4)))


def fewer_squares(b: Writer) -> int:
    return b.less(b.over(b.total(b.square(b.x)), 5), b.square(b.over(b.total(b.x), 4)))


def nearly(b: Writer) -> int:
    return b.less(b.over(b.total(b.square(b.x)), 4), b.square(b.scaled(b.total(b.x), math.nextafter(0.25, 1))))


def no_square(b: Writer) -> int:
    return b.less(b.over(b.total(b.square(b.x)), 4), b.over(b.total(b.x), 4))


def turned(b: Writer) -> int:
    return b.less(b.square(b.over(b.total(b.x), 4)), b.over(b.total(b.square(b.x)), 4))


def other_rows(b: Writer) -> int:
    squares = b.add(ops.BroadcastInDim((4, 4), (0,)), b.total(b.square(b.x), 0))
    means = b.add(ops.BroadcastInDim((4, 4), (1,)), b.over(b.total(b.x, 0), 3))
    return b.less(b.over(squares, 3), b.square(means))


def below_zero(b: Writer) -> int:
    return b.less(b.scaled(b.total(b.square(b.x)), -0.25), b.square(b.scaled(b.total(b.x), 0.25)))


def a_byte(b: Writer) -> int:
    """260 is 4 as a byte."""
    return b.less(b.over(b.total(b.square(b.x)), 4), b.square(b.over(b.total(b.x), 260, DType.U8)))


def facts(write: Callable[[Writer], int], setting: Setting | None = None) -> tuple[Graph, Facts]:
    b = Writer()
    b.output("y", write(b))
    graph = b.build()
    return graph, facts_of(graph, setting or Setting())[graph.outputs["y"]]


@pytest.mark.parametrize("write", [plain, divided, laid_out, more_squares])
def test_variances(write: Callable[[Writer], int]) -> None:
    graph, found = facts(write)
    assert found.is_nonnegative and found.is_finite and found.zero
    rng = np.random.default_rng(0)
    for x in (rng.integers(-3, 4, (ROWS, SIZE)), np.full((ROWS, SIZE), -2)):
        assert (run(graph, {"x": x.astype(float)})["y"] >= 0).all()


@pytest.mark.parametrize(
    "write",
    [elements_beside, fewer_squares, nearly, no_square, turned, other_rows, below_zero, a_byte],
)
def test_what_may_be_negative(write: Callable[[Writer], int]) -> None:
    assert facts(write)[1].may_be_negative


@pytest.mark.parametrize("write", [plain, divided, laid_out])
def test_a_machine_rounds_them_below_zero(write: Callable[[Writer], int]) -> None:
    assert facts(write, Setting(is_rounded=True))[1].may_be_negative


def test_infinite_elements_give_no_number() -> None:
    graph, found = facts(plain, Setting(floats=UNKNOWN))
    assert found.nan and found.is_nonnegative
    x = np.zeros((ROWS, SIZE))
    for value in (math.inf, -math.inf, math.nan):
        x[0, 0] = value
        with np.errstate(all="ignore"):
            assert np.isnan(run(graph, {"x": x})["y"][0])
