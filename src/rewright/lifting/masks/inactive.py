"""Scores without a mask as the sequential program's scores under one that holds nowhere in a window.

The last query sees all keys. So a step of decoding has no mask, and its scores are one row of the masked ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from typing import TYPE_CHECKING

from rewright.claims.language import Access, Addend, View
from rewright.lifting.masks.positions import decide, ranges_of
from rewright.lifting.terms import regions
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Operand
from rewright.lifting.terms.trace import look

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra

_MOST_PLACES = 64
"""Places that a mask is tried at."""
Compute = Callable[[View], View]


@dataclass(frozen=True, slots=True)
class Mask:
    """Minus infinity where an integer lies in a set, and zero outside, where it lies in a whole window."""

    addend: Addend
    test: Operand
    outside: Region


def under_mask(algebra: Algebra, view: View, compute: Compute) -> View | None:
    """What is computed of the same numbers as scores under a mask, where that is the sequential program's."""
    if algebra.sequential or any(a.parts for a in view.addends):
        return None
    for mask in _inactive(algebra, view):
        for masked in (_added, _chosen):
            found = look(algebra.terms, partial(_familiar, algebra, view, mask, masked, compute))
            if found is not None:
                return found
    return None


def _familiar(
    algebra: Algebra, view: View, mask: Mask, masked: Callable[[Algebra, View, Mask], View], compute: Compute
) -> View | None:
    scores = masked(algebra, view, mask)
    found = compute(scores) if algebra.is_familiar(scores) else None
    return found if found is not None and algebra.is_familiar(found) else None


def _added(algebra: Algebra, view: View, mask: Mask) -> View:
    """Scores plus a mask."""
    return algebra.settle(view.dims, [*view.addends, mask.addend])


def _chosen(algebra: Algebra, view: View, mask: Mask) -> View:
    """Scores where a mask lets them through, and minus infinity elsewhere."""
    with algebra.over(view.dims):
        kept = [algebra.guards.guard(mask.test, mask.outside, a) for a in view.addends]
    return algebra.settle(view.dims, [*kept, mask.addend])


def _inactive(algebra: Algebra, view: View) -> Iterator[Mask]:
    """The masks of the sequential program that hold nowhere in the window of a view, at places that it reads."""
    terms, ranges = algebra.terms, ranges_of([n for digits in view.dims for n in digits])
    places = dict.fromkeys(index for a in view.addends for index in a.access)
    holes = [hole for hole in terms.masks.get(terms.number(float("-inf")), ()) if hole < algebra.horizon]
    for closed in (one for hole in holes for one in terms.closings.get(hole, ()) if one < algebra.horizon):
        for access in islice(product(places, repeat=terms.arity[closed]), _MOST_PLACES):
            at: Access = tuple(access)
            found = terms.mask((closed, at))
            if found is None or not regions.is_set(found[2]):
                break
            if decide(terms, found[0], found[2], ranges) is False:
                yield Mask(Addend(ONE, closed, at), found[0], regions.complement(found[2]))
