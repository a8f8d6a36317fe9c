"""Floors of floors, against numbers."""

from __future__ import annotations

import itertools

import pytest

from rewright.terms.normal.algebra import new_context
from rewright.terms.normal.arithmetic.division import floor_quotient
from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.polynomials.atoms import polynomial, symbol


@pytest.mark.parametrize(("inner", "outer", "more"), [*itertools.product((2, 3, 7), (2, 5), (0, 1, -3))])
def test_a_floor_of_a_floor_is_one(inner: int, outer: int, more: int) -> None:
    context = new_context(5.0)
    x = symbol("x")
    found = floor_quotient(context, floor_quotient(context, x, polynomial(inner)) + more, polynomial(outer))
    assert str(found).count("floor") == 1
    for number in range(-50, 50):
        value = substitute(context, found, {"x": polynomial(number)}).constant()
        assert value == (number // inner + more) // outer
