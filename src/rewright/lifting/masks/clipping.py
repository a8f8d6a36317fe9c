"""Sums over what a mask leaves: which part of a range certainly adds nothing where a sum is read."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor
from typing import cast

from rewright.claims.language import Access, Fold, Ranged, folds
from rewright.lifting.masks.positions import affine, boxes, ranges_of
from rewright.lifting.terms import regions
from rewright.lifting.terms.index import compose, identity
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import Operand, Terms


def clip_region(terms: Terms, hole: int, access: Access, region: Region) -> Region:
    """A region of a sum without what a mask certainly rules out where the sum is read."""
    guard, ranges = _guard_of(terms, hole), ranges_of(terms.window)
    if guard is None or ranges is None:
        return region
    (value, at_value), allowed = guard
    if any(not isinstance(end, int) for box, _ in region for ends in box for end in ends):
        return region
    found: Region = ()
    for box, count in region:
        for inner, bound in boxes(terms, hole, access, ((box, count),), ranges):
            form = affine(terms, (value, compose(at_value, inner)))
            known = {
                v: (low, high) for v, (low, high) in bound.items() if isinstance(low, int) and isinstance(high, int)
            }
            if form is None or any(v not in known for v in form[1]):
                return region
            axes = cast("Fold", terms.label(hole)).axes
            fresh = [inner[axis][1][0][0] for axis in axes]
            own = tuple(_possible(v, form, known, allowed) for v in fresh)
            found = regions.add([found, ((own, count),)])
    return found


def _guard_of(terms: Terms, hole: int) -> tuple[Operand, tuple[Fraction | None, Fraction | None]] | None:
    """The test of a sum whose body is under a guard, and the first and last integer that it allows."""
    if not folds(terms.label(hole), "sum") or not isinstance(terms.label(terms.children(hole)[0]), Ranged):
        return None
    body = terms.children(hole)[0]
    masked = terms.mask((body, identity(terms.arity[body])))
    ends = None if masked is None else regions.single(masked[2])
    if masked is None or ends is None:
        return None
    ((low, high),) = ends
    if not isinstance(low, int | None) or not isinstance(high, int | None):
        return None
    last = None if high is None else Fraction(high - 1)
    return masked[0], (None if low is None else Fraction(low), last)


def _possible(
    variable: int,
    form: tuple[Fraction, dict[int, Fraction]],
    bound: Mapping[int, tuple[int, int]],
    allowed: tuple[Fraction | None, Fraction | None],
) -> tuple[int, int]:
    """The values of a variable for which a sum of indices may lie between two numbers."""
    low = high = form[0]
    for v, slope in form[1].items():
        if v != variable:
            ends = [slope * end for end in (bound[v][0], bound[v][1] - 1)]
            low, high = low + min(ends), high + max(ends)
    start, stop = bound[variable]
    slope = form[1].get(variable, Fraction(0))
    first, last = allowed
    if not slope:
        never = (first is not None and high < first) or (last is not None and low > last)
        return (start, start) if never else (start, stop)
    ends = (None if first is None else (first - high) / slope, None if last is None else (last - low) / slope)
    least, most = ends if slope > 0 else ends[::-1]
    start = start if least is None else max(start, ceil(least))
    stop = stop if most is None else min(stop, floor(most) + 1)
    return start, max(start, stop)
