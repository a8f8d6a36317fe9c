"""Tests of a quotient as tests of the number, and what a quotient or a remainder is in one block."""

from __future__ import annotations

from fractions import Fraction

import pytest

from rewright.claims.language import Addend
from rewright.lifting.masks.blocks import digit_within, multiply_out
from rewright.lifting.terms import regions
from rewright.lifting.terms.index import identity
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import Operand, Terms

BY = 3


def made(name: str) -> tuple[Terms, Operand, Operand]:
    terms = Terms()
    value = terms.input("i", 1), identity(1)
    by = terms.freeze(Addend(Fraction(BY), terms.one, ()))
    return terms, value, terms.apply(name, [value, by])


def holds(region: Region, number: int) -> bool:
    def within(low: object, high: object) -> bool:
        assert isinstance(low, int | None) and isinstance(high, int | None)
        return (low is None or low <= number) and (high is None or number < high)

    return any(within(low, high) for ((low, high),), _ in region)


@pytest.mark.parametrize("low", [None, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("high", [None, -1, 0, 1, 3])
def test_quotients_are_rounded_towards_zero(low: int | None, high: int | None) -> None:
    terms, value, quotient = made("divide_integer")
    wanted = regions.intervals(low, high)
    found = multiply_out(terms, quotient, wanted)

    assert found is not None and found[0] == value
    assert [holds(found[1], i) for i in range(-12, 12)] == [holds(wanted, int(i / BY)) for i in range(-12, 12)]


@pytest.mark.parametrize("name", ["divide_integer", "remainder"])
@pytest.mark.parametrize(("low", "high"), [(3, 6), (4, 5), (0, 3), (-2, 3), (-5, -2), (2, 4), (-3, 1), (7, 12)])
def test_a_digit_is_known_where_all_numbers_are_in_one_block(name: str, low: int, high: int) -> None:
    terms, value, digit = made(name)
    blocks = {int(i / BY) for i in range(low, high)}
    found = digit_within(terms, digit, value, regions.intervals(low, high))

    assert (found is not None) is (len(blocks) == 1)
    if found is None:
        return
    (block,) = blocks
    constant = sum(c * found.coefficient for c, (t, _) in terms.expand(found.term, found.access) if t == terms.one)
    reads = [t for _, (t, _) in terms.expand(found.term, found.access) if t != terms.one]
    assert constant == (block if name == "divide_integer" else -block * BY)
    assert reads == ([] if name == "divide_integer" else [value[0]])


def test_nothing_is_known_of_quotients_by_what_is_no_constant() -> None:
    terms, value, _ = made("remainder")
    other = terms.apply("divide_integer", [value, (terms.input("n", 1), identity(1))])

    assert multiply_out(terms, other, regions.intervals(0, 1)) is None
    assert digit_within(terms, other, value, regions.intervals(0, 1)) is None
