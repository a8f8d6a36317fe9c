"""What follows where a product is zero, or a count of listed truth values is."""

from __future__ import annotations

import pytest

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb
from rewright.terms.claim import Claim
from rewright.terms.normal.prove import prove

REALS, TRUTHS = TensorType((4,), DType.F32), TensorType((4,), DType.BOOL)


def zeros() -> tuple[GraphBuilder, int, int, int]:
    b = GraphBuilder()
    inputs = [b.input(name, ops.Input(name, kind)) for name, kind in (("a", REALS), ("x", REALS), ("m", TRUTHS))]
    return b, inputs[0], inputs[1], inputs[2]


def plain() -> Graph:
    b, a, _, _ = zeros()
    b.output("output", rb.splat_like(b, 0.0, a))
    return b.build()


@pytest.mark.parametrize(("direction", "status"), [("GT", "proved"), ("GE", "unknown"), ("LT", "proved")])
def test_a_factor_is_zero_where_the_other_one_is_not(direction: Direction, status: str) -> None:
    """``a x = 2 a`` and ``x > 2``: a is zero. Where x may be two it need not be."""
    b, a, x, _ = zeros()
    two = rb.splat_like(b, 2.0, a)
    equal = rb.compare(b, "EQ", b.add(ops.Multiply(), a, x), b.add(ops.Multiply(), a, two))
    both = b.add(ops.And(), equal, b.add(ops.Compare(direction), x, two))
    b.output("output", b.add(ops.Select(), both, b.add(ops.Multiply(), a, two), rb.splat_like(b, 0.0, a)))

    assert prove(Claim(b.build(), plain())).status == status


@pytest.mark.parametrize(("counted", "status"), [(range(4), "proved"), (range(3), "unknown"), (range(1, 4), "unknown")])
def test_a_count_of_listed_truths_is_not_zero_where_one_is_true(counted: range, status: str) -> None:
    """``m[0] + .. + m[3] < 1`` and ``m[i]``: of no index of four. One that is not counted may be true alone."""
    b, a, _, m = zeros()
    numbers = b.add(ops.Convert(DType.I32), m)
    listed = [rb.slice_axis(b, numbers, 0, n, n + 1) for n in counted]
    count = listed[0]
    for other in listed[1:]:
        count = b.add(ops.Add(), count, other)
    none = rb.compare(b, "LT", count, rb.splat_like(b, 1, count))
    both = b.add(ops.And(), m, b.add(ops.BroadcastInDim((4,), (0,)), none))
    b.output("output", b.add(ops.Select(), both, rb.splat_like(b, 1.0, a), rb.splat_like(b, 0.0, a)))

    assert prove(Claim(b.build(), plain())).status == status
