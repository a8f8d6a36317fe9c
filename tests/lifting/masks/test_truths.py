"""Truth values that were made numbers and are compared with a number."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType
from rewright.ops.functions.record import Direction
from rewright.refine import refine
from tests.programs import Builder

ROWS = 4
COMPARISONS: dict[Direction, Callable[[float, float], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
}


def chosen(test: Callable[[Builder, int], int]) -> Graph:
    """An input where a test of its being above 0.3 says so, else minus the input."""
    build = Builder("chosen")
    x = build.tensor("x", (ROWS,))
    above = build.add(ops.Compare("GT"), x, build.full(0.3, x))
    build.output("y", build.add(ops.Select(), test(build, above), x, build.add(ops.Negate(), x)))
    return build.build()


def compared(direction: Direction, number: float, flipped: bool) -> Graph:
    def test(build: Builder, above: int) -> int:
        value = build.add(ops.Convert(DType.F32), above)
        pair = value, build.full(number, value)
        return build.add(ops.Compare(direction), *(pair[::-1] if flipped else pair))

    return chosen(test)


def truth(no: bool, yes: bool) -> Graph:
    """What a function of truth values is that is ``no`` of false and ``yes`` of true."""

    def test(build: Builder, above: int) -> int:
        if no == yes:
            either = build.add(ops.Or(), above, build.add(ops.Not(), above))
            return either if yes else build.add(ops.Not(), either)
        return above if yes else build.add(ops.Not(), above)

    return chosen(test)


@pytest.mark.sample(4)
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("number", [-1.0, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("direction", COMPARISONS)
def test_a_comparison_is_the_truth_the_opposite_or_decided(direction: Direction, number: float, flipped: bool) -> None:
    holds = COMPARISONS[direction]
    no, yes = (holds(number, value) if flipped else holds(value, number) for value in (0.0, 1.0))
    mesh = Mesh.of({"tp": 1})
    for candidate in [(False, False), (False, True), (True, False), (True, True)]:
        placed = {"x": place((ROWS,), mesh, ["Replicate()"])}
        verdict = refine(compared(direction, number, flipped), RankProgram((truth(*candidate),), mesh, placed, {}))
        assert candidate == (no, yes) or verdict.status == "refuted"
        assert candidate != (no, yes) or no == yes or verdict.status == "proved", verdict.reason
