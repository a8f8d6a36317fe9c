"""The last of several values that may be absent: what a write by index leaves at one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rewright.terms.normal.arithmetic.binders import range_of_guard
from rewright.terms.normal.arithmetic.cases import branch, each, leaves
from rewright.terms.normal.arithmetic.substitution import substitute_value
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import MISSING, Choice, Leaf, Value, at_least, choice, less_than
from rewright.terms.normal.folds.maxima import max_over
from rewright.terms.normal.folds.presence import may_be_infinite
from rewright.terms.normal.polynomials.atoms import ONE, ZERO, Polynomial, Symbol
from rewright.terms.normal.polynomials.ranged import Fold, inner_atoms

_MOST_CASES = 16
"""So many places are written out one by one, as tables are."""


def last_over(
    context: Context, name: str, size: Polynomial, value: Value, body: Callable[[Polynomial], Value]
) -> Value | None:
    """The present value with the greatest ``0 <= name < size``, absent where none is; None where that is not known.

    It is known where the value is present at one place at most, where it is the same wherever it is present, and where
    a few places can be written out. ``value`` is what ``body`` gives at the symbol ``name``.
    """
    if name not in value.free:
        return branch(context, at_least(size, 1), lambda: value, lambda: MISSING)
    place = _only_place(context, name, value)
    if place is not None:
        at_place = substitute_value(context, value, {name: place})
        in_range = partial(branch, context, less_than(place, size), lambda: at_place, lambda: MISSING)
        return branch(context, at_least(place, ZERO), in_range, lambda: MISSING)
    everywhere = _wherever(context, name, size, value)
    if everywhere is not None:
        return everywhere
    count = size.constant()
    if not isinstance(count, int) or not 0 < count <= _MOST_CASES:
        return None
    cases = [body(ZERO + number) for number in range(count)]
    is_known = count == 1 or all(map(_tells_places, cases))
    return _last_of(context, cases) if is_known and not any(map(_is_open, cases)) else None


def may_be_absent(value: Polynomial) -> bool:
    """Whether a value may be none: only the last of values of which nothing is known can be."""
    return any(isinstance(atom, Fold) and atom.kind == "last" for atom in inner_atoms(value))


def _is_open(value: Value) -> bool:
    """Whether it is not known of a case of a value whether it is present."""
    return any(isinstance(leaf, Polynomial) and may_be_absent(leaf) for leaf in leaves(value))


def _wherever(context: Context, name: str, size: Polynomial, value: Value) -> Value | None:
    """A value that is the same wherever it is present: it is enough that it is present anywhere."""
    same, *others = {leaf for leaf in leaves(value) if leaf != MISSING} or {MISSING}
    if others or name in same.free or _is_open(same):
        return None

    def value_if(most: Polynomial) -> Value:
        return branch(context, at_least(most, 1), lambda: same, lambda: MISSING)

    found = max_over(context, name, size, _presence(value))
    return None if any(may_be_infinite(leaf) for leaf in leaves(found)) else each(context, value_if, found)


def _presence(value: Value) -> Value:
    """One where a value is present, zero elsewhere."""
    if isinstance(value, Choice):
        return choice(value.guard, _presence(value.yes), _presence(value.no))
    return ZERO if value == MISSING else ONE


def _last_of(context: Context, cases: Sequence[Value]) -> Value:
    def leaf(one: Leaf) -> Value:
        return _last_of(context, cases[:-1]) if one == MISSING else one

    return each(context, leaf, cases[-1]) if cases else MISSING


def _only_place(context: Context, name: str, value: Value) -> Polynomial | None:
    """The one place at which a value may be present: a guard says so, and it is absent where that fails."""
    if not isinstance(value, Choice):
        return None
    if value.no != MISSING:
        return _only_place(context, name, value.no) if value.yes == MISSING else None
    found = range_of_guard(context, name, value.guard, True)
    return found[1] if found is not None and found[0] == "=" else _only_place(context, name, value.yes)


def _tells_places(value: Value) -> bool:
    """Whether only places say which of its cases a value is, and no data."""
    if not isinstance(value, Choice):
        return True
    is_place = all(isinstance(atom, Symbol) for atom in inner_atoms(value.guard.value))
    return is_place and _tells_places(value.yes) and _tells_places(value.no)
