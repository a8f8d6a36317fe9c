"""Maxima over ranges in normal form: a set of items, with the binder steps of sums."""

from __future__ import annotations

import re
from functools import partial

from rewright.terms.normal.arithmetic.binders import Binder, Guards, range_of_guard, strided_binder
from rewright.terms.normal.arithmetic.cases import branch, each
from rewright.terms.normal.arithmetic.substitution import collapse, substitute
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import (
    MINUS_INFINITY,
    NOT_A_NUMBER,
    PLUS_INFINITY,
    Choice,
    Infinite,
    Leaf,
    Value,
    at_least,
    at_least_zero,
    choice,
)
from rewright.terms.normal.folds.items import items_of, largest, over_range
from rewright.terms.normal.folds.presence import is_present, may_be_infinite
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Element,
    Function,
    Guard,
    Indicator,
    Number,
    Polynomial,
    TooHard,
    polynomial,
)
from rewright.terms.normal.polynomials.curves import same_sign
from rewright.terms.normal.polynomials.ranged import Item, Largest


def larger(context: Context, left: Value, right: Value) -> Value:
    """The larger of two guarded values."""

    def leaf(one: Leaf, other: Leaf) -> Value:
        return _larger(context, one, other)

    return each(context, leaf, left, right)


def negative(value: Value) -> Value:
    """Minus a guarded value."""
    if isinstance(value, Choice):
        return choice(value.guard, negative(value.yes), negative(value.no))
    if isinstance(value, Infinite):
        return PLUS_INFINITY if value.sign < 0 else MINUS_INFINITY
    if value == NOT_A_NUMBER:
        return value
    if isinstance(value, Polynomial):
        return -value
    raise TooHard("minus a value that is absent")


def _larger(context: Context, left: Value, right: Value) -> Value:
    if NOT_A_NUMBER in (left, right):
        return NOT_A_NUMBER
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Infinite):
            return other if one.sign < 0 else one
    if not isinstance(left, Polynomial) or not isinstance(right, Polynomial):
        raise TooHard("a maximum with a value that is absent")
    if left == right:
        return left
    items = [*_finite_items(context, left), *_finite_items(context, right)]
    if len(items) > 2 or any(item.ranges or not item.always for item in items):
        return largest(context, items)
    # Equal values may be taken from either side, so the guard is written in one of two ways.
    order = same_sign(left - right)
    leading = _leading(order)
    if leading < 0 or (leading == 0 and order.key > (-order).key):
        left, right = right, left
    return branch(context, at_least_zero(left - right), lambda: left, lambda: right)


def _leading(value: Polynomial) -> Number:
    """The sum of the coefficients of the addends that are made of the first tensors and functions, or read the first
    places whatever variables are called, nought if there is none: it stays where an index becomes another one."""
    for name_of in (_head, _anonymous):
        totals: dict[str, Number] = {}
        for monomial, coefficient in value.terms.items():
            name = " ".join(sorted(name_of(a) for a, _ in monomial if isinstance(a, Element | Function)))
            totals[name] = totals.get(name, 0) + coefficient
        found = next((totals[name] for name in sorted(totals) if totals[name]), 0)
        if found:
            return found
    return 0


def _head(atom: Element | Function) -> str:
    return atom.tensor if isinstance(atom, Element) else atom.name


def _anonymous(atom: Element | Function) -> str:
    return re.sub(r"[~%]\w+", "~", str(atom))


def _finite_items(context: Context, value: Polynomial) -> tuple[Item, ...]:
    """As ``items_of``; raises TooHard for a multiple of a maximum that may be infinite, which is no number."""
    if not isinstance(value.atom(), Largest):
        atom = may_be_infinite(value)
        if atom is not None and not is_present(context, atom):
            raise TooHard(f"a maximum of {value}, which may be infinite")
    return items_of(value)


def max_over(context: Context, name: str, size: Polynomial, value: Value) -> Value:
    """The maximum of a guarded value over ``0 <= name < size``; of nothing it is minus infinity."""
    return _by_path(context, name, size, value, ())


