"""Parts of programs that bound and round, or look for the largest size of a number, for the law orders."""

from __future__ import annotations

from rewright import ops
from rewright.ir.operator import Operator
from tests.proof.rewriting.law_parts import ROWS, SIZE, Part

ROW = (ROWS, SIZE)


def broken(b: Part, name: str = "x") -> int:
    return b.of(ops.Multiply(), b.read(name), b.number(0.3 * b.k))


def clamped(b: Part) -> int:
    return b.of(ops.RoundNearestEven(), b.of(ops.Clamp(), b.number(-1.0), broken(b), b.number(0.0)))


def clamped_from_below(b: Part) -> int:
    return b.of(ops.Floor(), b.of(ops.Clamp(), broken(b), b.number(0.0), b.number(1.0)))


def bounded_twice(b: Part) -> int:
    return b.of(ops.Ceil(), b.of(ops.Minimum(), b.number(0.0), b.of(ops.Maximum(), broken(b), b.number(-1.0))))


def largest_size(b: Part, layout: Operator | None = None) -> int:
    """The larger one of the largest element and of the negative of the least, which a layout may spread."""
    x = b.of(ops.Multiply(), b.read("x"), b.number(b.k))
    ends = b.of(ops.Reduce("maximum", (1,)), x), b.of(ops.Negate(), b.of(ops.Reduce("minimum", (1,)), x))
    return b.of(ops.Maximum(), *(ends if layout is None else (b.of(layout, end) for end in ends)))


def largest_size_turned(b: Part) -> int:
    return largest_size(b, ops.Reverse((0,)))


def between_broken_numbers(b: Part) -> int:
    return b.of(ops.Floor(), b.of(ops.Clamp(), b.number(-0.5), broken(b), b.number(1.0)))


def of_two(b: Part) -> int:
    return b.of(ops.Floor(), b.of(ops.Minimum(), broken(b), broken(b, "y")))


def in_two_orders(b: Part) -> int:
    x = b.read("x")
    least = b.of(ops.Negate(), b.of(ops.Reduce("minimum", (1,)), x))
    return b.of(ops.Maximum(), b.of(ops.Reverse((0,)), b.of(ops.Reduce("maximum", (1,)), x)), least)
