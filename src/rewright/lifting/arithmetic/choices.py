"""Choices between two tensors by a truth value, or by which is larger; and numbers as numbers of another type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from rewright import ops
from rewright.claims.language import Addend, Input, View
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.lifting.arithmetic.functions import function
from rewright.lifting.masks.nested_guards import atoms
from rewright.lifting.masks.positions import decide, ranges_of
from rewright.lifting.masks.truths import SETS, integer_test, is_beyond_all, predicate
from rewright.lifting.recognition.quotients import place
from rewright.lifting.terms import regions
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Operand

MINUS_ONE = Fraction(-1)


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


def _clamp(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    above = _bound(algebra, "maximum", views[:2], types[1])
    return _bound(algebra, "minimum", [above, views[2]], types[1])


def _extreme(algebra: Algebra, op: Operator, views: Sequence[View], types: Sequence[TensorType]) -> View:
    return _bound(algebra, op.name, views, types[0])


def _bound(algebra: Algebra, name: str, views: Sequence[View], kind: TensorType) -> View:
    """The larger or the smaller one; of an integer and a number, the integer where it is that, and else the number.

    No number is below minus infinity, or above infinity.
    """
    for own, bound in (tuple(views), tuple(views)[::-1]):
        if is_beyond_all(algebra, name, bound):
            return own
        number = algebra.as_constant(bound)
        if not kind.dtype.is_integer or number is None:
            continue
        wanted = SETS["GE" if name == "maximum" else "LE"]
        above = algebra.add([own, bound], [ONE, MINUS_ONE])
        if _always(algebra, above, wanted):
            return own
        if not _is_given(algebra, own):
            continue
        inside = integer_test(algebra, above, wanted)
        return _select(algebra, ops.Select(), [inside, own, bound], [kind, kind, kind])
    return function(algebra, name, views)


def _always(algebra: Algebra, view: View, wanted: Region) -> bool:
    """Whether an integer can only lie in a set, as the places that a choice gives do in its row."""
    constant, scale, operand = algebra.integer(view)
    if operand is None:
        return False
    value, region = algebra.guards.base(operand, regions.preimage(wanted, scale, constant))
    possible = algebra.guards.possible(value[0], regions.EVERYTHING)
    return possible != regions.EVERYTHING and regions.intersect(possible, region) == possible


def _is_given(algebra: Algebra, view: View) -> bool:
    """Whether an integer is an element of an input, or masked: cases of what is computed are many."""
    terms, (_, _, operand) = algebra.terms, algebra.integer(view)
    if operand is None:
        return False
    if terms.mask(operand) is not None or isinstance(terms.label(operand[0]), Input):
        return True
    return algebra.guards.base(operand, regions.EVERYTHING)[0] != operand


LAWS: Mapping[type[Operator], Callable[..., View]] = {
    ops.Convert: _convert,
    ops.Select: _select,
    ops.Clamp: _clamp,
    ops.Maximum: _extreme,
    ops.Minimum: _extreme,
}
