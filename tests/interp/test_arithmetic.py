"""Number systems: exactness, infinities, uninterpreted functions, and what a field cannot do."""

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rewright.interp.arithmetic import Floats
from rewright.interp.field import PrimeField, Residue
from rewright.interp.rationals import Rationals
from rewright.ir.errors import RewrightError

FRACTIONS = st.fractions(min_value=-20, max_value=20, max_denominator=50)
EXACT, FIELD = Rationals(), PrimeField()


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
    with pytest.raises(RewrightError, match=r"exponential\(1/2\) is no fraction; evaluate with opaque functions"):
        EXACT.apply("exponential", (Fraction(1, 2),))


def test_opaque_functions_depend_on_their_arguments_only() -> None:
    opaque = Rationals(opaque=True)
    half = opaque.apply("exponential", (Fraction(1, 2),))
    assert half == opaque.apply("exponential", (Fraction(2, 4),))
    assert half != opaque.apply("exponential", (Fraction(1, 3),))
    assert half != opaque.apply("tanh", (Fraction(1, 2),))


@given(FRACTIONS, FRACTIONS, st.sampled_from(["add", "subtract", "multiply", "divide"]))
def test_the_field_agrees_with_fractions(left: Fraction, right: Fraction, function: str) -> None:
    assume(function != "divide" or right != 0)
    expected = FIELD.residue(EXACT.apply(function, (left, right)))
    assert FIELD.apply(function, (FIELD.residue(left), FIELD.residue(right))) == expected


@given(FRACTIONS, FRACTIONS, st.sampled_from(["maximum", "minimum", "compare_LE", "compare_EQ", "remainder"]))
def test_rationals_agree_with_floats_on_small_numbers(left: Fraction, right: Fraction, function: str) -> None:
    left, right = Fraction(round(left * 8), 8), Fraction(round(right * 8), 8)
    assume(function != "remainder" or right != 0)
    assert EXACT.apply(function, (left, right)) == Floats().apply(function, (float(left), float(right)))


def test_what_a_field_cannot_do() -> None:
    one = FIELD.literal(1.0)
    assert one == Residue(1, FIELD.prime)
    for function in ("maximum", "compare_LT", "exponential", "convert_i64"):
        with pytest.raises(RewrightError, match="of a residue has no value; evaluate in rationals or floats"):
            FIELD.apply(function, (one, one))
    with pytest.raises(RewrightError, match="inf is not in the prime field"):
        FIELD.literal(math.inf)
    with pytest.raises(RewrightError, match="division by zero in the prime field"):
        FIELD.apply("divide", (one, FIELD.literal(0.0)))


def test_integers_keep_their_order_in_a_field() -> None:
    assert FIELD.apply("compare_LT", (2, 3)) is True
    assert FIELD.apply("convert_f32", (3,)) == FIELD.literal(3.0)
    assert PrimeField(opaque=True).apply("tanh", (FIELD.literal(1.0),)) is not None


def test_floats_follow_ieee() -> None:
    floats = Floats()
    assert floats.apply("divide", (1.0, 0.0)) == math.inf
    assert floats.apply("exponential", (1e9,)) == math.inf
    assert floats.apply("log", (0.0,)) == -math.inf
    assert math.isnan(floats.apply("sqrt", (-1.0,)))
    assert math.isnan(floats.apply("maximum", (1.0, math.nan)))
