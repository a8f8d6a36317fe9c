"""Parts of programs that choose the largest elements, for the laws growing, fillings and picked."""

from __future__ import annotations

import math
from dataclasses import replace

from rewright import ops
from rewright.ir.types import DType
from rewright.ops.facts import REAL, UNKNOWN, Facts, facts_between
from tests.proof.rewriting.law_parts import I64, POSITIVE, ROWS, SIZE, B, F, Part

ROW = (ROWS, SIZE)


def scale(b: Part, known: Facts, shape: tuple[int, ...] = (ROWS, 1)) -> int:
    return b.spread(b.read("c", shape, known=known), ROW, 0, 1)


# --- growing functions


def softmax(b: Part) -> int:
    powers = b.of(ops.Exponential(), b.read("x"))
    total = b.spread(b.of(ops.Reduce("sum", (1,)), powers), ROW, 0)
    return b.values(b.of(ops.Divide(), powers, total))


def shifted(b: Part) -> int:
    return b.values(b.of(ops.Logistic(), b.of(ops.Subtract(), b.read("x"), scale(b, REAL))))


def scaled(b: Part) -> int:
    return b.chosen(b.of(ops.Multiply(), scale(b, POSITIVE), b.of(ops.Tanh(), b.read("x"))))


def of_other_digits(b: Part) -> int:
    x = b.read("x", known=UNKNOWN)
    return b.values(b.of(ops.Convert(DType.F32), b.of(ops.Add(), x, b.number(2.0))))


def among_equal(b: Part) -> int:
    x = scale(b, REAL)
    return b.chosen(b.of(ops.Exponential(), b.of(ops.Add(), x, x)))


def of_error_functions(b: Part) -> int:
    return b.values(b.of(ops.Erf(), b.of(ops.ExponentialMinusOne(), b.read("x"))))


def decreasing(b: Part) -> int:
    return b.chosen(b.of(ops.Negate(), b.read("x")))


def of_any_sign(b: Part) -> int:
    return b.chosen(b.of(ops.Multiply(), b.read("x"), scale(b, facts_between(-1, 1))))


def by_zero(b: Part) -> int:
    return b.chosen(b.of(ops.Multiply(), b.read("x"), scale(b, facts_between(0, 1))))


def by_infinity(b: Part) -> int:
    return b.chosen(b.of(ops.Multiply(), b.read("x"), scale(b, replace(POSITIVE, plus_infinity=True))))


def along_the_row(b: Part) -> int:
    return b.chosen(b.of(ops.Multiply(), b.read("x"), scale(b, POSITIVE, ROW)))


def subtracted_from(b: Part) -> int:
    return b.chosen(b.of(ops.Subtract(), scale(b, REAL), b.read("x")))


def other_axis(b: Part) -> int:
    total = b.spread(b.of(ops.Reduce("sum", (0,)), b.read("x")), ROW, 1)
    return b.chosen(b.of(ops.Subtract(), b.read("y"), total))


def no_function(b: Part) -> int:
    return b.chosen(b.read("x"))


def of_integers(b: Part) -> int:
    """Floats that become the same integer are equal then."""
    return b.chosen(b.of(ops.Convert(I64), b.read("x", known=facts_between(-9, 9))))


# --- fillings


def kept_rows(b: Part, filled: float, known: Facts, keep: int = 2, dtype: DType = B, mark: float = 1) -> int:
    """Scores where another choice keeps so many of them."""
    marks = b.marks(b.chosen(b.read("y"), keep), dtype, value=mark)
    kept = marks if dtype is B else b.of(ops.Convert(B), marks)
    return b.values(b.of(ops.Select(), kept, b.read("x", known=known), b.number(filled)))


def filled_with_zero(b: Part) -> int:
    return kept_rows(b, 0.0, replace(POSITIVE, plus_infinity=True))


def filled_below(b: Part) -> int:
    return kept_rows(b, -1.0, POSITIVE, dtype=F)


def all_kept(b: Part) -> int:
    return kept_rows(b, 7.0, UNKNOWN, keep=SIZE)


def groups(b: Part) -> int:
    """Two groups of two, of which one is kept."""
    marks = b.marks(b.chosen(b.read("y", (ROWS, 2)), 1), F, (ROWS, 2))
    wide = b.of(ops.Reshape(ROW), b.spread(marks, (ROWS, 2, 2), 0, 1))
    dropped = b.of(ops.Not(), b.of(ops.Convert(B), wide))
    return b.values(b.of(ops.Select(), dropped, b.number(0.0), b.read("x", known=POSITIVE)))


def filled_above(b: Part) -> int:
    return kept_rows(b, 0.5, POSITIVE)


def filled_with_nan(b: Part) -> int:
    return kept_rows(b, math.nan, POSITIVE)


def scores_of_any_sign(b: Part) -> int:
    return kept_rows(b, 0.0, REAL)


def scores_that_may_be_nan(b: Part) -> int:
    return kept_rows(b, 0.0, replace(POSITIVE, nan=True))


def fewer_kept(b: Part) -> int:
    return kept_rows(b, 0.0, POSITIVE, keep=1)


def marked_with_zero(b: Part) -> int:
    return kept_rows(b, 0.0, POSITIVE, dtype=F, mark=0)


def given_mask(b: Part) -> int:
    return b.values(b.of(ops.Select(), b.read("m", dtype=B), b.read("x", known=POSITIVE), b.number(0.0)))


def bits_turned(b: Part) -> int:
    """Every bit of one turned is no zero, so that all are dropped."""
    marks = b.marks(b.chosen(b.read("y"), 2), DType.I32)
    dropped = b.of(ops.Convert(B), b.of(ops.Not(), marks))
    return b.values(b.of(ops.Select(), dropped, b.number(0.0), b.read("x", known=POSITIVE)))


def filled_with_a_byte(b: Part) -> int:
    """-1 is 255 as a byte without a sign."""
    marks = b.marks(b.chosen(b.read("y"), 2))
    filled = b.of(ops.Convert(F), b.number(-1, dtype=DType.U8))
    return b.values(b.of(ops.Select(), marks, b.read("x", known=POSITIVE), filled))


def marked_with_a_byte(b: Part) -> int:
    """256 is 0 as a byte, so that nothing is marked."""
    marks = b.of(ops.Convert(B), b.marks(b.chosen(b.read("y"), 2), DType.U8, value=256))
    return b.values(b.of(ops.Select(), marks, b.read("x", known=POSITIVE), b.number(0.0)))


# --- what is picked


def picked(b: Part) -> int:
    x = b.read("x", known=UNKNOWN)
    return b.looked_up(x, b.of(ops.Convert(DType.I32), b.chosen(x)))


def picked_of_vector(b: Part) -> int:
    x = b.read("x", (SIZE,))
    return b.looked_up(x, b.chosen(x))


def of_another(b: Part) -> int:
    return b.looked_up(b.read("x"), b.chosen(b.read("y")))


def sorted_places(b: Part) -> int:
    x = b.read("x")
    return b.looked_up(x, b.of(ops.Sort(1, True, "indices"), x))


def picked_as_truths(b: Part) -> int:
    x = b.read("x")
    return b.looked_up(x, b.of(ops.Convert(I64), b.of(ops.Convert(B), b.chosen(x))))
