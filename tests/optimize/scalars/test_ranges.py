"""What the sizes of loops say of an index."""

from __future__ import annotations

import pytest

from rewright.optimize.scalars.ranges import decide_sign, joined_digits, narrowed, simplify_index, span
from rewright.terms.index import Index, Quotient, Remainder, Variable, quotient, remainder

X, Y = (Index(0, ((Variable(name), 1),)) for name in "xy")
RANGES = {"x": (0, 31), "y": (0, 3)}


def value(index: Index, x: int, y: int) -> int:
    """The number that an index is."""
    total = index.constant
    assert isinstance(total, int)
    for atom, factor in index.terms:
        assert isinstance(factor, int)
        if isinstance(atom, Variable):
            total += factor * {"x": x, "y": y}[atom.name]
        elif isinstance(atom, (Quotient, Remainder)):
            inner, by = value(atom.numerator, x, y), atom.divisor
            assert isinstance(by, int)
            total += factor * (inner // by if isinstance(atom, Quotient) else inner % by)
    return total


CASES = {
    "a head that there is one of": (quotient(X, 32), Index(0)),
    "a feature of the only head": (remainder(X, 32), X),
    "a channel that was taken apart": (quotient(X, 4) * 4 + remainder(X, 4), X),
    "a quotient of something small": (quotient(X * 4 + Y, 128) + Y, Y),
    "an index that is past the first block": (remainder(Y + 4, 4), Y),
    "a digit of a digit": (quotient(X, 4) * 2 + quotient(remainder(X, 4), 2), quotient(X, 2)),
    "a digit of a digit of another weight": (
        quotient(X, 4) * 3 + quotient(remainder(X, 4), 2),
        quotient(X, 4) * 3 + quotient(remainder(X, 4), 2),
    ),
    "a digit that says something": (quotient(X, 4), quotient(X, 4)),
}


@pytest.mark.parametrize("case", CASES)
def test_digits_that_say_nothing_are_gone(case: str) -> None:
    index, expected = CASES[case]

    found = simplify_index(index, RANGES)

    assert found == expected
    assert all(value(found, x, y) == value(index, x, y) for x in range(32) for y in range(4))


def test_a_loop_of_unknown_size_is_left_alone() -> None:
    assert simplify_index(quotient(X, 32), {}) == quotient(X, 32)
    assert span(X, {}) is None and decide_sign(X, True, {}) is None


def test_a_condition_is_decided_where_it_has_one_value() -> None:
    assert decide_sign(X, True, RANGES) is True
    assert decide_sign(X - 32, True, RANGES) is False
    assert decide_sign(X - 31, True, RANGES) is None
    assert decide_sign(X - 32, False, RANGES) is False
    assert decide_sign(X - 3, False, RANGES) is None
    assert decide_sign(Index(0), False, RANGES) is True


def test_digits_of_other_numbers_stay_apart() -> None:
    index = quotient(X, 4) * 4 + remainder(Y, 4)
    assert joined_digits(index) == index


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("constant", range(-9, 10))
@pytest.mark.parametrize("factor", [-3, -1, 0, 1, 2, 5])
def test_a_span_ends_where_a_condition_has_its_value(factor: int, constant: int, holds: bool) -> None:
    expected = [x for x in range(-4, 8) if (factor * x + constant >= 0) == holds]

    low, high = narrowed((-4, 7), factor, constant, holds)

    assert isinstance(low, int) and isinstance(high, int)
    if factor:
        assert list(range(low, high + 1)) == expected
    else:
        assert (low, high) == (-4, 7)
