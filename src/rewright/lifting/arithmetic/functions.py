"""Operators without a law of their own: the same function of the same operands on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from rewright.claims.language import Add, Addend, View
from rewright.lifting.terms.store import ONE, Operand

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra

_Scaled = tuple[Fraction, Operand]


def function(algebra: Algebra, name: str, views: Sequence[View]) -> View:
    """An operator without a law of its own: the same scalar function on both sides."""
    return of_term(views[0], algebra.terms.apply(name, [algebra.operand(v) for v in views]))


def of_term(like: View, operand: Operand) -> View:
    """A term as a view with the axes of another one."""
    return View(like.dims, (Addend(ONE, *operand),))


def of_integers(algebra: Algebra, name: str, views: Sequence[View]) -> View:
    """A function that is defined on integers only: its operands are sums of integers by their form.

    A leading coefficient is kept outside of a sum, ``24 * (a + b / 24)``; here it stays inside.
    """
    terms = algebra.terms
    operands: list[Operand] = []
    for view in views:
        addend = algebra.close(view)
        items = _flat(algebra, addend.coefficient, (addend.term, addend.access))
        if addend.coefficient.denominator == 1 and len(items) > 1 and all(c.denominator == 1 for c, _ in items):
            operands.append(terms.make(partial(Add, tuple(c for c, _ in items)), [o for _, o in items]))
        else:
            operands.append(algebra.operand(view))
    return of_term(views[0], terms.apply(name, operands))


def _flat(algebra: Algebra, coefficient: Fraction, operand: Operand, outermost: bool = True) -> list[_Scaled]:
    """The addends of a sum; those that are sums with fractions in them are taken apart too."""
    terms = algebra.terms
    term, access = operand
    whole = not isinstance(terms.label(term), Add) or all(c.denominator == 1 for c in terms.coefficients(term))
    if whole and not outermost:
        return [(coefficient, operand)]
    found: list[_Scaled] = []
    for c, inner in terms.expand(term, access):
        found += [(c * coefficient, inner)] if inner == operand else _flat(algebra, c * coefficient, inner, False)
    return found
