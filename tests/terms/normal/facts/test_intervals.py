"""Sets of integers that guards allow agree with trying numbers."""

from __future__ import annotations

import random

from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import at_least_zero, is_zero
from rewright.terms.normal.facts.intervals import EVERYTHING, Intervals, complement, intersection, solutions
from rewright.terms.normal.polynomials.atoms import Element, Guard, GuardKind, Polynomial, polynomial, symbol

NUMBERS = range(-40, 41)
X = symbol("x")


def holds(value: Polynomial, at: int) -> int:
    """A polynomial in x at a number."""
    total = 0
    for monomial, coefficient in value.terms.items():
        assert isinstance(coefficient, int)
        total += coefficient * at ** (int(monomial[0][1]) if monomial else 0)
    return total


def members(intervals: Intervals) -> set[int]:
    return {n for n in NUMBERS if any(low <= n <= high for low, high in intervals)}


def drawn(numbers: random.Random) -> Guard:
    kind: GuardKind = numbers.choice(("integer>=0", "integer>=0", "integer=0"))
    if kind == "integer>=0" and numbers.random() < 0.5:
        a, b = X * numbers.choice((1, 2, -1, -3)), X * numbers.choice((1, -1, 2))
        return Guard(kind, (a + numbers.randint(-20, 20)) * (b + numbers.randint(-20, 20)))
    return Guard(kind, X * numbers.choice((1, -1, 2, -3, 5)) + numbers.randint(-20, 20))


def test_solutions_are_the_numbers_that_satisfy_a_guard() -> None:
    numbers = random.Random(1)
    for _ in range(2000):
        guard, polarity = drawn(numbers), numbers.random() < 0.5
        found = solutions(guard, polarity)
        assert found is not None, guard
        true = {n for n in NUMBERS if (holds(guard.value, n) >= 0 if ">" in guard.kind else not holds(guard.value, n))}
        assert members(found[1]) == (true if polarity else set(NUMBERS) - true), (str(guard), polarity)
        assert members(complement(found[1])) == set(NUMBERS) - members(found[1])
        assert not intersection(found[1], complement(found[1]))


def test_what_is_no_set_of_one_variable_has_none() -> None:
    y, element = symbol("y"), polynomial(Element("t", (X,), True))
    assert solutions(Guard("integer>=0", X - y), True) is None
    assert solutions(Guard("integer>=0", X * element), True) is None
    assert solutions(Guard("integer>=0", X * X - 2), True) is None
    assert solutions(Guard("integer>=0", X * X * X), True) is None
    assert solutions(Guard("real>=0", X), True) is None
    assert solutions(Guard("integer>=0", polynomial(Element("t", (X,), False))), True) is None
    assert complement(EVERYTHING) == () and complement(()) == EVERYTHING


def test_decisions_from_such_sets_are_those_of_all_numbers() -> None:
    """Whatever facts about x are known, a guard is decided only as all numbers that satisfy them say."""
    numbers = random.Random(2)
    decided = 0
    for _ in range(400):
        context: Context = new_context(60)
        facts = [(drawn(numbers), numbers.random() < 0.7) for _ in range(numbers.randint(0, 4))]
        left = set(NUMBERS)
        for guard, polarity in ((at_least_zero(X + 40), True), (at_least_zero(-X + 40), True), *facts):
            assert isinstance(guard, Guard)
            context.add(guard, polarity)
            own = solutions(guard, polarity)
            assert own is not None
            left &= members(own[1])
        asked = drawn(numbers)
        own = solutions(asked, True)
        assert own is not None
        answer = context.decide(asked)
        if left:
            expected = {n in members(own[1]) for n in left}
            assert answer is (expected.pop() if len(expected) == 1 else None)
            decided += answer is not None
    assert decided > 100


def test_sums_are_decided_as_all_members_of_a_box_say() -> None:
    numbers = random.Random(3)
    y, element = symbol("y"), polynomial(Element("t", (), True))
    found: set[bool | None] = set()
    for _ in range(600):
        context: Context = new_context(60)
        boxes: list[range] = []
        for variable in (X, y, element):
            low, size = numbers.randint(-4, 4), numbers.randint(1, 4)
            boxes.append(range(low, low + size))
            context.add(at_least_zero(variable - low))
            context.add(at_least_zero(-variable + low + size - 1))
        a, b, c, d = (numbers.randint(-3, 3) for _ in range(4))
        asked = at_least_zero(X * a + y * b + element * c + d)
        sums = {a * i + b * j + c * k + d >= 0 for i in boxes[0] for j in boxes[1] for k in boxes[2]}
        answer = context.decide(asked)
        assert answer is (sums.pop() if len(sums) == 1 else None)
        found.add(answer)
    assert found == {True, False, None}


def test_sums_of_variables_that_a_fact_connects_are_left_to_the_solver() -> None:
    context, y, z = new_context(60), symbol("y"), symbol("z")
    for variable in (X, y, z):
        context.range(next(iter(variable.free)), polynomial(0), polynomial(10))
    context.add(at_least_zero(X - y))
    assert context.decide(at_least_zero(X - y + 1)) is True
    assert context.decide(at_least_zero(y - X - 1)) is False
    assert context.decide(at_least_zero(X - z)) is None


def test_numbers_may_be_larger_than_floats() -> None:
    context, y, huge = new_context(60), symbol("y"), 10**400
    context.add(at_least_zero(X))
    assert context.decide(at_least_zero(X * huge - y * huge + huge)) is None
    context.add(at_least_zero(-y + huge))
    assert context.decide(at_least_zero(X * huge - y + huge + 1)) is True


def test_elements_that_may_be_one_element_are_left_to_the_solver() -> None:
    """What is known of t[x] is known of t[y] where x is y."""
    context = new_context(60)
    y = symbol("y")
    one, other = (polynomial(Element("t", (index,), True)) for index in (X, y))
    for guard in (at_least_zero(one - 5), is_zero(X - y)):
        context.add(guard)
    assert context.decide(at_least_zero(other - 5)) is True
    assert context.decide(is_zero(other)) is False
