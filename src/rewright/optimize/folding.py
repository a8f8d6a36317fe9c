"""Axes that are read along the digits of one loop, as the one axis that they are the digits of.

What a program flattens before it reads it, ``logits.reshape(-1, vocabulary)``, is read at ``[o div 16, o mod 16]``: two
axes that depend on one loop, which no layout operator has. Side by side they are one axis that is read at o.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from rewright.optimize.ranges import Span, joined_digits, span
from rewright.terms.index import Index, Quotient, Remainder, Variable

_MOST = 4
"""So many axes are put together at most, in all their orders."""


@dataclass(frozen=True)
class Folded:
    """Axes, the most significant first, that are read as one axis at an index."""

    axes: tuple[int, ...]
    index: Index


def folded_axes(places: Sequence[Index | None], shape: Sequence[int], ranges: Mapping[str, Span]) -> Folded | None:
    """The first axes that the digits of one loop are read along, and the whole that these are; None without such.

    ``places`` are the indices along the axes, None where one is computed from data.
    """
    loops = [None if place is None else _loop(place) for place in places]
    for loop in dict.fromkeys(name for name in loops if name is not None):
        axes = [axis for axis, name in enumerate(loops) if name == loop]
        inside = all(_is_inside(places[axis], shape[axis], ranges) for axis in axes)
        if not 1 < len(axes) <= _MOST or not inside:
            continue
        for order in permutations(axes):
            index = Index(0)
            for axis in order:
                place = places[axis]
                assert place is not None
                index = index * shape[axis] + place
            index = joined_digits(index)
            if index.as_variable() is not None:
                return Folded(order, index)
    return None


@dataclass(frozen=True)
class Parted:
    """An axis that is read at ``step * high + low``: the two axes that these are read along."""

    axis: int
    step: int
    high: Index
    low: Index


def parted_axis(places: Sequence[Index | None], shape: Sequence[int], ranges: Mapping[str, Span]) -> Parted | None:
    """The first axis that a digit of a loop is added up along, where other axes are read along other digits of it.

    The channels of a group are ``3 * group + r div 35``, where the loop r goes over the elements of a group.
    """
    for axis, place in enumerate(places):
        if place is None or len(place.terms) < 2 or place.constant != 0:
            continue
        for atom, factor in place.terms:
            if not isinstance(atom, (Quotient, Remainder)):
                continue
            low = Index(0, ((atom, factor),))
            high = _times(place - low, shape[axis])
            loop, others = _loop(low), [p for number, p in enumerate(places) if number != axis and p is not None]
            if high is None or loop is None or loop not in {_loop(p) for p in others}:
                continue
            step, index = high
            if _is_inside(low, step, ranges) and _is_inside(index, shape[axis] // step, ranges):
                return Parted(axis, step, index, low)
    return None


def _times(index: Index, size: int) -> tuple[int, Index] | None:
    """An index as the largest number that divides all of it, and the rest; None where that does not divide the size."""
    factors = [factor for _, factor in index.terms if isinstance(factor, int)]
    step = math.gcd(*factors)
    if len(factors) != len(index.terms) or index.constant != 0 or step < 2 or size % step:
        return None
    return step, Index(0, tuple((atom, factor // step) for atom, factor in index.terms if isinstance(factor, int)))


def _loop(place: Index) -> str | None:
    """The loop that an index is a digit of."""
    if len(place.terms) != 1:
        return None
    atom = place.terms[0][0]
    while isinstance(atom, (Quotient, Remainder)) and len(atom.numerator.terms) == 1:
        atom = atom.numerator.terms[0][0]
    return atom.name if isinstance(atom, Variable) and not atom.name.startswith("@") else None


def _is_inside(place: Index | None, size: int, ranges: Mapping[str, Span]) -> bool:
    """Whether an index is in range for all values of its loop, so that another axis is never carried over to."""
    found = None if place is None else span(place, ranges)
    return found is not None and found[0] >= 0 and found[1] < size
