"""Elements of constants at symbolic indices: cases of a short table, or elements of a tensor of its own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction

from rewright.terms.normal.arithmetic.cases import branch
from rewright.terms.normal.denoting.casts import limit_elements
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import Leaf, Value, constant, is_zero
from rewright.terms.normal.polynomials.atoms import Element, Polynomial, TooHard, polynomial

Numbers = Sequence[float | int | bool]

_MOST_CASES = 16
"""Longer tables are tensors: two are equal where all of their elements are."""
_MOST_PLACES = 64
"""The same for few numbers many times, and for places of other tensors: what is read there depends on each."""


def entry(context: Context, values: Numbers, place: Leaf, largest: int) -> Value:
    """The element of a table at a place; ``largest`` is the size of the largest tensor in which it may be a place."""
    number = place.constant() if isinstance(place, Polynomial) else None
    if isinstance(number, int) and 0 <= number < len(values):
        return constant(values[number])
    are_places = all(isinstance(value, int) and 0 <= value < largest for value in values)
    most = _MOST_PLACES if are_places or len(set(values)) <= _MOST_CASES else _MOST_CASES
    if not isinstance(place, Polynomial) or (len(values) > most and not all(map(math.isfinite, values))):
        raise TooHard(f"one of {len(values)} constants at a symbolic index")
    if len(values) > most:
        return _element(context, values, place)

    def from_entry(position: int) -> Value:
        if position == len(values) - 1:
            return constant(values[position])
        guard = is_zero(place - position)
        return branch(context, guard, lambda: constant(values[position]), lambda: from_entry(position + 1))

    return from_entry(0)


def fixed(value: float | int | bool) -> Value:
    """A constant that is a number or an infinity; raises TooHard for NaN."""
    if value != value:
        raise TooHard("the constant NaN")
    return constant(value)


def _element(context: Context, values: Numbers, place: Polynomial) -> Value:
    """An element of a tensor that only tables of the same numbers are; whole ones lie between the least and largest."""
    name = "\0table " + hashlib.sha256(",".join(str(Fraction(v)) for v in values).encode()).hexdigest()
    whole = all(value == int(value) for value in values)
    if whole:
        limit_elements(context, name, int(min(values)), int(max(values)))
    return polynomial(Element(name, (place,), whole))
