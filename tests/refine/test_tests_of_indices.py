"""Masks by a difference of indices, in the several ways in which programs write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.refine.engine import answer

SIZE = 6
Made = Callable[[GraphBuilder, int, int], int]


def compared(direction: str, left: int, right: int, swapped: bool = False) -> Made:
    """``j + left (direction) i + right``, or with the sides for one another."""

    def make(b: GraphBuilder, i: int, j: int) -> int:
        kind = b.type(i)
        sides = [
            b.add(ops.Add(), place, b.add(ops.Constant(kind, (offset,)))) for place, offset in ((j, left), (i, right))
        ]
        return b.add(ops.Compare(direction), *(reversed(sides) if swapped else sides))  # type: ignore[arg-type]

    return make


def masked(make: Made, transposed: bool = False) -> Graph:
    """Elements where a test of their row i and their column j holds, and zero elsewhere."""
    b = GraphBuilder("masked")
    x = b.input("x", ops.Input("x", TensorType((SIZE, SIZE), DType.F32)))
    kind = TensorType((SIZE, SIZE), DType.I64)
    i, j = (b.add(ops.Iota(kind, axis)) for axis in ((1, 0) if transposed else (0, 1)))
    mask = make(b, i, j)
    if transposed:
        mask = b.add(ops.Transpose((1, 0)), mask)
    zero = b.add(ops.Constant(b.type(x), (0.0,)))
    b.output("y", b.add(ops.Select(), mask, x, zero))
    return b.build()


WINDOW = masked(compared("GT", 0, -4))
"""A sliding window: ``j > i - 4``."""
SAME = {
    "from an offset of its own": compared("GE", 3, 0),
    "the other way round": compared("LE", 3, 0, swapped=True),
    "both sides moved": compared("GT", 7, 3),
    "by what is before": compared("LT", 0, -4, swapped=True),
}
OTHERS = {
    "one more": compared("GE", 4, 0),
    "one less": compared("GT", 0, -3),
    "the other side": compared("LT", 0, 4),
    "i and j for one another": compared("GT", 0, -4, swapped=True),
}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", SAME)
def test_one_mask_written_in_other_ways_is_one(name: str, transposed: bool) -> None:
    verdict = answer(WINDOW, [masked(SAME[name], transposed)], {"*": "Replicate()"}, audit=True)

    assert verdict.status == "proved" and verdict.evidence.name == "PROVED"


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_masks_that_differ_by_one_are_told_apart(name: str, transposed: bool) -> None:
    verdict = answer(WINDOW, [masked(OTHERS[name], transposed)], {"*": "Replicate()"}, audit=True)

    assert verdict.status == "refuted"


@pytest.mark.parametrize("direction", ["EQ", "NE", "LT", "GE"])
def test_a_test_and_its_mirror_image_are_apart_but_for_equality(direction: str) -> None:
    left, right = masked(compared(direction, 1, 1)), masked(compared(direction, 0, 0))
    mirrored = masked(compared(direction, 0, 0, swapped=True))

    assert answer(left, [right], {"*": "Replicate()"}, audit=True).status == "proved"
    expected = "proved" if direction in ("EQ", "NE") else "refuted"
    assert answer(left, [mirrored], {"*": "Replicate()"}, audit=True).status == expected


@pytest.mark.parametrize("filling", [0.0, float("-inf")])
def test_what_is_no_number_times_zero_is_not_hidden_by_a_mask(filling: float) -> None:
    """``where(mask, x, filling) * mask`` is ``x * mask`` unless zero times the filling is no number."""

    def times(filled: bool) -> Graph:
        b = GraphBuilder("times")
        x = b.input("x", ops.Input("x", TensorType((SIZE, SIZE), DType.F32)))
        i, j = (b.add(ops.Iota(TensorType((SIZE, SIZE), DType.I64), axis)) for axis in (0, 1))
        mask = compared("LE", 0, 0)(b, i, j)
        value = b.add(ops.Select(), mask, x, b.add(ops.Constant(b.type(x), (filling,)))) if filled else x
        b.output("y", b.add(ops.Multiply(), value, b.add(ops.Convert(DType.F32), mask)))
        return b.build()

    verdict = answer(times(True), [times(False)], {"*": "Replicate()"})

    assert verdict.status == ("refuted" if filling else "proved")
