"""Operators without a law of their own: the same function of the same operands on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from rewright.claims.language import Add, Addend, Index, View
from rewright.lifting.terms.index import compose, variables_in
from rewright.lifting.terms.store import ONE, Operand

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra

_Scaled = tuple[Fraction, Operand]


def function(algebra: Algebra, name: str, views: Sequence[View]) -> View:
    """An operator without a law of its own: the same scalar function on both sides."""
    found = algebra.terms.apply(name, [algebra.operand(v) for v in views])
    if not algebra.sequential and found[0] >= algebra.horizon and len(views) == 1:
        found = _at_place(algebra, name, algebra.close(views[0])) or found
    return of_term(views[0], found)


def _at_place(algebra: Algebra, name: str, addend: Addend) -> Operand | None:
    """A function of ``5 f`` as the sequential program's one of ``i f``, read at 5: the angles of one position."""
    terms, place = algebra.terms, addend.coefficient
    products = terms.products.get(addend.term, ())
    if place < 0 or place.denominator != 1 or not any(terms.index in terms.children(p) for p in products):
        return None
    own = variables_in(addend.access)
    fresh = 1 + max(own, default=0)
    term, access = terms.multiply([(terms.index, ((0, ((fresh, 1),)),)), (addend.term, addend.access)])
    if term >= algebra.horizon:
        return None
    there: dict[int, Index] = {v: (0, ((v, 1),)) for v in own}
    found = terms.apply(name, [(term, compose(access, there | {fresh: (int(place), ())}))])
    return found if found[0] < algebra.horizon else None


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
