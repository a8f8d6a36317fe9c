"""Truth values, which are zero and one: comparisons, tests of integers as sets of values, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from rewright import ops
from rewright.claims.language import Addend, View
from rewright.ir.dims import SizeExpr
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.lifting.arithmetic.functions import function, of_integers
from rewright.lifting.masks.blocks import multiply_out
from rewright.lifting.masks.positions import align, decide, everywhere, is_infinity, orient, ranges_of, restate
from rewright.lifting.recognition.shifts import is_maximum
from rewright.lifting.recognition.signs import is_finite, is_positive, is_truth
from rewright.lifting.recognition.unit_axes import open_axes, shut
from rewright.lifting.terms import regions
from rewright.lifting.terms.index import compose, identity, rename, variables_in
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Operand
from rewright.lifting.terms.trace import look

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra

_COMPARED: dict[str, Callable[[Fraction], bool]] = {
    "EQ": lambda difference: difference == 0,
    "NE": lambda difference: difference != 0,
    "GT": lambda difference: difference > 0,
    "GE": lambda difference: difference >= 0,
}


def _compare(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """How numbers compare; an index and a number on a rank as the sequential program's test of two indices, read there.

    A step with one query at place ``S`` has the mask of row ``S``.
    """
    found = _compared(algebra, op, views, types)
    if algebra.sequential or types[0].dtype.is_float:
        return found
    is_constant = algebra.as_constant(found) is not None
    if algebra.is_familiar(found) and not is_constant:
        return found
    for opened in open_axes(views if is_constant else [_as_place(algebra, view) for view in views]):
        other = look(algebra.terms, lambda own=opened: _known_test(algebra, op, own, types))
        if other is not None:
            return shut(other)
    return found


def _known_test(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View | None:
    """How numbers compare, where that is a test that the sequential program has."""
    found = _compared(algebra, op, views, types)
    return found if algebra.is_familiar(found) and predicate(algebra, found) is not None else None


def _as_place(algebra: Algebra, view: View) -> View:
    """A whole number as the index of that place."""
    number = algebra.as_constant(view)
    if number is None or number < 0 or number.denominator != 1:
        return view
    return View(view.dims, (Addend(ONE, algebra.terms.index, ((int(number), ()),)),))


def _compared(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """How numbers compare: the set of an integer's values, or the test of floats in one direction."""
    assert isinstance(op, ops.Compare)
    left, right = views
    if types[0].dtype.is_float:
        direction = op.direction
        if direction in ("LT", "LE"):
            left, right, direction = right, left, "GT" if direction == "LT" else "GE"
        holds = _decide(algebra, direction, left, right)
        if holds is not None:
            return algebra.constant(left.dims, float(holds))
        for own, other, less in ((left, right, 1), (right, left, -1)):
            found = _of_truth(algebra, direction, own, algebra.as_constant(other), less)
            if found is not None:
                return found
        name = {"EQ": "equal", "NE": "not_equal", "GT": "greater", "GE": "greater_or_equal"}[direction]
        return function(algebra, name, [left, right])
    difference = algebra.add([left, right], [ONE, -ONE])
    return integer_test(algebra, difference, SETS[op.direction])


def _decide(algebra: Algebra, direction: str, left: View, right: View) -> bool | None:
    """How numbers compare where that is certain: what is positive with zero, a finite maximum with an infinity."""
    for own, other in ((left, right), (right, left)):
        if direction in ("EQ", "NE") and _is_infinity(algebra, other) and _is_finite_maximum(algebra, own):
            return direction == "NE"
        if direction in ("GT", "GE") and algebra.as_constant(other) == 0 and _is_positive(algebra, own):
            return own is left
    return None