def _by_path(context: Context, name: str, size: Polynomial, value: Value, guards: Guards) -> Value:
    if not isinstance(value, Choice):
        return _under_guards(context, name, ZERO, size, value, ONE, guards)
    guard, yes, no = value.guard, value.yes, value.no
    go = partial(_by_path, context, name, size)
    if name not in guard.free:
        return branch(context, guard, lambda: go(yes, guards), lambda: go(no, guards))
    decided = context.decide(guard)
    if decided is not None:
        return go(yes if decided else no, guards)
    bound = _bounding(context, name, value)
    if bound is None:
        return _under_guards(context, name, ZERO, size, *_present(context, value), guards)
    yes, no = _under_guard(value, bound, True), _under_guard(value, bound, False)
    return larger(context, go(yes, (*guards, (bound, True))), go(no, (*guards, (bound, False))))


def _bounding(context: Context, name: str, value: Value) -> Guard | None:
    """The first condition in a value that says where a variable starts or ends."""
    if not isinstance(value, Choice):
        return None
    found = range_of_guard(context, name, value.guard, True) if name in value.guard.free else None
    if found is not None and found[0] in (">=", "<"):
        return value.guard
    return _bounding(context, name, value.yes) or _bounding(context, name, value.no)


def _under_guard(value: Value, guard: Guard, polarity: bool) -> Value:
    """A guarded value where a guard has a truth value."""
    if not isinstance(value, Choice):
        return value
    if value.guard == guard:
        return _under_guard(value.yes if polarity else value.no, guard, polarity)
    return choice(value.guard, _under_guard(value.yes, guard, polarity), _under_guard(value.no, guard, polarity))


def _present(context: Context, value: Value) -> tuple[Value, Polynomial]:
    """A value under conditions as one leaf, with one where it is more than minus infinity and zero elsewhere."""
    if not isinstance(value, Choice):
        return value, ZERO if value == MINUS_INFINITY else ONE
    (yes, mine), (no, other) = _present(context, value.yes), _present(context, value.no)
    present = other + polynomial(Indicator(value.guard)) * (mine - other)
    for one, another in ((yes, no), (no, yes)):
        if one == MINUS_INFINITY:
            return another, present
    together = collapse(context, choice(value.guard, yes, no))
    if together is None or may_be_infinite(yes) or may_be_infinite(no):
        raise TooHard(f"a maximum of {yes} and {no} under the condition {value.guard}")
    return together, present


def _under_guards(
    context: Context,
    name: str,
    low: Polynomial,
    high: Polynomial,
    value: Value,
    present: Polynomial,
    guards: Guards,
) -> Value:
    """The maximum of one leaf where all guards hold, each of which becomes a bound, and where it is present."""
    if value == MINUS_INFINITY:
        return MINUS_INFINITY
    if guards:
        found = range_of_guard(context, name, *guards[0])
        if found is None:
            raise TooHard(f"a maximum under the condition {guards[0][0]}")
        kind, limit = found

        def go(lo: Polynomial, hi: Polynomial) -> Value:
            return _under_guards(context, name, lo, hi, value, present, guards[1:])

        if kind == ">=":
            return branch(context, at_least(limit, low), lambda: go(limit, high), lambda: go(low, high))
        if kind == "<":
            return branch(context, at_least(high, limit), lambda: go(low, limit), lambda: go(low, high))
        raise TooHard(f"a maximum under the condition {guards[0][0]}")
    every = _every(context, (name, low, high), value, present)
    if every is not None:
        (name, low, high), value, present = every
    return branch(
        context,
        at_least(high - low, 1),
        lambda: _of_range(context, (name, low, high), value, present),
        lambda: MINUS_INFINITY,
    )


def _every(
    context: Context, binder: Binder, value: Value, present: Polynomial
) -> tuple[Binder, Polynomial, Polynomial] | None:
    """What is present at every k-th index only, over these indices; None where it is not."""
    single = present.single()
    if single is None or single[1] != 1 or not isinstance(value, Polynomial):
        return None
    for atom, _ in single[0]:
        found = strided_binder(context, *binder, atom.guard) if isinstance(atom, Indicator) else None
        if found is not None:
            values = {binder[0]: found[1]}
            rest = Polynomial({tuple(factor for factor in single[0] if factor[0] != atom): 1})
            with context.ranges([found[0]]):
                return found[0], substitute(context, value, values), substitute(context, rest, values)
    return None


def _of_range(context: Context, binder: Binder, value: Value, present: Polynomial) -> Value:
    if value in (MINUS_INFINITY, PLUS_INFINITY, NOT_A_NUMBER) and present == ONE:
        return value
    if not isinstance(value, Polynomial):
        raise TooHard(f"a maximum of {value} where {present}")
    items = [closed for item in _finite_items(context, value) for closed in over_range(context, binder, item, present)]
    return largest(context, items) if items else MINUS_INFINITY
