"""Elementwise operators on views with common digits, one normal form for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from rewright import ops
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.lifting import regions
from rewright.lifting.algebra import Algebra
from rewright.lifting.index import Access, compose, rename, used
from rewright.lifting.masks import (
    aligned,
    decided,
    everywhere,
    factors_of,
    is_endless,
    oriented,
    outside,
    ranges_of,
    restated,
)
from rewright.lifting.products import multiply
from rewright.lifting.quotients import joined, place, quotient, remainder
from rewright.lifting.regions import Region
from rewright.lifting.roots import absolute, inverse_roots, root_of_number
from rewright.lifting.shifts import exponential_of, fraction, inverse, is_maximum, shifts
from rewright.lifting.signs import is_finite, is_positive, under_mask
from rewright.lifting.simplify import atoms
from rewright.lifting.terms import ONE, Operand, Terms
from rewright.lifting.value import Addend, View

MINUS_ONE = Fraction(-1)
_Scaled = tuple[Fraction, Operand]
Transfer = Callable[[Algebra, Operator, Sequence[View], Sequence[TensorType]], View]


def pointwise(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The view of an elementwise operator's result; operands have common digits."""
    transfer = _TABLE.get(type(op))
    if transfer is not None:
        with algebra.over(views[0].dims):
            return transfer(algebra, op, views, types)
    return function(algebra, op.name, views)


def function(algebra: Algebra, name: str, views: Sequence[View]) -> View:
    """An operator without a law of its own: the same scalar function on both sides."""
    term, access = algebra.terms.apply(name, [algebra.operand(v) for v in views])
    return View(views[0].dims, (Addend(ONE, term, access),))


def _of_integers(algebra: Algebra, name: str, views: Sequence[View]) -> View:
    """A function that is defined on integers only: its operands are sums of integers by their form.

    A leading coefficient is kept outside of a sum, ``24 * (a + b / 24)``; here it stays inside.
    """
    terms = algebra.terms
    operands: list[Operand] = []
    for view in views:
        addend = algebra.closed(view)
        items = _flat(algebra, addend.coefficient, (addend.term, addend.access))
        if addend.coefficient.denominator == 1 and len(items) > 1 and all(c.denominator == 1 for c, _ in items):
            operands.append(terms.make(("add", tuple(c for c, _ in items)), [operand for _, operand in items]))
        else:
            operands.append(algebra.operand(view))
    term, access = terms.apply(name, operands)
    return View(views[0].dims, (Addend(ONE, term, access),))


def _flat(algebra: Algebra, coefficient: Fraction, operand: Operand, outermost: bool = True) -> list[_Scaled]:
    """The addends of a sum; those that are sums with fractions in them are taken apart too."""
    terms = algebra.terms
    term, access = operand
    whole = terms.label(term)[0] != "add" or all(c.denominator == 1 for c in terms.coefficients(term))
    if whole and not outermost:
        return [(coefficient, operand)]
    found: list[_Scaled] = []
    for c, inner in terms.expand(term, access):
        found += [(c * coefficient, inner)] if inner == operand else _flat(algebra, c * coefficient, inner, False)
    return found


