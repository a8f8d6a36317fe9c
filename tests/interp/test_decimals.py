"""Fifty digits: every function against double precision, and values that do not exist."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from rewright.interp.arithmetic import Floats
from rewright.interp.decimals import Decimals, close
from rewright.ir.errors import NotKnown, RewrightError
from rewright.ops.functions import FUNCTIONS

NUMBERS = Decimals()
POINTS = (0.125, 0.5, 1.0, 2.5)


IRRATIONAL = {name: f for name, f in FUNCTIONS.items() if f.values.exact is None and name not in ("divide", "power")}
KNOWN = sorted(n for n, f in IRRATIONAL.items() if f.values.digits is not None or f.values.definition is not None)


@pytest.mark.parametrize("function", KNOWN)
def test_functions_agree_with_double_precision(function: str) -> None:
    for point in POINTS:
        found = NUMBERS.apply(function, [Decimal(point)])
        assert math.isclose(float(found), Floats().apply(function, [point]), rel_tol=1e-14)


@pytest.mark.parametrize("function", sorted(set(IRRATIONAL) - set(KNOWN)))
def test_special_functions_have_no_fifty_digits(function: str) -> None:
    with pytest.raises(RewrightError, match=f"{function} is not known to 50 digits"):
        NUMBERS.apply(function, [Decimal(1), Decimal(2)])


def test_fifty_digits_of_e() -> None:
    assert str(NUMBERS.apply("exponential", [Decimal(1)])) == "2.7182818284590452353602874713526624977572470937000"


def test_the_square_of_sine_and_cosine_is_one() -> None:
    x = Decimal("1.7")
    squares = [NUMBERS.apply("multiply", [v, v]) for f in ("sine", "cosine") for v in [NUMBERS.apply(f, [x])]]
    assert close(NUMBERS.apply("add", squares), Decimal(1), digits=45)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("divide", (1, 0)),
        ("log", (-1,)),
        ("log", ("-Infinity",)),
        ("sine", ("Infinity",)),
        ("divide", ("Infinity", 0)),
        ("power", (0, -1)),
        ("convert_i64", ("Infinity",)),
        ("sqrt", (-1,)),
        ("rsqrt", (0,)),
        ("subtract", ("Infinity", "Infinity")),
        ("multiply", (0, "Infinity")),
    ],
)
def test_what_is_not_defined_is_an_error(function: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(RewrightError, match="is not defined"):
        NUMBERS.apply(function, [Decimal(a) for a in arguments])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("atan2", (3, 1)),
        ("bessel_i0e", (1,)),
        ("log_gamma", ("-Infinity",)),
        ("sine", (500,)),
        ("erf", (8,)),
        ("exponential", ("1e12",)),
        ("exponential", ("-1e12",)),  # not zero: one over it, or the share that it has of twice itself, is a number
        ("multiply", ("1e-600000000", "1e-600000000")),
        ("divide", ("1e-600000000", "1e600000000")),
        ("floor", ("0.99999999999999999999999999999999999999999999999999",)),
    ],
)
def test_what_is_not_known_is_not_undefined(function: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(NotKnown):
        NUMBERS.apply(function, [Decimal(a) for a in arguments])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("power", (0, 0), 1),
        ("power", ("-Infinity", 3), "-Infinity"),
        ("log", (0,), "-Infinity"),
        ("tanh", ("-Infinity",), -1),
        ("logistic", ("-Infinity",), 0),
        ("floor", ("-Infinity",), "-Infinity"),
        ("exponential", ("-Infinity",), 0),
        ("erf", (40,), 1),
    ],
)
def test_functions_at_infinity_and_at_zero(function: str, arguments: tuple[object, ...], expected: object) -> None:
    assert NUMBERS.apply(function, [Decimal(a) for a in arguments]) == Decimal(expected)  # type: ignore[arg-type]


def test_rounding_does_not_decide_an_order() -> None:
    third = NUMBERS.apply("divide", [Decimal(1), Decimal(3)])
    one = NUMBERS.apply("multiply", [third, Decimal(3)])
    assert NUMBERS.apply("compare_EQ", [one, Decimal(1)])
    assert not NUMBERS.apply("compare_LT", [one, Decimal(1)])


@pytest.mark.parametrize("point", ["0.3333333333333333333333333333333333333333333333333", "2.7", "-1.1"])
def test_tanh_is_a_shifted_logistic(point: str) -> None:
    """To all digits, and not only to those that Python's decimals have by default."""
    x, one, two = Decimal(point), Decimal(1), Decimal(2)
    curve = NUMBERS.apply("logistic", [NUMBERS.apply("multiply", [x, two])])
    shifted = NUMBERS.apply("subtract", [NUMBERS.apply("multiply", [curve, two]), one])
    assert close(NUMBERS.apply("tanh", [x]), shifted, digits=45)
