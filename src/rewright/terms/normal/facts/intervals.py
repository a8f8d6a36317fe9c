"""Sets of integers that guards about one variable or element alone allow: unions of intervals, ends included."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Union

from rewright.terms.normal.polynomials.atoms import Atom, Element, Guard, Symbol

End = Union[int, float]
Intervals = tuple[tuple[End, End], ...]
EVERYTHING: Intervals = ((-math.inf, math.inf),)


def solutions(guard: Guard, polarity: bool) -> tuple[Atom, Intervals] | None:
    """The one variable or element of a guard over integers, and its values for which that has a truth value.

    None for guards over others and for those with a power above two or irrational roots.
    """
    if guard.kind not in ("integer>=0", "integer=0"):
        return None
    atom: Atom | None = None
    factors = [0, 0, 0]
    for monomial, coefficient in guard.value.terms.items():
        power = 0
        if monomial:
            ((found, exponent),) = monomial if len(monomial) == 1 else ((None, 0),)
            if not isinstance(found, Symbol | Element) or (atom is not None and found != atom):
                return None
            atom, power = found, exponent
        if not isinstance(coefficient, int) or power not in (0, 1, 2):
            return None
        factors[int(power)] = coefficient
    if atom is None or not atom.integer:
        return None
    found = _zeros(*factors) if guard.kind == "integer=0" else _not_negative(*factors)
    if found is None:
        return None
    return atom, found if polarity else complement(found)


def linear(guard: Guard) -> dict[Atom, int] | None:
    """The variables and elements with their factors of a guard ``sum + constant >= 0`` over integers, else None."""
    found: dict[Atom, int] = {}
    for monomial, coefficient in guard.value.terms.items():
        if not isinstance(coefficient, int) or len(monomial) > 1:
            return None
        for atom, exponent in monomial:
            if exponent != 1 or not isinstance(atom, Symbol | Element) or not atom.integer:
                return None
            found[atom] = coefficient
    return found if guard.kind == "integer>=0" else None


def extremes(summands: Iterable[tuple[Intervals, int]]) -> tuple[End, End] | None:
    """The least and the greatest sum of factors times members of sets; None where one of these is empty."""
    low: End = 0
    high: End = 0
    for values, factor in summands:
        if not values:
            return None
        ends = values[0][0], values[-1][1]
        least, greatest = (_times(end, factor) for end in (ends if factor > 0 else ends[::-1]))
        low, high = _plus(low, least), _plus(high, greatest)
    return low, high


def _times(end: End, factor: int) -> End:
    # Integers are not made floats, as those that are too large for one would raise an error.
    return end * factor if isinstance(end, int) else end if factor > 0 else -end


def _plus(left: End, right: End) -> End:
    if isinstance(left, int):
        return left + right if isinstance(right, int) else right
    return left


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """The integers in both sets."""
    pairs = ((max(a, c), min(b, d)) for a, b in left for c, d in right)
    return tuple((low, high) for low, high in pairs if low <= high)


def complement(intervals: Intervals) -> Intervals:
    """All other integers."""
    found, start = list[tuple[End, End]](), -math.inf
    for low, high in intervals:
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    return (*found, (start, math.inf)) if start < math.inf else tuple(found)


def _zeros(constant: int, linear: int, square: int) -> Intervals | None:
    if square or not linear:
        return None
    return () if constant % linear else ((-constant // linear, -constant // linear),)


def _not_negative(constant: int, linear: int, square: int) -> Intervals | None:
    """Where ``square*x*x + linear*x + constant >= 0``."""
    if not square:
        if not linear:
            return None
        # -(a // b) is the quotient rounded up.
        return ((-(constant // linear), math.inf),) if linear > 0 else ((-math.inf, constant // -linear),)
    discriminant = linear * linear - 4 * square * constant
    root = math.isqrt(max(discriminant, 0))
    if root * root != discriminant:
        return None
    if square < 0:
        low, high = -((root - linear) // (2 * -square)), (linear + root) // (2 * -square)
        return ((low, high),) if low <= high else ()
    below, above = (-linear - root) // (2 * square), -((linear - root) // (2 * square))
    return ((-math.inf, below), (above, math.inf)) if below + 1 < above else EVERYTHING
