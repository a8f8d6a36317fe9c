"""What follows from a maximum being no less than what it is taken of, and one of it: the last resorts of a proof."""

from __future__ import annotations

from rewright.terms.normal.arithmetic.substitution import substitute_guard
from rewright.terms.normal.decision.regrouping import clear_denominators, outside_of_binders
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import Guard, at_least, at_least_zero, is_zero
from rewright.terms.normal.folds.items import members, members_at
from rewright.terms.normal.polynomials.atoms import Polynomial, polynomial, symbol
from rewright.terms.normal.polynomials.ranged import Item, Largest, PrefixSum, inner_atoms


def split_maximum(value: Polynomial) -> tuple[Largest, list[Polynomial]] | None:
    """A maximum outside of binders with several items, and the items as values."""
    for atom in outside_of_binders(value):  # where it can be replaced
        if not isinstance(atom, Largest) or not all(item.always for item in atom.items):
            continue
        if len(atom.items) >= 2 and not any(n.startswith("%") for n in atom.free):
            return atom, [_item_value(item) for item in atom.items]
    return None


def _item_value(item: Item) -> Polynomial:
    return polynomial(Largest([item])) if item.ranges else item.body


def equal_by_members(context: Context, value: Polynomial) -> bool:
    """Whether a difference is zero because a maximum is no less than one of its values, of which something is known."""
    if not context.universal or any(isinstance(atom, PrefixSum) for atom in inner_atoms(value)):
        return False
    with context.scope():
        for atom in [a for a in value.atoms() if isinstance(a, Largest)]:
            for member in members(context, atom):
                context.add(at_least_zero(polynomial(atom) - member))
        guard = is_zero(clear_denominators(value))
        return guard if isinstance(guard, bool) else context.implied_real(guard, True)


def values_contradict(context: Context, depth: int = 2) -> bool:
    """Whether facts say that a maximum is below one of its values at a place that an index is, or equal to none."""
    known = context.only_values({name for guard, _ in context.trail for name in guard.free})
    trail = [(substitute_guard(context, guard, known), polarity) for guard, polarity in context.trail]
    values = [guard.value for guard, _ in trail if isinstance(guard, Guard)]
    maxima = sorted({a for value in values for a in value.atoms() if isinstance(a, Largest)}, key=lambda atom: atom.key)
    places = [symbol(n) for n in sorted({n for atom in maxima for n in atom.free if context.bounds(n) is not None})]
    if not maxima:
        return False
    with context.scope():
        for guard, polarity in trail:
            context.add(guard, polarity)
        for atom in maxima:
            parts = [_item_value(item) for item in atom.items if item.always]
            for value in (*(parts if len(parts) > 1 else ()), *members_at(context, atom, places)):
                context.add(at_least(polynomial(atom), value))
        if context.contradictory():
            return True
        several = [a for a in maxima if 1 < len(a.items) <= _MOST_ITEMS and all(item.always for item in a.items)]
        return bool(depth and several) and all(
            _equals_none(context, several[0], _item_value(item), depth) for item in several[0].items
        )


_MOST_ITEMS = 4
"""So many values of a maximum are tried as the largest one."""


def _equals_none(context: Context, atom: Largest, value: Polynomial, depth: int) -> bool:
    """Whether facts say that a maximum is not this one of its values."""
    with context.scope():
        context.add(is_zero(polynomial(atom) - value))
        return values_contradict(context, depth - 1)


def equal_reals(context: Context, value: Polynomial) -> bool:
    """z3's real arithmetic on a difference without sums, as the last resort.

    A maximum is any number to it, and asked of only where a case says something of it.
    """
    inside = [*inner_atoms(value)]
    maxima = {atom for atom in inside if isinstance(atom, Largest)}
    if any(isinstance(atom, PrefixSum) for atom in inside) or not all(atom.always for atom in maxima):
        return False
    if maxima and not any(maxima & {*guard.value.atoms()} for guard, _ in context.trail):
        return False
    guard = is_zero(clear_denominators(value))
    return guard if isinstance(guard, bool) else context.implied_real(guard, True)
