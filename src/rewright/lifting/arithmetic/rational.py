"""Sums, products and quotients element by element; constants and coefficients stay exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from rewright import ops
from rewright.claims.language import Addend, View
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.lifting.arithmetic.functions import function, of_integers, of_term
from rewright.lifting.arithmetic.products import multiply
from rewright.lifting.arithmetic.roots import inverse_roots
from rewright.lifting.masks.positions import factors_of
from rewright.lifting.masks.truths import predicate
from rewright.lifting.recognition.quotients import join_digits, quotient, remainder
from rewright.lifting.recognition.shifts import fraction, inverse
from rewright.lifting.terms import regions
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.store import ONE

MINUS_ONE = Fraction(-1)


def _add(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    found = algebra.add(views, [ONE, ONE])
    return found if types[0].dtype.is_float else join_digits(algebra, found)


def _subtract(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return algebra.add(views, [ONE, MINUS_ONE])


def _negate(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return algebra.add(views, [MINUS_ONE])


def _multiply(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The product; times a mask, a finite tensor is what it is where the mask holds."""
    for mask, other in (tuple(views), tuple(views)[::-1]):
        found = predicate(algebra, mask)
        if found is not None and not any(a.term in algebra.terms.infinite for a in other.addends):
            within = algebra.guards.assume(*found, other)
            if within != other:
                return multiply(algebra, mask, within)
    return multiply(algebra, views[0], views[1])


def _divide(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    if not types[0].dtype.is_float:
        return quotient(algebra, *views) or of_integers(algebra, "divide_integer", views)
    return multiply(algebra, views[0], reciprocal(algebra, views[1]))


def reciprocal(algebra: Algebra, view: View) -> View:
    """One over the view; constants and coefficients stay exact, products are inverted factor by factor."""
    number = algebra.as_constant(view)
    if number:
        return algebra.constant(view.dims, 1 / number)
    addend = algebra.close(view)
    if addend.coefficient == 0:
        return of_term(view, algebra.terms.apply("reciprocal", [algebra.operand(view)]))
    terms = algebra.terms
    parts = fraction(terms, addend) if algebra.forms.quotients else None
    if parts is not None:
        above, below = parts
        return multiply(algebra, reciprocal(algebra, algebra.settle(view.dims, above)), of_term(view, below))
    number, roots, factors = inverse_roots(terms, factors_of(terms, (addend.term, addend.access)))
    inverted = [inverse(terms, f) if algebra.forms.quotients else terms.apply("reciprocal", [f]) for f in factors]
    term, access = terms.multiply([*inverted, *roots])
    return View(view.dims, (Addend(1 / (addend.coefficient * number), term, access),))


def _by_case(algebra: Algebra, view: View, law: Callable[[View], View]) -> View | None:
    """A function that is nought at nought, of what is one of several values by where one integer lies: of each value.

    None for other values.
    """
    cases = [algebra.guards.guard_of(a) for a in view.addends]
    known = [case for case in cases if case is not None]
    regions_of = [region for _, region, _ in known]
    apart = all(not regions.intersect(one, other) for one, other in combinations(regions_of, 2))
    if len(known) < max(len(cases), 1) or len({value for value, _, _ in known}) > 1 or not apart:
        return None
    found = [
        algebra.guards.guard(value, region, part)
        for value, region, body in known
        for part in algebra.solid(law(View(view.dims, (body,))), linear=True)
    ]
    return algebra.settle(view.dims, found)


def _remainder(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    if types[0].dtype.is_float:
        return function(algebra, op.name, views)
    if not algebra.sequential:
        chosen = _by_case(algebra, views[0], lambda case: _remainder(algebra, op, [case, *views[1:]], types))
        if chosen is not None:
            return chosen
    left, right = map(algebra.as_constant, views)
    if left is not None and right:  # it has the sign of the dividend
        return algebra.constant(views[0].dims, left - right * int(left / right))
    return remainder(algebra, *views) or of_integers(algebra, op.name, views)


LAWS: Mapping[type[Operator], Callable[..., View]] = {
    ops.Add: _add,
    ops.Subtract: _subtract,
    ops.Negate: _negate,
    ops.Multiply: _multiply,
    ops.Divide: _divide,
    ops.Remainder: _remainder,
}
