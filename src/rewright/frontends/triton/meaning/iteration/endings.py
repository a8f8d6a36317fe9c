"""Where a loop ends that stops where data says: no later than its accesses leave their tensors.

``for start in range(0, length, 16)`` reads a table of pages at ``(start + lane) // page``. The table has so many
columns, so a longer sequence would be read out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterable

from rewright.frontends.triton.meaning.addresses.places import magnitude
from rewright.ir.dims import Dim, ceil_quotient, divide
from rewright.terms.index import Index, Quotient, Variable


def latest_end(accesses: Iterable[tuple[Index, Dim]], axis: str, step: int) -> Dim | None:
    """The least number below which a counter stays that moves by a step; None where no access says.

    ``accesses`` are places along axes of tensors with the sizes of these; ``axis`` is the number of the iteration.
    """
    ends = [end for place, size in accesses if (end := _end(place, size, axis, step)) is not None]
    return min(ends, key=magnitude) if ends else None


def _end(place: Index, size: Dim, axis: str, step: int) -> Dim | None:
    for atom, coefficient in place.terms:
        if isinstance(atom, Variable) and atom.name == axis:
            return _reach(size * step, coefficient, step)
        if isinstance(atom, Quotient) and coefficient == 1:
            for inner, own in atom.numerator.terms:
                if isinstance(inner, Variable) and inner.name == axis:
                    return _reach(size * atom.divisor * step, own, step)
    return None


def _reach(whole: Dim, by: Dim, step: int) -> Dim | None:
    """``whole / by``; with a remainder, the next multiple of the step."""
    if isinstance(by, int) and by < 1:
        return None
    exact = divide(whole, by)
    if exact is not None:
        return exact
    return ceil_quotient(whole, by * step) * step if isinstance(whole, int) and isinstance(by, int) else None
