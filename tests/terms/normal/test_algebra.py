"""The normal form against numbers: what it says two terms are is what they are at random values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.arithmetic.cases import finite
from rewright.terms.normal.arithmetic.division import floor_quotient, floor_remainder
from rewright.terms.normal.facts.context import Context, OutOfTime
from rewright.terms.normal.facts.guards import at_least, at_least_zero, is_zero, less_than
from rewright.terms.normal.folds.sums import sum_over
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Base,
    Element,
    Exponential,
    Floor,
    Polynomial,
    Symbol,
    integer_power,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.powers import exponential, logarithm, power
from rewright.terms.normal.polynomials.ranged import PrefixSum, bound_name

NAMES = ("a", "b", "i")


def value(term: Polynomial, at: Mapping[str, int]) -> Fraction:
    """The number that a term is, where elements of tensors are some function of their index."""
    total = Fraction(0)
    for monomial, coefficient in term.terms.items():
        product = Fraction(coefficient)
        for atom, exponent in monomial:
            product *= atom_value(atom, at) ** int(exponent)
        total += product
    return total


def atom_value(atom: object, at: Mapping[str, int]) -> Fraction:
    if isinstance(atom, Symbol):
        return Fraction(at[atom.name])
    if isinstance(atom, Floor):
        return Fraction(math.floor(value(atom.numerator, at) / value(atom.divisor, at)))
    if isinstance(atom, Base):
        return value(atom.value, at)
    if isinstance(atom, Element):
        places = [int(value(index, at)) for index in atom.index]
        return Fraction(sum((n + 2) * (p * p + 3) for n, p in enumerate(places)) + ord(atom.tensor))
    assert isinstance(atom, PrefixSum)
    return _sum(atom, [int(value(bound, at)) for bound in atom.bounds], dict(at))


def _sum(atom: PrefixSum, bounds: list[int], at: dict[str, int]) -> Fraction:
    """The sum over the box, negative for every bound below zero: an antiderivative."""
    number = len(atom.bounds) - len(bounds)
    if not bounds:
        return value(atom.body, at)
    name, bound = bound_name(atom.depth, number), bounds[0]
    places = range(bound) if bound >= 0 else range(bound, 0)
    total = sum((_sum(atom, bounds[1:], {**at, name: place}) for place in places), Fraction(0))
    return total if bound >= 0 else -total


def linear() -> st.SearchStrategy[Polynomial]:
    """Terms of degree two over a few symbols."""
    numbers = st.integers(-3, 3)
    names = st.sampled_from(NAMES)

    def build(parts: list[tuple[int, str, str]], constant: int) -> Polynomial:
        total = polynomial(constant)
        for coefficient, first, second in parts:
            total = total + symbol(first) * symbol(second) * coefficient + symbol(first) * coefficient
        return total

    return st.builds(build, st.lists(st.tuples(numbers, names, names), max_size=3), numbers)


VALUES = st.fixed_dictionaries({"a": st.integers(1, 6), "b": st.integers(1, 6), "i": st.integers(0, 6)})


def context() -> Context:
    """A context in which a and b are sizes and i an index below a*b."""
    found = new_context(20)
    found.size("a", 1)
    found.size("b", 1)
    found.range("i", polynomial(0), symbol("a") * symbol("b"))
    return found


@given(linear(), linear(), VALUES)
def test_sums_and_products_are_those_of_numbers(left: Polynomial, right: Polynomial, at: dict[str, int]) -> None:
    assert value(left + right, at) == value(left, at) + value(right, at)
    assert value(left * right, at) == value(left, at) * value(right, at)
    assert (left - left) == polynomial(0)


@given(linear(), VALUES)
def test_an_inverse_is_one(term: Polynomial, at: dict[str, int]) -> None:
    if term.terms and value(term, at) != 0:
        inverse = integer_power(term, -1)
        assert value(inverse, at) * value(term, at) == 1


@settings(max_examples=60, deadline=None)
@given(linear(), st.sampled_from([symbol("a"), symbol("b"), symbol("a") * symbol("b"), polynomial(3)]), VALUES)
def test_floor_quotients_are_those_of_numbers(top: Polynomial, divisor: Polynomial, at: dict[str, int]) -> None:
    if at["i"] >= at["a"] * at["b"]:
        return
    known = context()
    quotient, rest = floor_quotient(known, top, divisor), floor_remainder(known, top, divisor)
    assert value(quotient, at) == math.floor(value(top, at) / value(divisor, at))
    assert value(rest, at) == value(top, at) % value(divisor, at)


@settings(max_examples=60, deadline=None)
@given(linear(), VALUES)
def test_decisions_hold_at_every_value(term: Polynomial, at: dict[str, int]) -> None:
    if at["i"] >= at["a"] * at["b"]:
        return
    known = context()
    for guard, truth in ((at_least_zero(term), value(term, at) >= 0), (is_zero(term), value(term, at) == 0)):
        decided = known.decide(guard)
        assert decided is None or decided == truth


def test_row_major_digits_come_back() -> None:
    known = context()
    position = symbol("i")
    row, column = floor_quotient(known, position, symbol("b")), floor_remainder(known, position, symbol("b"))
    assert row * symbol("b") + column == position
    with known.ranges([("r", polynomial(0), symbol("a")), ("c", polynomial(0), symbol("b"))]):
        joined = symbol("r") * symbol("b") + symbol("c")
        assert floor_quotient(known, joined, symbol("b")) == symbol("r")
        assert floor_remainder(known, joined, symbol("b")) == symbol("c")


@pytest.mark.parametrize(("inner", "times", "divisor"), [(8, 16, 24), (4, 8, 12), (8, 16, 20), (8, 17, 24), (5, 3, 7)])
def test_floors_in_floors(inner: int, times: int, divisor: int) -> None:
    """``16*floor(x/8) + x`` over 24 is ``floor(x/8)``: rows of groups of 8 with 16 others between them."""
    known = context()
    with known.ranges([("x", polynomial(0), polynomial(64))]):
        x = symbol("x")
        top = floor_quotient(known, x, polynomial(inner)) * times + x
        quotient = floor_quotient(known, top, polynomial(divisor))
    for number in range(64):
        expected = (times * (number // inner) + number) // divisor
        assert value(quotient, {"x": number}) == expected
    assert (inner, times, divisor) != (8, 16, 24) or quotient == floor_quotient(known, x, polynomial(8))


@settings(max_examples=40, deadline=None)
@given(st.integers(-2, 3), st.integers(-3, 3), st.integers(0, 5), st.sampled_from((1, -1)), VALUES)
def test_a_sum_over_a_range_is_the_sum(shift: int, offset: int, size: int, sign: int, at: dict[str, int]) -> None:
    """Sums of an element, of the index, and of their product, against the written-out sum."""
    known = new_context(20)
    known.size("a", 1)
    k = symbol("k")
    body = polynomial(Element("X", (k * sign + shift,), True)) * (k + offset) + k * k - k
    found = sum_over(known, "k", symbol("a") + size, body)
    assert isinstance(found, Polynomial)
    expected = sum(value(body, {**at, "k": place}) for place in range(at["a"] + size))
    assert value(found, at) == expected


def test_a_sum_over_two_parts_is_the_sum_over_both() -> None:
    known = new_context(20)
    known.size("a", 1)
    known.size("b", 1)
    k = symbol("k")
    whole = sum_over(known, "k", symbol("a") + symbol("b"), polynomial(Element("X", (k,), False)))
    first = sum_over(known, "k", symbol("a"), polynomial(Element("X", (k,), False)))
    second = sum_over(known, "k", symbol("b"), polynomial(Element("X", (k + symbol("a"),), False)))
    assert isinstance(whole, Polynomial)
    assert isinstance(first, Polynomial)
    assert isinstance(second, Polynomial)
    assert whole == first + second


def test_exponentials_and_roots() -> None:
    x, y = symbol("x"), symbol("y")
    assert exponential(x + y) == exponential(x) * exponential(y)
    assert exponential(logarithm(exponential(x) + 1)) == exponential(x) + 1
    assert logarithm(exponential(x * 3)) == x * 3
    half = power(x + 1, Fraction(1, 2))
    assert half * half == x + 1
    assert power(x + 1, -1) * (x + 1) * (x + 1) != x + 1
    assert power(polynomial(4), Fraction(1, 2)) == polynomial(2)
    with pytest.raises(ZeroDivisionError):
        power(polynomial(0), -1)


def test_what_a_sum_of_exponentials_is_scaled_by_leaves_its_logarithm() -> None:
    """Whichever addend is pulled out in front, as a stable form of the sum does."""
    x, y, z = symbol("x"), symbol("y"), symbol("z")
    whole = logarithm(exponential(x) * 2 + exponential(y) + exponential(z))
    for largest in (x, y, z):
        scaled = exponential(x - largest) * 2 + exponential(y - largest) + exponential(z - largest)
        assert logarithm(scaled) + largest == whole
    assert logarithm(exponential(y - x) + 1) + x == logarithm(exponential(y) + exponential(x))
    assert logarithm(exponential(y - x) + 1) - x != logarithm(exponential(y) + exponential(x))
    assert logarithm(exponential(y - x) + 2) + x != logarithm(exponential(y) + exponential(x))
    assert logarithm(exponential(x * -2) + exponential(x * -1)) == logarithm(exponential(x) + 1) - x * 2


def test_a_power_that_reaches_one_is_written_out() -> None:
    """Also where nothing else is multiplied to it: an earlier prover had a short way that forgot to."""
    root = Polynomial({((Base(symbol("x") + 1), Fraction(1, 2)),): 1})
    assert root * root * ONE == symbol("x") + 1
    assert Polynomial({((Base(symbol("x") + 1), 1),): 1}) * ONE == symbol("x") + 1


def test_guards_over_integers_are_rounded() -> None:
    assert str(at_least_zero(symbol("i") * 2 - 1)) == "i - 1 >= 0"
    assert is_zero(symbol("i") * 2 - 1) is False
    assert less_than(symbol("i"), symbol("i")) is False
    assert at_least(symbol("i"), symbol("i")) is True


def test_facts_are_forgotten_with_their_scope() -> None:
    known = new_context(20)
    guard = at_least(symbol("x"), 5)
    with known.scope():
        known.add(guard)
        assert known.decide(at_least(symbol("x"), 3)) is True
        assert known.decide(at_least(symbol("y") + symbol("x"), symbol("y") + 4)) is True
    assert known.decide(at_least(symbol("x"), 3)) is None
    assert not known.contradictory()


def test_time_that_is_used_up_ends_a_proof() -> None:
    known = new_context(0.0)
    with pytest.raises(OutOfTime):
        known.decide(at_least(symbol("x"), 3))


def test_equal_terms_are_one_term() -> None:
    first = polynomial(Exponential(symbol("x"))) + symbol("y") * 2
    second = symbol("y") + polynomial(Exponential(symbol("x"))) + symbol("y")
    assert first == second
    assert first.key == second.key
    assert len({first, second}) == 1


@given(st.randoms(use_true_random=False), st.integers(5, 7))
@settings(max_examples=25, deadline=None)
def test_a_sum_over_many_variables_has_one_form(random: Random, count: int) -> None:
    context = new_context(5.0)
    sizes = [random.choice([16, 16, 48]) for _ in range(count)]
    # A chain of matrices, each read once more elsewhere, so that most variables are told apart by what is beside them.
    reads = [("m", k, k + 1) for k in range(count - 1)] + [("n", random.randrange(count), random.randrange(count))]

    def total(order: list[int]) -> Polynomial:
        names = {k: context.fresh("k") for k in order}
        body = ONE
        for tensor, row, column in random.sample(reads, len(reads)):
            body = body * polynomial(Element(tensor, (symbol(names[row]), symbol(names[column])), False))
        with context.ranges([(names[k], ZERO, polynomial(sizes[k])) for k in order]):
            for k in order:
                body = finite(sum_over(context, names[k], polynomial(sizes[k]), body))
        return body

    first = total(list(range(count)))
    for _ in range(3):
        assert first == total(random.sample(range(count), count))
    reads[-1] = ("n", reads[-1][1], (reads[-1][2] + 1) % count)
    assert first != total(list(range(count)))
