"""Exponentials and logarithms, which undo each other; where quotients count, of differences and of products too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from rewright import ops
from rewright.claims.language import Access, Addend, View, applies
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.lifting.arithmetic.functions import function, of_term
from rewright.lifting.arithmetic.products import multiply
from rewright.lifting.arithmetic.rational import reciprocal
from rewright.lifting.masks.positions import exclude, factors_of, ranges_of
from rewright.lifting.recognition.shifts import exponential_of, fraction, inverse, shifts
from rewright.lifting.recognition.signs import is_positive, under_mask
from rewright.lifting.terms import regions
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.index import compose
from rewright.lifting.terms.store import ONE, Operand, Terms

MINUS_ONE = Fraction(-1)


def _log(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The logarithm; of products and quotients of positive numbers, where quotients count, a sum of logarithms."""
    if not algebra.forms.quotients:
        return function(algebra, "log", views)
    view, terms = views[0], algebra.terms
    addend = algebra.close(view)
    parts = fraction(terms, addend) if addend.coefficient else None
    if parts is not None:
        above, below = parts
        logs = [_log(algebra, op, [v], types) for v in (algebra.settle(view.dims, above), of_term(view, below))]
        return algebra.add(logs, [ONE, MINUS_ONE])
    factors = factors_of(terms, (addend.term, addend.access))
    if addend.coefficient != 1 or not all(is_positive(terms, f, ranges_of(terms.window)) for f in factors):
        return function(algebra, "log", views)
    found = [_log_of_factor(terms, factor) for factor in factors]
    return algebra.add([of_term(view, operand) for operand, _ in found], [sign for _, sign in found])


def _log_of_factor(terms: Terms, factor: Operand) -> tuple[Operand, Fraction]:
    """The logarithm of a positive number or of one over it, with its sign; of an exponential it is the exponent."""
    term, access = factor
    sign = ONE
    if applies(terms.label(term), "reciprocal"):
        sign, (term, access) = MINUS_ONE, inverse(terms, factor)
    if applies(terms.label(term), "exponential"):
        return (terms.children(term)[0], compose(terms.accesses(term)[0], access)), sign
    return terms.apply("log", [(term, access)]), sign


def _logistic(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    opposite = [algebra.add(views, [MINUS_ONE])]
    quotient = algebra.forms.quotients  # a difference of logarithms
    grown = _exponential(algebra, op, opposite, types) if quotient else function(algebra, "exponential", opposite)
    return reciprocal(algebra, algebra.add([algebra.constant(grown.dims, 1.0), grown], [ONE, ONE]))


def _exponential(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """exp(a + k log b) = exp(a) * b^k for a whole k, where log b is defined."""
    terms = algebra.terms
    if not views[0].addends:
        return algebra.constant(views[0].dims, 1.0)
    addend = algebra.close(views[0])
    left: list[tuple[Fraction, int, Access]] = []
    result: View | None = None
    if algebra.forms.quotients:
        grown = _of_masked(algebra, op, views[0], addend, types)
        if grown is not None:
            return grown
        shifted, others = shifts(terms, addend)
        total = terms.add(others)
        if shifted and (total,) != views[0].addends:  # closed sums may have the maxima again that were taken out
            grown = [exponential_of(terms, power, operand) for operand, power in shifted.items() if power]
            shift = View(views[0].dims, (Addend(ONE, *terms.multiply(grown)),)) if grown else None
            if total is None:
                return shift or algebra.constant(views[0].dims, 1.0)
            rest = _exponential(algebra, op, [View(views[0].dims, (total,))], types)
            return rest if shift is None else multiply(algebra, rest, shift)
    for factor, (term, access) in terms.expand(addend.term, addend.access):
        power = factor * addend.coefficient
        if applies(terms.label(term), "log") and power in (ONE, MINUS_ONE):
            inner = terms.accesses(term)
            base = View(views[0].dims, (Addend(ONE, terms.children(term)[0], compose(inner[0], access)),))
            base = base if power == ONE else reciprocal(algebra, base)
            result = base if result is None else multiply(algebra, result, base)
        else:
            left.append((power, term, access))
    if result is None:
        return function(algebra, "exponential", views)
    total = terms.add(left)
    if total is None:
        return result
    grown = function(algebra, "exponential", [View(views[0].dims, (total,))])
    return multiply(algebra, grown, result)


def _of_masked(algebra: Algebra, op: Operator, view: View, addend: Addend, types: Sequence[TensorType]) -> View | None:
    """The exponential of what is minus infinity under a mask: zero there."""
    found = under_mask(algebra.terms, addend, ranges_of(algebra.terms.window))
    if found is None:
        return None
    value, region, rest = found
    if value is None:
        return algebra.zero(view.dims)
    others = algebra.settle(view.dims, exclude(algebra.terms, rest, value, region))
    grown = _exponential(algebra, op, [others], types)
    elsewhere = regions.complement(region)
    return algebra.settle(view.dims, [algebra.guards.guard(value, elsewhere, a) for a in grown.addends])


LAWS: Mapping[type[Operator], Callable[..., View]] = {
    ops.Exponential: _exponential,
    ops.Log: _log,
    ops.Logistic: _logistic,
}
