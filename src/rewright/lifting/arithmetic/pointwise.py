"""Elementwise operators on views with common digits, one normal form for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from rewright import ops
from rewright.claims.language import Addend, Guard, Input, Ranged, View, applies
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.lifting.arithmetic.functions import function, of_integers
from rewright.lifting.arithmetic.products import multiply
from rewright.lifting.arithmetic.roots import absolute, inverse_roots, root_of_number
from rewright.lifting.masks.nested_guards import atoms
from rewright.lifting.masks.positions import decide, exclude, factors_of, ranges_of
from rewright.lifting.masks.truths import (
    SETS,
    compare,
    exclusive,
    finite,
    integer_test,
    is_beyond_all,
    logical,
    negate_truth,
    predicate,
)
from rewright.lifting.recognition.quotients import join_digits, place, quotient, remainder
from rewright.lifting.recognition.shifts import exponential_of, fraction, inverse, shifts
from rewright.lifting.recognition.signs import is_positive, under_mask
from rewright.lifting.terms import regions
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.index import Access, compose
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Operand, Terms

MINUS_ONE = Fraction(-1)
Transfer = Callable[[Algebra, Operator, Sequence[View], Sequence[TensorType]], View]


def pointwise(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The view of an elementwise operator's result; operands have common digits."""
    transfer = _TABLE.get(type(op))
    if transfer is not None:
        with algebra.over(views[0].dims):
            return transfer(algebra, op, views, types)
    return function(algebra, op.name, views)


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
        term, access = algebra.terms.apply("reciprocal", [algebra.operand(view)])
        return View(view.dims, (Addend(ONE, term, access),))
    terms = algebra.terms
    parts = fraction(terms, addend) if algebra.forms.quotients else None
    if parts is not None:
        above, below = parts
        return multiply(algebra, reciprocal(algebra, algebra.settle(view.dims, above)), _one(view, below))
    factors: list[Operand] = [(addend.term, addend.access)]
    label = terms.label(addend.term)
    if applies(label, "multiply"):
        children = zip(terms.children(addend.term), terms.accesses(addend.term), strict=True)
        factors = [(child, compose(access, addend.access)) for child, access in children]
    number, roots, factors = inverse_roots(terms, factors)
    inverted = [inverse(terms, f) if algebra.forms.quotients else terms.apply("reciprocal", [f]) for f in factors]
    term, access = terms.multiply([*inverted, *roots])
    return View(view.dims, (Addend(1 / (addend.coefficient * number), term, access),))


def _one(view: View, operand: Operand) -> View:
    return View(view.dims, (Addend(ONE, *operand),))


