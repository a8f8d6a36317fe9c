"""Number systems: exactness and infinities."""

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewright.interp.arithmetic import Floats
from rewright.interp.rationals import Rationals
from rewright.ir.errors import RewrightError

FRACTIONS = st.fractions(min_value=-20, max_value=20, max_denominator=50)
EXACT = Rationals()


def test_rationals_have_no_rounding() -> None:
    tenth = EXACT.literal(0.1)
    assert tenth == Fraction(0.1) != Fraction(1, 10)
    assert EXACT.apply("add", (Fraction(1, 3), Fraction(1, 6))) == Fraction(1, 2)


def test_roots_are_exact_where_they_are_rational() -> None:
    assert EXACT.apply("sqrt", (Fraction(9, 4),)) == Fraction(3, 2)
    assert EXACT.apply("rsqrt", (Fraction(9, 4),)) == Fraction(2, 3)
    assert EXACT.apply("power", (Fraction(2), Fraction(-3))) == Fraction(1, 8)
    assert EXACT.apply("exponential", (Fraction(0),)) == 1


def test_a_masked_score_has_weight_zero() -> None:
    assert EXACT.apply("exponential", (-math.inf,)) == 0
    assert EXACT.apply("maximum", (-math.inf, Fraction(3))) == 3
    assert EXACT.apply("divide", (Fraction(1), math.inf)) == 0
    assert EXACT.apply("compare_LT", (-math.inf, Fraction(-9))) is True


def test_infinities_that_cancel_are_not_a_number() -> None:
    assert math.isnan(EXACT.apply("subtract", (math.inf, math.inf)))


def test_an_irrational_value_is_refused() -> None:
    with pytest.raises(RewrightError, match=r"exponential\(1/2\) is no fraction; evaluate in floats"):
        EXACT.apply("exponential", (Fraction(1, 2),))


@given(FRACTIONS, FRACTIONS, st.sampled_from(["maximum", "minimum", "compare_LE", "compare_EQ", "remainder"]))
def test_rationals_agree_with_floats_on_small_numbers(left: Fraction, right: Fraction, function: str) -> None:
    left, right = Fraction(round(left * 8), 8), Fraction(round(right * 8), 8)
    assume(function != "remainder" or right != 0)
    assert EXACT.apply(function, (left, right)) == Floats().apply(function, (float(left), float(right)))


def test_floats_follow_ieee() -> None:
    floats = Floats()
    assert floats.apply("divide", (1.0, 0.0)) == math.inf
    assert floats.apply("exponential", (1e9,)) == math.inf
    assert floats.apply("log", (0.0,)) == -math.inf
    assert math.isnan(floats.apply("sqrt", (-1.0,)))
    assert math.isnan(floats.apply("maximum", (1.0, math.nan)))
