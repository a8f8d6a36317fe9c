"""Sizes as polynomials: arithmetic, division and order agree with integers for every value of the symbols."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright.ir.dims import Dim, at_most, divide, evaluate, is_nonnegative, product, symbol
from rewright.ir.sizes_in_text import parse_dim

B, S = symbol("b"), symbol("s")
VALUES = [{"b": b, "s": s} for b, s in itertools.product((1, 2, 3, 7), repeat=2)]


def sizes() -> st.SearchStrategy[Dim]:
    leaves = st.one_of(st.integers(-4, 4), st.sampled_from([B, S]))
    return st.recursive(
        leaves,
        lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner).map(
            lambda t: t[1] + t[2] if t[0] == "+" else t[1] - t[2] if t[0] == "-" else t[1] * t[2]
        ),
        max_leaves=5,
    )


@given(sizes(), sizes())
def test_arithmetic_agrees_with_integers(left: Dim, right: Dim) -> None:
    for values in VALUES:
        a, b = evaluate(left, values), evaluate(right, values)
        assert evaluate(left + right, values) == a + b
        assert evaluate(left - right, values) == a - b
        assert evaluate(left * right, values) == a * b


@given(sizes(), sizes())
def test_equality_is_equality_of_functions(left: Dim, right: Dim) -> None:
    if left == right:
        assert hash(left) == hash(right)
        assert all(evaluate(left, v) == evaluate(right, v) for v in VALUES)
    assert (left - right == 0) == (left == right)


@given(sizes(), sizes())
def test_an_exact_quotient_times_the_divisor_is_the_dividend(left: Dim, right: Dim) -> None:
    if right != 0:
        assert divide(left * right, right) == left
    quotient = divide(left, right)
    assert quotient is None or quotient * right == left


@given(sizes())
def test_a_decided_order_holds_for_every_value(size: Dim) -> None:
    decided = is_nonnegative(size)
    if decided is not None:
        assert all((evaluate(size, values) >= 0) == decided for values in VALUES)


@given(sizes())
def test_printing_and_parsing(size: Dim) -> None:
    assert parse_dim(str(size)) == size


def test_order_by_the_fact_that_symbols_are_at_least_one() -> None:
    assert at_most(B, B * S) is True
    assert at_most(B * S + 1, B) is False
    assert at_most(B, S) is None


def test_symbols_that_cancel_leave_a_number() -> None:
    assert (B + 2) - B == 2
    assert isinstance((B + 2) - B, int)


def test_number_of_elements() -> None:
    assert product((B, 4, S)) == 4 * B * S
    assert product(()) == 1


def test_missing_value() -> None:
    with pytest.raises(KeyError, match="no value for size symbol 's'"):
        evaluate(B * S, {"b": 2})


@pytest.mark.parametrize("text", ["b/2", "2b", "2**b"])
def test_texts_that_are_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parse_dim(text)
