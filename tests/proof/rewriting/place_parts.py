"""Parts of programs that write and read at the places of a choice, for the laws places and rows."""

from __future__ import annotations

from rewright import ops
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import UNKNOWN, facts_between
from tests.proof.rewriting.law_parts import I64, ROWS, SIZE, B, F, Part

TABLE = (SIZE, 2)


# --- places


def weights(b: Part) -> int:
    x = b.read("x")
    return b.written(b.number(0.0), b.chosen(x), b.values(x))


def beside_their_row(b: Part) -> int:
    """Pairs of a row's number and a place in it, with places below zero counted from the end."""
    x, shape = b.read("x"), (ROWS, b.k)
    found = b.chosen(x)
    below = b.of(ops.Compare("LT"), found, b.number(0, shape, I64))
    found = b.of(ops.Select(), below, b.of(ops.Add(), found, b.number(SIZE, shape, I64)), found)
    row = b.of(ops.Iota(TensorType((*shape, 1), I64), 0))
    pairs = b.of(ops.Concatenate(2), row, b.of(ops.Reshape((*shape, 1)), found))
    return b.of(ops.Scatter("replace", (), (0, 1), (), (), (0, 1), 2), b.number(0.0), pairs, b.values(x))


def as_floats(b: Part) -> int:
    return b.of(ops.Convert(F), b.marks(b.chosen(b.read("x", known=UNKNOWN))))


def selected(b: Part) -> int:
    marks = b.of(ops.Compare("EQ"), b.marks(b.chosen(b.read("x")), F), b.number(0.0))
    return b.of(ops.Select(), marks, b.number(0.0), b.read("y"))


def selected_by_truths(b: Part) -> int:
    marks = b.of(ops.Not(), b.marks(b.chosen(b.read("x"))))
    return b.of(ops.Select(), marks, b.number(0.0), b.read("y"))


def multiplied(b: Part) -> int:
    return b.of(ops.Multiply(), b.read("y"), b.of(ops.Convert(F), b.marks(b.chosen(b.read("x")))))


def repeated(b: Part) -> int:
    places = b.read("p", (ROWS, b.k), I64, facts_between(0, SIZE - 1, whole=True))
    return b.written(b.number(0.0), places, b.read("w", (ROWS, b.k)))


def halved(b: Part) -> int:
    places = b.of(ops.Divide(), b.chosen(b.read("x")), b.number(2, (ROWS, b.k), I64))
    return b.written(b.number(0.0), places, b.read("w", (ROWS, b.k)))


def into_ones(b: Part) -> int:
    x = b.read("x")
    return b.written(b.number(1.0), b.chosen(x), b.values(x))


def rows_that_start_anew(b: Part) -> int:
    """The numbers of 300 rows as bytes, two of which are one."""
    rows = 300
    x = b.read("x", (rows, SIZE))
    row = b.of(ops.Convert(I64), b.of(ops.Iota(TensorType((rows, 1, 1), DType.U8), 0)))
    pairs = b.of(ops.Concatenate(2), row, b.of(ops.Reshape((rows, 1, 1)), b.chosen(x, 1)))
    base, w = b.number(0.0, (rows, SIZE)), b.read("w", (rows, 1))
    return b.of(ops.Scatter("replace", (), (0, 1), (), (), (0, 1), 2), base, pairs, w)


def weights_in_other_digits(b: Part) -> int:
    return b.of(ops.Convert(DType.F32), weights(b))


def twos(b: Part) -> int:
    return b.of(ops.Multiply(), b.read("y"), b.marks(b.chosen(b.read("x")), F, value=2))


def times_infinity(b: Part) -> int:
    return b.of(ops.Multiply(), b.read("y", known=UNKNOWN), b.marks(b.chosen(b.read("x")), F))


def beyond_the_row(b: Part) -> int:
    """Marks beyond a row are left out; nothing can be read there."""
    return b.of(ops.Multiply(), b.read("y"), b.marks(b.chosen(b.read("x", (ROWS, SIZE + 1))), F))


def selected_beyond_the_row(b: Part) -> int:
    marks = b.marks(b.chosen(b.read("x", (ROWS, SIZE + 1))))
    return b.of(ops.Select(), marks, b.read("y"), b.number(0.0))


def other_than_zero(b: Part) -> int:
    return b.of(ops.Select(), b.marks(b.chosen(b.read("x"))), b.read("y"), b.number(1.0))


# --- rows


def table(b: Part, shape: tuple[int, ...] = TABLE) -> int:
    return b.read("t", shape)


def logarithms(b: Part) -> int:
    """Of rows that may not have any."""
    return b.of(ops.Log(), b.rows_at(table(b), b.chosen(b.read("x"))))


def turned_and_scaled(b: Part) -> int:
    found = b.rows_at(table(b), b.chosen(b.read("x")))
    turned = b.of(ops.Transpose((2, 1, 0)), b.of(ops.Exponential(), found))
    return b.of(ops.Multiply(), turned, b.read("y", (2, b.k, ROWS)))


def products(b: Part) -> int:
    places = b.chosen(b.read("x"))
    dot = ops.DotGeneral((0, 1), (0, 1), (2,), (2,))
    return b.of(dot, b.rows_at(table(b), places), b.rows_at(b.read("u", TABLE), places))


def summed(b: Part) -> int:
    found = b.rows_at(table(b), b.chosen(b.read("x")))
    return b.of(ops.Reduce("sum", (1,)), b.of(ops.Multiply(), found, b.read("y", (ROWS, b.k, 2))))


def more_rows(b: Part) -> int:
    return b.rows_at(table(b, (SIZE + 2, 2)), b.chosen(b.read("x")))


def as_bytes(b: Part) -> int:
    return b.rows_at(table(b), b.of(ops.Convert(DType.U8), b.chosen(b.read("x"))))


def out_of_range(b: Part) -> int:
    return b.rows_at(table(b, (SIZE - 1, 2)), b.chosen(b.read("x")))


def any_places(b: Part) -> int:
    return b.rows_at(table(b), b.read("p", (ROWS, b.k), I64, facts_between(0, SIZE - 1, whole=True)))


def as_truths(b: Part) -> int:
    """Places other than zero become one."""
    truths = b.of(ops.Convert(B), b.chosen(b.read("x")))
    return b.rows_at(table(b), b.of(ops.Convert(I64), truths))


def over_places(b: Part) -> int:
    found = b.rows_at(table(b), b.chosen(b.read("x")))
    return b.of(ops.Reduce("maximum", (1,)), found)


def at_two_places(b: Part) -> int:
    places = b.chosen(b.read("x"))
    return b.of(ops.Add(), b.rows_at(table(b), places), b.rows_at(b.read("u", TABLE), b.chosen(b.read("y"))))


def wrapped_rows(b: Part) -> int:
    """A byte has places up to 127."""
    x = b.read("x", (ROWS, 200))
    return b.rows_at(table(b, (200, 2)), b.of(ops.Convert(DType.I8), b.chosen(x)))
