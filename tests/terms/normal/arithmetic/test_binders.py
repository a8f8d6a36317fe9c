"""What conditions say of a variable: at every number, it is in the range where the condition holds."""

from __future__ import annotations

import pytest

from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.arithmetic.binders import range_of_guard
from rewright.terms.normal.arithmetic.division import floor_quotient
from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.facts.guards import Guard, at_least_zero
from rewright.terms.normal.polynomials.atoms import polynomial, symbol

K, M = symbol("k"), symbol("m")
CONTEXT = new_context(10.0)
QUOTIENT = floor_quotient(CONTEXT, K, polynomial(8))
VALUES = {
    "plain": K - 3,
    "falling": -K * 2 + 7,
    "a quotient": QUOTIENT - 3,
    "a falling quotient": -QUOTIENT + 2,
    "a quotient of what falls": floor_quotient(CONTEXT, -K + 30, polynomial(7)) - 1,
    "a quotient beside a number": QUOTIENT - M,
}


@pytest.mark.parametrize("polarity", [True, False])
@pytest.mark.parametrize("name", VALUES)
def test_the_range_is_where_the_condition_holds(name: str, polarity: bool) -> None:
    guard = at_least_zero(VALUES[name])
    assert isinstance(guard, Guard)
    found = range_of_guard(CONTEXT, "k", guard, polarity)
    assert found is not None and found[0] in (">=", "<")
    for k in range(-40, 41):
        at = {"k": polynomial(k), "m": polynomial(2)}
        limit = substitute(CONTEXT, found[1], at).constant()
        value = substitute(CONTEXT, guard.value, at).constant()
        assert limit is not None and value is not None
        assert ((value >= 0) is polarity) == (k >= limit if found[0] == ">=" else k < limit), k


def test_a_quotient_beside_what_is_divided_is_no_range() -> None:
    guard = at_least_zero(QUOTIENT * 2 + K - 3)
    assert isinstance(guard, Guard) and range_of_guard(CONTEXT, "k", guard, True) is None