def _of_truth(algebra: Algebra, direction: str, view: View, number: Fraction | None, less: int) -> View | None:
    """A truth value that was made a number and is compared with one: itself, its opposite, or the same for both."""
    if number is None or len(view.addends) != 1:
        return None
    (one,) = view.addends
    one = algebra.close(view) if one.parts else one
    if one.coefficient != 1 or not is_truth(algebra.terms, one.term):
        return None
    no, yes = (_COMPARED[direction](less * (value - number)) for value in (0, 1))
    if no == yes:
        return algebra.constant(view.dims, float(yes))
    return View(view.dims, (one,)) if yes else _opposite(algebra, View(view.dims, (one,)))


SETS: dict[str, Region] = {
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
    return any(is_beyond_all(algebra, name, view) for name in ("maximum", "minimum"))


def _is_positive(algebra: Algebra, view: View) -> bool:
    addend = algebra.close(view)
    operand = addend.term, addend.access
    return addend.coefficient > 0 and is_positive(algebra.terms, operand, ranges_of(algebra.terms.window))


def _is_finite_maximum(algebra: Algebra, view: View) -> bool:
    """Whether a view is a maximum of finite numbers, which is remembered, so that the verdict says it."""
    addend = algebra.close(view)
    operand = addend.term, addend.access
    if not is_maximum(algebra.terms, addend.term):
        return False
    found = is_finite(algebra.terms, operand, ranges_of(algebra.terms.window))
    if found:
        algebra.terms.mark(algebra.facts.take_as_finite, addend.term)
    return found


def integer_test(algebra: Algebra, view: View, wanted: Region) -> View:
    """The indicator that an integer tensor lies in a set: one term compared with constants, in one form."""
    constant, scale, term = algebra.integer(view)
    if term is None:
        holds = any(_inside(constant, low, high) for ((low, high),), _ in wanted)
        return algebra.constant(view.dims, 1.0) if holds else algebra.zero(view.dims)
    lengths = [n for digits in view.dims for n in digits]
    region = regions.preimage(wanted, scale, constant)
    divided = multiply_out(algebra.terms, term, region)
    if divided is not None:
        return integer_test(algebra, View(view.dims, (Addend(ONE, *divided[0]),)), divided[1])
    answer = everywhere(algebra.terms, term, region)
    if answer is None and algebra.forms.quotients:
        answer = decide(algebra.terms, term, region, ranges_of(lengths))
    if answer is not None:
        return algebra.constant(view.dims, 1.0) if answer else algebra.zero(view.dims)
    term, region = _first_test(algebra, term, region)
    term = algebra.facts.name_operand(term, lengths)
    return View(view.dims, (algebra.guards.indicator(term, region),))


def _first_test(algebra: Algebra, value: Operand, region: Region) -> tuple[Operand, Region]:
    """Of tests of indices that differ by an offset on both sides, or by their order, the first: ranks may read it
    elsewhere.
    """
    if any(isinstance(low, SizeExpr) for low, _ in value[1]):
        (term, access), same = _first_test(algebra, (value[0], identity(len(value[1]))), region)
        return (term, compose(access, value[1])), same
    (term, access), form = orient(algebra.terms, *align(algebra.terms, value, region, (algebra.terms.one, ())))
    names = [strides[0][0] for low, strides in access if low == 0 and len(strides) == 1 and strides[0][1] == 1]
    if len(set(names)) < len(access) or not set(variables_in(value[1])) <= set(names):
        return value, region
    own = {name: number for number, name in enumerate(names)}
    first, same = algebra.tests.setdefault(
        (term, form), ((value[0], tuple(rename(index, own) for index in value[1])), region)
    )
    return (first[0], tuple(rename(index, names) for index in first[1])), same


def _inside(value: Fraction, low: object, high: object) -> bool:
    return (not isinstance(low, int) or low <= value) and (not isinstance(high, int) or value < high)


def predicate(algebra: Algebra, view: View) -> tuple[Operand, Region] | None:
    """For an indicator: its value and set; the constants true and false have none."""
    if len(view.addends) != 1 or view.addends[0].coefficient != 1 or view.addends[0].parts:
        return None
    addend = view.addends[0]
    found = algebra.terms.predicate(addend.term)
    if found is None:
        return None
    (value, access), region = found
    return (value, compose(access, addend.access)), region


def _negate_truth(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """Not, of a truth value, or of all bits of an integer."""
    if types[0].dtype is not DType.BOOL:
        return function(algebra, "not_unsigned" if types[0].dtype is DType.U8 else "bitwise_not", views)
    return _opposite(algebra, views[0])


def _opposite(algebra: Algebra, view: View) -> View:
    number = algebra.as_constant(view)
    if number is not None:
        return algebra.constant(view.dims, 1 - number)
    found = predicate(algebra, view)
    if found is None:
        return function(algebra, "not", [view])
    return _indicator(algebra, view, found[0], regions.complement(found[1]))


def _indicator(algebra: Algebra, like: View, value: Operand, region: Region) -> View:
    if region == regions.EVERYTHING:
        return algebra.constant(like.dims, 1.0)
    if not region:
        return algebra.zero(like.dims)
    return View(like.dims, (algebra.guards.indicator(value, region),))


def _logical(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """And, or: of tests of one value one test of it, and of integers bit by bit."""
    if types[0].dtype is not DType.BOOL:
        return of_integers(algebra, f"bitwise_{op.name}", views)
    absorbing = 0 if isinstance(op, ops.And) else 1
    for view, other in (tuple(views), tuple(views)[::-1]):
        number = algebra.as_constant(view)
        if number is not None:
            return view if number == absorbing else other
    first, second = predicate(algebra, views[0]), predicate(algebra, views[1])
    if first is None or second is None:
        return function(algebra, op.name, views)
    ways = [
        (test[0], _of_value(algebra, other, test[0]), test[1]) for test, other in ((first, second), (second, first))
    ]
    found = [(value, _join(op, own, other[1])) for value, other, own in ways if other is not None]
    if not found:
        return function(algebra, op.name, views)
    value, region = min(found, key=lambda one: _reach(one[1]))
    return _indicator(algebra, views[0], value, region)


def _join(op: Operator, one: Region, other: Region) -> Region:
    if isinstance(op, ops.And):
        return regions.intersect(one, other)
    return regions.complement(regions.intersect(regions.complement(one), regions.complement(other)))


def _reach(region: Region) -> tuple[int, int]:
    """How far from zero the ends of a region are: of two values that say the same, the one with fewer is taken.

    ``q - 5 < k`` and ``k <= q`` are ``0 <= q - k < 5``, whichever is written first. It does not depend on where the
    indices begin, which is elsewhere on every rank.
    """
    ends = [end for box, _ in region for low, high in box for end in (low, high) if isinstance(end, int)]
    return sum(map(abs, ends)), abs(min(ends, default=0))


def _of_value(algebra: Algebra, test: tuple[Operand, Region], value: Operand) -> tuple[Operand, Region] | None:
    """A test as one of another value."""
    region = restate(algebra.terms, test[0], test[1], value)
    return None if region is None else (value, region)


def _exclusive(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    """Exclusive or, of truth values, and of integers bit by bit."""
    if types[0].dtype is DType.BOOL:
        return function(algebra, op.name, views)
    return of_integers(algebra, f"bitwise_{op.name}", views)


def is_beyond_all(algebra: Algebra, name: str, view: View) -> bool:
    """Whether a view is the infinity beyond which all numbers lie that a maximum or a minimum chooses from."""
    if len(view.addends) != 1 or view.addends[0].coefficient != 1:
        return False
    return is_infinity(algebra.terms, view.addends[0].term, "-inf" if name == "maximum" else "inf")


LAWS: Mapping[type[Operator], Callable[..., View]] = {
    ops.Compare: _compare,
    ops.IsFinite: _finite,
    ops.Not: _negate_truth,
    ops.And: _logical,
    ops.Or: _logical,
    ops.Xor: _exclusive,
}
