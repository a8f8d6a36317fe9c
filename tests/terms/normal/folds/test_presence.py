"""Rows of which a mask may leave nothing: where both sides have no number, and where one has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import pytest

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

ROWS, ROW = TensorType((2, 3), DType.F32), TensorType((2,), DType.F32)
Write = Callable[[GraphBuilder, int, int], int]


def over(b: GraphBuilder, kind: Literal["sum", "maximum"], x: int) -> int:
    """A row's sum or largest element, along the row."""
    return b.add(ops.BroadcastInDim((2, 3), (0,)), b.add(ops.Reduce(kind, (1,)), x))


def share(b: GraphBuilder, x: int) -> int:
    return b.add(ops.Divide(), x, over(b, "sum", x))


def number(b: GraphBuilder, value: float) -> int:
    return b.add(ops.Constant(ROWS, (value,)))


def masked_exponential(b: GraphBuilder, x: int, kept: int) -> int:
    return b.add(ops.Multiply(), b.add(ops.Exponential(), x), b.add(ops.Convert(DType.F32), kept))


def by_products(b: GraphBuilder, x: int, kept: int) -> int:
    """``exp(x) m / sum(exp(x) m)``"""
    return share(b, masked_exponential(b, x, kept))


def by_choices(b: GraphBuilder, x: int, kept: int) -> int:
    """``softmax(where(m, x, -inf))``"""
    chosen = b.add(ops.Select(), kept, x, number(b, -math.inf))
    return share(b, b.add(ops.Exponential(), b.add(ops.Subtract(), chosen, over(b, "maximum", chosen))))


def with_zeros(b: GraphBuilder, x: int, kept: int) -> int:
    """As by products, with a divisor of one in the place of zero."""
    weights = masked_exponential(b, x, kept)
    total = over(b, "sum", weights)
    nothing = b.add(ops.Compare("EQ"), total, number(b, 0.0))
    return b.add(ops.Divide(), weights, b.add(ops.Select(), nothing, number(b, 1.0), total))


def with_a_little(b: GraphBuilder, x: int, kept: int) -> int:
    weights = masked_exponential(b, x, kept)
    return b.add(ops.Divide(), weights, b.add(ops.Add(), over(b, "sum", weights), number(b, 1e-9)))


def program(write: Write) -> Graph:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", ROWS))
    kept = b.input("kept", ops.Input("kept", TensorType((2, 3), DType.BOOL)))
    b.output("result", write(b, x, kept))
    return b.build()


def status(left: Write, right: Write) -> str:
    return prove(Claim(program(left), program(right))).status


def test_a_row_of_nothing_has_no_number_either_way() -> None:
    """``0 / 0`` on one side, and minus infinity less minus infinity on the other."""
    assert status(by_choices, by_products) == "proved"
    assert status(by_products, by_choices) == "proved"


@pytest.mark.parametrize("other", [with_zeros, with_a_little])
@pytest.mark.parametrize("one", [by_products, by_choices])
def test_a_row_of_nothing_with_a_number_is_another_function(one: Write, other: Write) -> None:
    assert status(one, other) != "proved"
    assert status(other, one) != "proved"


def twice(b: GraphBuilder, x: int, kept: int) -> int:
    """``max(where(m, x, -inf)) - max(where(m, x, -inf))``, which is no number where nothing is kept"""
    largest = over(b, "maximum", b.add(ops.Select(), kept, x, number(b, -math.inf)))
    return b.add(ops.Subtract(), largest, largest)


def nothing_is_minus_infinity(b: GraphBuilder, x: int, kept: int) -> int:
    largest = over(b, "maximum", b.add(ops.Select(), kept, x, number(b, -math.inf)))
    nothing = b.add(ops.Compare("EQ"), largest, number(b, -math.inf))
    return b.add(ops.Select(), nothing, number(b, -math.inf), number(b, 0.0))


def test_two_largest_elements_of_nothing_cancel_to_no_number() -> None:
    assert status(twice, nothing_is_minus_infinity) != "proved"
    assert status(nothing_is_minus_infinity, twice) != "proved"


def test_what_is_like_a_row_is_there_in_the_row_itself() -> None:
    """A softmax over those of the same kind, of which each is one, has a number everywhere."""

    def weights(b: GraphBuilder, alike: int, x: int) -> int:
        whole = TensorType((3, 3), DType.F32)
        spread = b.add(ops.BroadcastInDim((3, 3), (1,)), x)
        chosen = b.add(ops.Select(), alike, spread, b.add(ops.Constant(whole, (-math.inf,))))
        largest = b.add(ops.BroadcastInDim((3, 3), (0,)), b.add(ops.Reduce("maximum", (1,)), chosen))
        return b.add(ops.Exponential(), b.add(ops.Subtract(), chosen, largest))

    def summed(write: Callable[[GraphBuilder, int, int], int], direction: Literal["EQ", "NE"]) -> Graph:
        b = GraphBuilder()
        ids = b.input("ids", ops.Input("ids", TensorType((3,), DType.I64)))
        x = b.input("x", ops.Input("x", TensorType((3,), DType.F32)))
        sides = [b.add(ops.BroadcastInDim((3, 3), (axis,)), ids) for axis in (0, 1)]
        total = b.add(ops.Reduce("sum", (1,)), write(b, b.add(ops.Compare(direction), *sides), x))
        none = b.add(ops.Compare("NE"), total, total)
        b.output("result", b.add(ops.Convert(DType.F32), none))
        return b.build()

    zeros = GraphBuilder()
    zeros.input("ids", ops.Input("ids", TensorType((3,), DType.I64)))
    zeros.input("x", ops.Input("x", TensorType((3,), DType.F32)))
    zeros.output("result", zeros.add(ops.Constant(TensorType((3,), DType.F32), (0.0,))))
    never = zeros.build()

    assert prove(Claim(summed(weights, "EQ"), never)).status == "proved"
    assert prove(Claim(summed(weights, "NE"), never)).status != "proved"
