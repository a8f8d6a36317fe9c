"""What is never negative: sums of squares, longer sums minus shorter ones, and what is not."""

from __future__ import annotations

import pytest

from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.signs import is_nonnegative, is_positive
from rewright.terms.normal.facts.squares import is_sum_of_squares
from rewright.terms.normal.polynomials.atoms import Element, Polynomial, polynomial, symbol
from rewright.terms.normal.polynomials.powers import exponential
from rewright.terms.normal.polynomials.ranged import PrefixSum, bound_name


def real(name: str, *places: Polynomial) -> Polynomial:
    return polynomial(Element(name, places, False))


X, Y = real("x"), real("y")
SQUARES = {
    "a square": X * X,
    "of a sum": X * X + X * Y * 2 + Y * Y,
    "of a difference, and more": X * X - X * Y * 2 + Y * Y * 3,
    "with a number": X * X - X * 2 + 1,
    "of a product": X * X * Y * Y - X * Y * 2 + 1,
}
OTHERS = {
    "a product": X * Y,
    "too much of a product": X * X + X * Y * 3 + Y * Y,
    "too small a number": X * X - X * 2,
    "minus a square": X * X - Y * Y,
    "a cube": X * X * X + X * X,
}


@pytest.mark.parametrize("name", SQUARES)
def test_sums_of_squares(name: str) -> None:
    assert is_sum_of_squares(SQUARES[name])


@pytest.mark.parametrize("name", OTHERS)
def test_other_polynomials(name: str) -> None:
    assert not is_sum_of_squares(OTHERS[name])


@pytest.fixture
def context() -> Context:
    found = new_context(5.0)
    for name in ("m", "n"):
        found.size(name, 1)
    return found


def total(high: Polynomial, body: str) -> Polynomial:
    """The sum of ``exp(x[k])``, of ``x[k]`` or of ``(x[k] + y[k])^2`` for k below a number."""
    at = symbol(bound_name(1, 0))
    x, y = real("x", at), real("y", at)
    bodies = {"exp": exponential(x), "x": x, "square": x * x + x * y * 2 + y * y}
    return polynomial(PrefixSum((high,), bodies[body]))


def test_a_longer_sum_of_exponentials_is_larger(context: Context) -> None:
    n = symbol("n")
    assert is_positive(context, total(n + 1, "exp") - total(n, "exp"))
    assert is_nonnegative(context, total(n + symbol("m"), "exp") - total(n, "exp"))
    assert not is_nonnegative(context, total(n, "exp") - total(n + 1, "exp"))
    assert not is_nonnegative(context, total(n, "exp") - total(symbol("m"), "exp"))


def test_a_longer_sum_of_anything_is_not(context: Context) -> None:
    n = symbol("n")
    assert not is_nonnegative(context, total(n + 1, "x") - total(n, "x"))


def test_a_sum_of_squares_and_a_small_number_is_positive(context: Context) -> None:
    n = symbol("n")
    assert is_positive(context, total(n, "square") + 1)
    assert is_nonnegative(context, total(n, "square"))
    assert not is_positive(context, total(n, "square"))
    assert not is_nonnegative(context, total(n, "square") - 1)


def test_a_variance_is_not_negative(context: Context) -> None:
    """By Cauchy and Schwarz, of so many numbers and of no fewer."""
    count = polynomial(10)
    at = symbol(bound_name(1, 0))
    squares = polynomial(PrefixSum((count,), real("x", at) * real("x", at)))
    plain = total(count, "x")
    assert is_nonnegative(context, squares * 10 - plain * plain)
    assert is_nonnegative(context, (squares + X * X) * 11 - (plain + X) * (plain + X))
    assert not is_nonnegative(context, squares * 9 - plain * plain)
    assert not is_nonnegative(context, (squares + X * X) * 10 - (plain + X) * (plain + X))
    assert not is_nonnegative(context, plain * plain - squares * 10)
    n = symbol("n")
    assert not is_nonnegative(
        context, polynomial(PrefixSum((n,), real("x", at) * real("x", at))) - total(n, "x") * total(n, "x")
    )


def test_a_sum_is_taken_from_two_longer_ones(context: Context) -> None:
    n = symbol("n")
    longer = total(n + 1, "exp") + total(n + 2, "exp")
    assert is_positive(context, longer - total(n, "exp") * 2)
    assert not is_nonnegative(context, longer - total(n, "exp") * 3)
    assert not is_nonnegative(context, total(n + 1, "exp") - total(n, "exp") * 2)


def test_a_sum_without_its_first_terms_is_positive_where_one_is_left(context: Context) -> None:
    n = symbol("n")
    first = [exponential(real("x", polynomial(k))) for k in range(3)]
    assert is_positive(context, total(n + 2, "exp") - first[0] - first[1])
    assert is_nonnegative(context, total(n + 1, "exp") - first[0] - first[1])
    assert not is_positive(context, total(n + 1, "exp") - first[0] - first[1])
    assert not is_nonnegative(context, total(n, "exp") - first[0] - first[1])
    assert not is_nonnegative(context, total(n + 2, "exp") - first[0] * 2)
    assert not is_nonnegative(context, total(n + 2, "exp") - first[0] - real("y"))
    assert not is_nonnegative(context, (total(n + 2, "exp") - first[0]) * real("y"))
    assert not is_nonnegative(context, total(n + 2, "x") - real("x", polynomial(0)))
