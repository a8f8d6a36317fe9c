"""Roots of numbers are roots of primes, times a number."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright.terms.normal.polynomials.atoms import Element, Polynomial, polynomial
from rewright.terms.normal.polynomials.powers import constant_power, exponential, power, prime_powers

HALF = Fraction(1, 2)


def root(value: Fraction | int) -> Polynomial:
    return constant_power(value, HALF)


FRACTIONS = st.fractions(Fraction(1, 500), 16, max_denominator=500)


@given(FRACTIONS, FRACTIONS)
def test_roots_multiply(left: Fraction, right: Fraction) -> None:
    assert root(left) * root(right) == root(left * right)
    assert root(left) * root(left) == polynomial(left)
    assert power(root(left), -1) == root(1 / left)


@pytest.mark.parametrize(("left", "right"), [(2, 3), (8, 2), (2, Fraction(1, 2)), (12, 3), (45, 20)])
def test_roots_of_other_numbers_are_other_numbers(left: Fraction | int, right: Fraction | int) -> None:
    assert root(left) != root(right)


@given(st.integers(1, 10**12))
def test_powers_of_primes_make_the_number(number: int) -> None:
    assert math.prod(prime**often for prime, often in prime_powers(number)) == number


def test_a_large_square_is_found() -> None:
    assert root(999983**2 * 1000003**2) == polynomial(999983 * 1000003)


def test_quotients_in_exponents_are_divided_out() -> None:
    x, y = (polynomial(Element(name, (), False)) for name in "xy")
    z = exponential(x)
    over = power(z + 1, -1)
    assert exponential(z * over) == exponential(-over + 1)
    assert exponential(z * z * over) == exponential(z - 1 + over)
    assert exponential((z - 1) * over * 5) == exponential(over * -10 + 5)
    assert exponential(y * z * over) == exponential(y - y * over)
    assert exponential(z * over) != exponential(over)
    assert exponential(z * power(z + 2, -1)) != exponential(z * over)
