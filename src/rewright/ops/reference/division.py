"""Integer division towards minus infinity; the IR divides towards zero."""

from __future__ import annotations

from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import building as rb
from rewright.ops.reference.indexing import is_nonnegative


def floor_divide(b: GraphBuilder, x: int, y: int) -> int:
    """The largest integer that is not above ``x / y``."""
    quotient = rb.divide(b, x, y)
    if b.type(x).dtype.is_unsigned or (is_nonnegative(b, x) and is_nonnegative(b, y)):
        return quotient
    rest = rb.binary(b, ops.Remainder(), x, y)
    return rb.select(b, is_rounded_up(b, rest, y), rb.shift_by(b, quotient, -1), quotient)


def floor_remainder(b: GraphBuilder, x: int, divisor: int) -> int:
    """The remainder by a number above zero, which is not negative either."""
    rest = rb.binary(b, ops.Remainder(), x, rb.splat_like(b, divisor, x))
    if b.type(x).dtype.is_unsigned or is_nonnegative(b, x):
        return rest
    below = rb.compare(b, "LT", rest, rb.splat_like(b, 0, rest))
    return rb.select(b, below, rb.shift_by(b, rest, divisor), rest)


def is_rounded_up(b: GraphBuilder, rest: int, divisor: int) -> int:
    """Whether division towards zero is upwards: a remainder is not zero, and has another sign than the divisor."""
    nonzero = rb.compare(b, "NE", rest, rb.splat_like(b, 0, rest))
    below = rb.compare(b, "LT", rest, rb.splat_like(b, 0, rest))
    negative = rb.compare(b, "LT", divisor, rb.splat_like(b, 0, divisor))
    return rb.binary(b, ops.And(), nonzero, rb.binary(b, ops.Xor(), below, negative))