def _add(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    found = algebra.add(views, [ONE, ONE])
    return found if types[0].dtype.is_float else joined(algebra, found)


def _subtract(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return algebra.add(views, [ONE, MINUS_ONE])


def _negate(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return algebra.add(views, [MINUS_ONE])


def _multiply(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The product; times a mask, a finite tensor is what it is where the mask holds."""
    for mask, other in (tuple(views), tuple(views)[::-1]):
        found = _predicate(algebra, mask)
        if found is not None and not any(a.term in algebra.terms.infinite for a in other.addends):
            within = algebra.guards.under(*found, other)
            if within != other:
                return multiply(algebra, mask, within)
    return multiply(algebra, views[0], views[1])


def _divide(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    if not types[0].dtype.is_float:
        return quotient(algebra, *views) or _of_integers(algebra, "divide_integer", views)
    return multiply(algebra, views[0], reciprocal(algebra, views[1]))


def reciprocal(algebra: Algebra, view: View) -> View:
    """One over the view; constants and coefficients stay exact, products are inverted factor by factor."""
    number = algebra.as_constant(view)
    if number:
        return algebra.constant(view.dims, 1 / number)
    addend = algebra.closed(view)
    if addend.coefficient == 0:
        term, access = algebra.terms.apply("reciprocal", [algebra.operand(view)])
        return View(view.dims, (Addend(ONE, term, access),))
    terms = algebra.terms
    parts = fraction(terms, addend) if algebra.quotients else None
    if parts is not None:
        above, below = parts
        return multiply(algebra, reciprocal(algebra, algebra.settle(view.dims, above)), _one(view, below))
    factors: list[Operand] = [(addend.term, addend.access)]
    label = terms.label(addend.term)
    if label[:2] == ("apply", "multiply"):
        children = zip(terms.children(addend.term), terms.accesses(addend.term), strict=True)
        factors = [(child, compose(access, addend.access)) for child, access in children]
    number, roots, factors = inverse_roots(terms, factors)
    inverted = [inverse(terms, f) if algebra.quotients else terms.apply("reciprocal", [f]) for f in factors]
    term, access = terms.multiply([*inverted, *roots])
    return View(view.dims, (Addend(1 / (addend.coefficient * number), term, access),))


def _one(view: View, operand: Operand) -> View:
    return View(view.dims, (Addend(ONE, *operand),))


def _log(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """The logarithm; of products and quotients of positive numbers, where quotients count, a sum of logarithms."""
    if not algebra.quotients:
        return function(algebra, "log", views)
    view, terms = views[0], algebra.terms
    addend = algebra.closed(view)
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
    if terms.label(term)[:2] == ("apply", "reciprocal"):
        sign, (term, access) = MINUS_ONE, inverse(terms, factor)
    if terms.label(term)[:2] == ("apply", "exponential"):
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
    quotient = algebra.quotients  # a difference of logarithms
    grown = _exponential(algebra, op, opposite, types) if quotient else function(algebra, "exponential", opposite)
    return reciprocal(algebra, algebra.add([algebra.constant(grown.dims, 1.0), grown], [ONE, ONE]))


def _exponential(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """exp(a + k log b) = exp(a) * b^k for a whole k, where log b is defined."""
    terms = algebra.terms
    if not views[0].addends:
        return algebra.constant(views[0].dims, 1.0)
    addend = algebra.closed(views[0])
    rest: list[tuple[Fraction, int, Access]] = []
    result: View | None = None
    if algebra.quotients:
        grown = _of_masked(algebra, op, views[0], addend, types)
        if grown is not None:
            return grown
        shifted, others = shifts(terms, addend)
        if shifted:
            grown = [exponential_of(terms, power, operand) for power, operand in shifted]
            shift = View(views[0].dims, (Addend(ONE, *terms.multiply(grown)),))
            total = terms.add(others)
            if total is None:
                return shift
            return multiply(algebra, _exponential(algebra, op, [View(views[0].dims, (total,))], types), shift)
    for factor, (term, access) in terms.expand(addend.term, addend.access):
        power = factor * addend.coefficient
        if terms.label(term)[:2] == ("apply", "log") and power in (ONE, MINUS_ONE):
            inner = terms.accesses(term)
            base = View(views[0].dims, (Addend(ONE, terms.children(term)[0], compose(inner[0], access)),))
            base = base if power == ONE else reciprocal(algebra, base)
            result = base if result is None else multiply(algebra, result, base)
        else:
            rest.append((power, term, access))
    if result is None:
        return function(algebra, "exponential", views)
    total = terms.add(rest)
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
    others = algebra.settle(view.dims, outside(algebra.terms, rest, value, region))
    grown = _exponential(algebra, op, [others], types)
    elsewhere = regions.complement(region)
    return algebra.settle(view.dims, [algebra.guards.guarded(value, elsewhere, a) for a in grown.addends])


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
            return integer_test(algebra, views[0], _SETS["NE"])
        return function(algebra, "not_equal", [views[0], algebra.zero(views[0].dims)])
    return function(algebra, f"convert to {target.value}", views)


def _compare(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    assert isinstance(op, ops.Compare)
    left, right = views
    if types[0].dtype.is_float:
        direction = op.direction
        if direction in ("LT", "LE"):
            left, right, direction = right, left, "GT" if direction == "LT" else "GE"
        holds = _decided(algebra, direction, left, right)
        if holds is not None:
            return algebra.constant(left.dims, float(holds))
        name = {"EQ": "equal", "NE": "not_equal", "GT": "greater", "GE": "greater_or_equal"}[direction]
        return function(algebra, name, [left, right])
    difference = algebra.add([left, right], [ONE, MINUS_ONE])
    return integer_test(algebra, difference, _SETS[op.direction])


def _decided(algebra: Algebra, direction: str, left: View, right: View) -> bool | None:
    """How numbers compare where that is certain: what is positive with nought, a finite maximum with an infinity."""
    for own, other in ((left, right), (right, left)):
        if direction in ("EQ", "NE") and _is_infinity(algebra, other) and _is_finite_maximum(algebra, own):
            return direction == "NE"
        if direction in ("GT", "GE") and algebra.as_constant(other) == 0 and _is_positive(algebra, own):
            return own is left
    return None


_SETS: dict[str, Region] = {
    "EQ": regions.intervals(0, 1),
    "NE": regions.complement(regions.intervals(0, 1)),
    "GE": regions.intervals(0, None),
    "GT": regions.intervals(1, None),
    "LT": regions.intervals(None, 0),
    "LE": regions.intervals(None, 1),
}


def _finite(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """Whether a number is finite; maxima, which programs ask that of before they subtract them, often certainly are."""
    if _is_finite_maximum(algebra, views[0]):
        return algebra.constant(views[0].dims, 1.0)
    return function(algebra, op.name, views)


def _is_infinity(algebra: Algebra, view: View) -> bool:
    return any(_is_endless(algebra, name, view) for name in ("maximum", "minimum"))


def _is_positive(algebra: Algebra, view: View) -> bool:
    addend = algebra.closed(view)
    operand = addend.term, addend.access
    return addend.coefficient > 0 and is_positive(algebra.terms, operand, ranges_of(algebra.terms.window))


def _is_finite_maximum(algebra: Algebra, view: View) -> bool:
    """Whether a view is a maximum of finite numbers, which is remembered, so that the verdict says it."""
    addend = algebra.closed(view)
    operand = addend.term, addend.access
    if not is_maximum(algebra.terms, addend.term):
        return False
    found = is_finite(algebra.terms, operand, ranges_of(algebra.terms.window))
    if found:
        algebra.facts.finite.update(algebra.terms.inputs(addend.term))
    return found


def integer_test(algebra: Algebra, view: View, wanted: Region) -> View:
    """The indicator that an integer tensor lies in a set: one term compared with constants, in one form."""
    constant, scale, term = algebra.integer(view)
    if term is None:
        holds = any(_inside(constant, low, high) for ((low, high),), _ in wanted)
        return algebra.constant(view.dims, 1.0) if holds else algebra.zero(view.dims)
    lengths = [n for digits in view.dims for n in digits]
    region = regions.preimage(wanted, scale, constant)
    answer = everywhere(algebra.terms, term, region)
    if answer is None and algebra.quotients:
        answer = decided(algebra.terms, term, region, ranges_of(lengths))
    if answer is not None:
        return algebra.constant(view.dims, 1.0) if answer else algebra.zero(view.dims)
    term, region = _first_test(algebra, term, region)
    term = algebra.facts.tested(term, lengths)
    return View(view.dims, (algebra.guards.indicator(term, region),))


def _first_test(algebra: Algebra, value: Operand, region: Region) -> tuple[Operand, Region]:
    """Of tests of indices that differ by an offset on both sides, or by their order, the first: ranks may read it
    elsewhere.
    """
    (term, access), form = oriented(algebra.terms, *aligned(algebra.terms, value, region, (algebra.terms.one, ())))
    names = [strides[0][0] for low, strides in access if low == 0 and len(strides) == 1 and strides[0][1] == 1]
    if len(set(names)) < len(access) or not set(used(value[1])) <= set(names):
        return value, region
    own = {name: number for number, name in enumerate(names)}
    first, same = algebra.tests.setdefault(
        (term, form), ((value[0], tuple(rename(index, own) for index in value[1])), region)
    )
    return (first[0], tuple(rename(index, names) for index in first[1])), same


def _inside(value: Fraction, low: object, high: object) -> bool:
    return (not isinstance(low, int) or low <= value) and (not isinstance(high, int) or value < high)


def _predicate(algebra: Algebra, view: View) -> tuple[Operand, Region] | None:
    """For an indicator: its value and set; the constants true and false have none."""
    if len(view.addends) != 1 or view.addends[0].coefficient != 1 or view.addends[0].parts:
        return None
    addend = view.addends[0]
    found = algebra.terms.predicate(addend.term)
    if found is None:
        return None
    (value, access), region = found
    return (value, compose(access, addend.access)), region


def _not(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    if types[0].dtype is not DType.BOOL:
        return function(algebra, "not_unsigned" if types[0].dtype is DType.U8 else "bitwise_not", views)
    number = algebra.as_constant(views[0])
    if number is not None:
        return algebra.constant(views[0].dims, 1 - number)
    found = _predicate(algebra, views[0])
    if found is None:
        return function(algebra, op.name, views)
    return _indicator(algebra, views[0], found[0], regions.complement(found[1]))


def _indicator(algebra: Algebra, like: View, value: Operand, region: Region) -> View:
    if region == regions.EVERYTHING:
        return algebra.constant(like.dims, 1.0)
    if not region:
        return algebra.zero(like.dims)
    return View(like.dims, (algebra.guards.indicator(value, region),))


def _logical(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    if types[0].dtype is not DType.BOOL:
        return _of_integers(algebra, f"bitwise_{op.name}", views)
    absorbing = 0 if isinstance(op, ops.And) else 1
    for view, other in (tuple(views), tuple(views)[::-1]):
        number = algebra.as_constant(view)
        if number is not None:
            return view if number == absorbing else other
    first, second = _predicate(algebra, views[0]), _predicate(algebra, views[1])
    if first is None or second is None:
        return function(algebra, op.name, views)
    ways = [
        (test[0], _of_value(algebra, other, test[0]), test[1]) for test, other in ((first, second), (second, first))
    ]
    found = [(value, _joined(op, own, other[1])) for value, other, own in ways if other is not None]
    if not found:
        return function(algebra, op.name, views)
    value, region = min(found, key=lambda one: _reach(one[1]))
    return _indicator(algebra, views[0], value, region)


def _joined(op: Operator, one: Region, other: Region) -> Region:
    if isinstance(op, ops.And):
        return regions.intersect(one, other)
    return regions.complement(regions.intersect(regions.complement(one), regions.complement(other)))


def _reach(region: Region) -> tuple[int, int]:
    """How far from nought the ends of a region are: of two values that say the same, the one with fewer is taken.

    ``q - 5 < k`` and ``k <= q`` are ``0 <= q - k < 5``, whichever is written first. It does not depend on where the
    indices begin, which is elsewhere on every rank.
    """
    ends = [end for box, _ in region for low, high in box for end in (low, high) if isinstance(end, int)]
    return sum(map(abs, ends)), abs(min(ends, default=0))


def _of_value(algebra: Algebra, test: tuple[Operand, Region], value: Operand) -> tuple[Operand, Region] | None:
    """A test as one of another value."""
    region = restated(algebra.terms, test[0], test[1], value)
    return None if region is None else (value, region)


def _exclusive(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    if types[0].dtype is DType.BOOL:
        return function(algebra, op.name, views)
    return _of_integers(algebra, f"bitwise_{op.name}", views)


def _remainder(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    if types[0].dtype.is_float:
        return function(algebra, op.name, views)
    return remainder(algebra, *views) or _of_integers(algebra, op.name, views)


def _select(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    condition, yes, no = views
    number = algebra.as_constant(condition)
    if number is not None:
        return yes if number else no
    if yes.addends == no.addends:
        return yes
    found = _predicate(algebra, condition)
    if found is not None:
        value, region = found
        if not types[1].dtype.is_float and all(place(algebra, view) is not None for view in (yes, no)):
            # Places that are counted from the other end where they are below nought, which these are or are not.
            holds = decided(algebra.terms, value, region, ranges_of([n for digits in condition.dims for n in digits]))
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
        simpler = algebra.guards.under(value, part, view)
        for a in algebra.solid(simpler, linear=True):
            found += [algebra.guards.guarded(value, part, b) for b in _cut(algebra, value, a)]
    return found


def _cut(algebra: Algebra, value: Operand, body: Addend) -> list[Addend]:
    """A guarded body in parts on each of which guards inside the value are decided."""
    inner = None if body.parts else algebra.guards.guard_of(body)
    if inner is None:
        return [body]
    parts = atoms(algebra.terms, value, inner[0], inner[1])
    return [body] if len(parts) == 1 else [algebra.guards.guarded(inner[0], part, inner[2]) for part in parts]


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
        if _is_endless(algebra, name, bound):
            return own
        number = algebra.as_constant(bound)
        if not kind.dtype.is_integer or number is None or not _is_given(algebra, own):
            continue
        wanted = _SETS["GE" if name == "maximum" else "LE"]
        inside = integer_test(algebra, algebra.add([own, bound], [ONE, MINUS_ONE]), wanted)
        return _select(algebra, ops.Select(), [inside, own, bound], [kind, kind, kind])
    return function(algebra, name, views)


def _is_endless(algebra: Algebra, name: str, view: View) -> bool:
    """Whether a view is the infinity beyond which all numbers lie that a maximum or a minimum chooses from."""
    if len(view.addends) != 1 or view.addends[0].coefficient != 1:
        return False
    return is_endless(algebra.terms, view.addends[0].term, "-inf" if name == "maximum" else "inf")


def _is_given(algebra: Algebra, view: View) -> bool:
    """Whether an integer is an element of an input, masked or not: cases of what is computed are many."""
    terms, (_, _, operand) = algebra.terms, algebra.integer(view)
    if operand is None:
        return False
    term = operand[0]
    masked = terms.label(term)[0] == "ranged" and terms.label(terms.children(term)[0])[0] == "guard"
    return masked or terms.label(term)[0] == "input"


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
    ops.Compare: _compare,
    ops.IsFinite: _finite,
    ops.Not: _not,
    ops.And: _logical,
    ops.Or: _logical,
    ops.Xor: _exclusive,
    ops.Remainder: _remainder,
    ops.Select: _select,
    ops.Clamp: _clamp,
    ops.Maximum: _extreme,
    ops.Minimum: _extreme,
    ops.Abs: _absolute,
}
