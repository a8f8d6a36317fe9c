"""Axes that are read along the digits of one loop, as the one axis that they are the digits of.

What a program flattens before it reads it, ``logits.reshape(-1, vocabulary)``, is read at ``[o div 16, o mod 16]``: two
axes that depend on one loop, which no layout operator has. Side by side they are one axis that is read at o. A number
that is computed from data, as the token that an expert is given, may take the place of the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from rewright.ir.dims import Dim, divide
from rewright.optimize.scalars.ranges import Span, is_below, joined_digits, span
from rewright.terms.index import Index, Quotient, Remainder, Variable

_MOST = 4
"""So many axes are put together at most, in all their orders."""


@dataclass(frozen=True)
class Folded:
    """Axes, the most significant first, that are read as one axis at an index."""

    axes: tuple[int, ...]
    index: Index


def folded_axes(places: Sequence[Index | None], shape: Sequence[Dim], ranges: Mapping[str, Span]) -> Folded | None:
    """The first axes that the digits of one loop are read along, and the whole that these are; None without such.

    ``places`` are the indices along the axes, None where one is computed from data.
    """
    loops = [None if place is None else _loop(place) for place in places]
    for loop in dict.fromkeys(name for name in loops if name is not None):
        axes = [axis for axis, name in enumerate(loops) if name == loop]
        inside = {axis for axis in axes if _is_inside(places[axis], shape[axis], ranges)}
        if not 1 < len(axes) <= _MOST or (len(inside) < len(axes) and not loop.startswith("@")):
            continue
        for order in permutations(axes):
            if not inside.issuperset(order[1:]):
                continue  # what is out of range along the first axis is out of range of them all
            index = Index(0)
            for axis in order:
                place = places[axis]
                assert place is not None
                index = index * shape[axis] + place
            index = joined_digits(index)
            if _is_quotient(index):
                return Folded(order, index)
    return None


@dataclass(frozen=True)
class Parted:
    """An axis that is read at ``step * high + low``: the two axes that these are read along."""

    axis: int
    step: int
    high: Index
    low: Index


def parted_axis(places: Sequence[Index | None], shape: Sequence[Dim], ranges: Mapping[str, Span]) -> Parted | None:
    """The first axis that is read at a multiple of a number and something below that number.

    The channels of a group are ``3 * group + r div 35``, where the loop r goes over the elements of a group, and the
    second half of a head is ``8 * head + r + 4``.
    """
    for axis, place in enumerate(places):
        if place is None or len(place.terms) < 2:
            continue
        for step in sorted({factor for _, factor in place.terms if isinstance(factor, int) and factor > 1}):
            high = Index(0, tuple((a, f // step) for a, f in place.terms if isinstance(f, int) and f % step == 0))
            low = place - high * step
            count = divide(shape[axis], step)
            if count is not None and low.terms and _is_inside(low, step, ranges) and _is_inside(high, count, ranges):
                return Parted(axis, step, high, low)
    return None


def _is_quotient(index: Index) -> bool:
    """Whether an index is a loop, or the quotient of one by a number."""
    if index.constant != 0 or len(index.terms) != 1 or index.terms[0][1] != 1:
        return False
    atom = index.terms[0][0]
    inner = atom.numerator.as_variable() if isinstance(atom, Quotient) else None
    return isinstance(atom, Variable) or (inner is not None and not inner.name.startswith("@"))


def digit_of(atom: object, sizes: Mapping[str, Dim]) -> tuple[str, Dim, Dim] | None:
    """The loop, the step and the number of values of a digit ``(x div step) mod values``; None for anything else.

    All digits divide what they are digits of, so that layout operators have them.
    """
    if isinstance(atom, Variable):
        return None if atom.name.startswith("@") or atom.name not in sizes else (atom.name, 1, sizes[atom.name])
    if not isinstance(atom, (Quotient, Remainder)):
        return None
    numerator = atom.numerator
    if numerator.constant != 0 or len(numerator.terms) != 1 or numerator.terms[0][1] != 1:
        return None
    inner = digit_of(numerator.terms[0][0], sizes)
    rest = None if inner is None else divide(inner[2], atom.divisor)
    if inner is None or rest is None:
        return None
    loop, step, _ = inner
    return (loop, step * atom.divisor, rest) if isinstance(atom, Quotient) else (loop, step, atom.divisor)


def _loop(place: Index) -> str | None:
    """The loop, or the number that is computed, that an index is a digit of."""
    if len(place.terms) != 1:
        return None
    atom = place.terms[0][0]
    while isinstance(atom, (Quotient, Remainder)) and len(atom.numerator.terms) == 1:
        atom = atom.numerator.terms[0][0]
    return atom.name if isinstance(atom, Variable) else None


def _is_inside(place: Index | None, size: Dim, ranges: Mapping[str, Span]) -> bool:
    """Whether an index is in range for all values of its loop, so that another axis is never carried over to."""
    return place is not None and is_below(span(place, ranges), size)