def _log(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The logarithm; of products and quotients of positive numbers, where quotients count, a sum of logarithms."""
    if not algebra.forms.quotients:
        return function(algebra, "log", views)
    view, terms = views[0], algebra.terms
    addend = algebra.close(view)
    parts = fraction(terms, addend) if addend.coefficient else None
    if parts is not None:
        above, below = parts
        logs = [_log(algebra, op, [v], types) for v in (algebra.settle(view.dims, above), _one(view, below))]
        return algebra.add(logs, [ONE, MINUS_ONE])
    factors = factors_of(terms, (addend.term, addend.access))
    if addend.coefficient != 1 or not all(is_positive(terms, f, ranges_of(terms.window)) for f in factors):
        return function(algebra, "log", views)
    found = [_log_of_factor(terms, factor) for factor in factors]
    return algebra.add([_one(view, operand) for operand, _ in found], [sign for _, sign in found])


def _log_of_factor(terms: Terms, factor: Operand) -> tuple[Operand, Fraction]:
    """The logarithm of a positive number or of one over it, with its sign; of an exponential it is the exponent."""
    term, access = factor
    sign = ONE
    if applies(terms.label(term), "reciprocal"):
        sign, (term, access) = MINUS_ONE, inverse(terms, factor)
    if applies(terms.label(term), "exponential"):
        return (terms.children(term)[0], compose(terms.accesses(term)[0], access)), sign
    return terms.apply("log", [(term, access)]), sign


def _reciprocal_square_root(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return reciprocal(algebra, _square_root(algebra, op, views, types))


def _square_root(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The root; that of a number is one of primes, or a number, as of the norm of a rank that has no elements."""
    number = algebra.as_constant(views[0])
    if number is not None and number >= 0:
        return algebra.settle(views[0].dims, [root_of_number(algebra.terms, number)])
    return function(algebra, "sqrt", views[:1])


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


def _power(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    exponent = algebra.as_constant(views[1])
    base = views[0]
    if not types[0].dtype.is_float:
        return function(algebra, "integer_power", views)
    if exponent is None:
        return function(algebra, op.name, views)
    if exponent.denominator == 1 and 1 <= exponent <= 4:
        result = base
        for _ in range(int(exponent) - 1):
            result = multiply(algebra, result, base)
        return result
    if exponent == Fraction(1, 2):
        return _square_root(algebra, op, views, types)
    if exponent == Fraction(-1, 2):
        return reciprocal(algebra, _square_root(algebra, op, views, types))
    if exponent == -1:
        return reciprocal(algebra, base)
    return function(algebra, op.name, views)


def _convert(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    assert isinstance(op, ops.Convert)
    source, target = types[0].dtype, op.dtype
    if source is target or target.is_float or source is DType.BOOL or (source.is_integer and target.is_integer):
        return views[0]
    if target is DType.BOOL:
        if source.is_integer:
            return integer_test(algebra, views[0], SETS["NE"])
        return function(algebra, "not_equal", [views[0], algebra.zero(views[0].dims)])
    return function(algebra, f"convert to {target.value}", views)


def _remainder(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    if types[0].dtype.is_float:
        return function(algebra, op.name, views)
    return remainder(algebra, *views) or of_integers(algebra, op.name, views)


def _select(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    condition, yes, no = views
    number = algebra.as_constant(condition)
    if number is not None:
        return yes if number else no
    if yes.addends == no.addends:
        return yes
    found = predicate(algebra, condition)
    if found is not None:
        value, region = found
        if not types[1].dtype.is_float and all(place(algebra, view) is not None for view in (yes, no)):
            # Places that are counted from the other end where they are below zero, which these are or are not.
            holds = decide(algebra.terms, value, region, ranges_of([n for digits in condition.dims for n in digits]))
            if holds is not None:
                return yes if holds else no
        chosen = [*_guard_all(algebra, value, region, yes)]
        chosen += _guard_all(algebra, value, regions.complement(region), no)
        return algebra.settle(condition.dims, chosen)
    test = algebra.operand(condition)
    chosen: list[Addend] = []
    for name, view in (("where", yes), ("where_not", no)):
        for a in algebra.solid(view, linear=True):
            term, access = algebra.terms.apply(name, [test, (a.term, a.access)])
            chosen.append(Addend(a.coefficient, term, access, a.parts))
    return algebra.settle(condition.dims, chosen)


def _guard_all(algebra: Algebra, value: Operand, region: Region, view: View) -> list[Addend]:
    found: list[Addend] = []
    value, region = algebra.guards.base(value, region)
    region = algebra.guards.possible(value[0], region)
    parts = [region]
    for a in view.addends:
        if not a.parts:
            parts = [piece for part in parts for piece in atoms(algebra.terms, (a.term, a.access), value, part)]
    for part in parts:
        simpler = algebra.guards.assume(value, part, view)
        for a in algebra.solid(simpler, linear=True):
            found += [algebra.guards.guard(value, part, b) for b in _cut(algebra, value, a)]
    return found


def _cut(algebra: Algebra, value: Operand, body: Addend) -> list[Addend]:
    """A guarded body in parts, so that guards inside the value are decided on each."""
    inner = None if body.parts else algebra.guards.guard_of(body)
    if inner is None:
        return [body]
    parts = atoms(algebra.terms, value, inner[0], inner[1])
    return [body] if len(parts) == 1 else [algebra.guards.guard(inner[0], part, inner[2]) for part in parts]


def _absolute(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return absolute(algebra.terms, views[0]) or function(algebra, "abs", views)


def _clamp(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    above = _bounded(algebra, "maximum", views[:2], types[1])
    return _bounded(algebra, "minimum", [above, views[2]], types[1])


def _extreme(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return _bounded(algebra, op.name, views, types[0])


def _bounded(algebra: Algebra, name: str, views: Sequence[View], kind: TensorType) -> View:
    """The larger or the smaller one; of an integer and a number, the integer where it is that, and else the number.

    No number is below minus infinity, or above infinity.
    """
    for own, bound in (tuple(views), tuple(views)[::-1]):
        if is_beyond_all(algebra, name, bound):
            return own
        number = algebra.as_constant(bound)
        if not kind.dtype.is_integer or number is None or not _is_given(algebra, own):
            continue
        wanted = SETS["GE" if name == "maximum" else "LE"]
        inside = integer_test(algebra, algebra.add([own, bound], [ONE, MINUS_ONE]), wanted)
        return _select(algebra, ops.Select(), [inside, own, bound], [kind, kind, kind])
    return function(algebra, name, views)


def _is_given(algebra: Algebra, view: View) -> bool:
    """Whether an integer is an element of an input, masked or not: cases of what is computed are many."""
    terms, (_, _, operand) = algebra.terms, algebra.integer(view)
    if operand is None:
        return False
    term = operand[0]
    masked = isinstance(terms.label(term), Ranged) and isinstance(terms.label(terms.children(term)[0]), Guard)
    return masked or isinstance(terms.label(term), Input)


_TABLE: dict[type[Operator], Transfer] = {
    ops.Add: _add,
    ops.Subtract: _subtract,
    ops.Negate: _negate,
    ops.Multiply: _multiply,
    ops.Divide: _divide,
    ops.Sqrt: _square_root,
    ops.Rsqrt: _reciprocal_square_root,
    ops.Logistic: _logistic,
    ops.Exponential: _exponential,
    ops.Log: _log,
    ops.Power: _power,
    ops.Convert: _convert,
    ops.Compare: compare,
    ops.IsFinite: finite,
    ops.Not: negate_truth,
    ops.And: logical,
    ops.Or: logical,
    ops.Xor: exclusive,
    ops.Remainder: _remainder,
    ops.Select: _select,
    ops.Clamp: _clamp,
    ops.Maximum: _extreme,
    ops.Minimum: _extreme,
    ops.Abs: _absolute,
}
