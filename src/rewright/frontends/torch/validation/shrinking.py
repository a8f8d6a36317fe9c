"""Smaller sizes for a call: what divides, or adds up to, another size still does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from rewright.frontends.aten import tables
from rewright.frontends.torch.validation.cuts import Cut

_KEPT = 8
"""Integers up to this are axes, strides or sizes that are small already."""
_LARGEST = 2**31
"""Integers from here on mean no size: the end of a slice that has none."""
_MOST_ELEMENTS = 1 << 16
_MOST_VIEWED = 1 << 20
"""Elements of calls that are run as they are; those that give views compute nothing."""
_FRESH = (5, 7, 6, 9, 11, 10, 13, 12, 14, 15)
_FACTORS, _MORE_FACTORS = (2, 3, 4), range(2, 65)


_Related = Callable[[int, Mapping[int, int]], int | None]


def shrink_call(call: Cut) -> Iterator[Cut]:
    """The call at smaller sizes, most promising first, and as it is where it is small."""
    every = dict.fromkeys(number for number in call.numbers() if 1 < number < _LARGEST)
    numbers, small = [n for n in every if n > _KEPT], [n for n in every if n <= _KEPT]
    more = partial(_combination, factors=_MORE_FACTORS)
    for related, kept in (_product, ()), (_combination, ()), (_product, small), (more, small):
        if numbers:
            table = _table(numbers, related, kept)
            yield call.resize(lambda number, table=table: table.get(number, number))
    elements = sum(math.prod(leaf.shape) for leaf in call.leaves) + sum(map(math.prod, call.results))
    if elements <= (_MOST_VIEWED if call.name in tables.VIEWS else _MOST_ELEMENTS):
        yield call


def _table(numbers: Sequence[int], related: _Related, kept: Sequence[int]) -> dict[int, int]:
    """By number a smaller one: of the same relation to smaller numbers, ``kept`` ones too, or else the next of its own.

    Numbers of their own go by where they stand first, so that calls that differ in sizes alone become the same.
    """
    relations = {number: number for number in kept}
    free: set[int] = set()
    for number in sorted(numbers):
        if related(number, relations) is None:
            free.add(number)
        relations[number] = number
    fresh = iter((*_FRESH, *sorted(numbers)))
    found = {number: number for number in kept}
    found |= {number: min(next(fresh), number) for number in numbers if number in free}
    for number in sorted(numbers):
        if number not in found:
            found[number] = related(number, found) or number
    return found


def _product(number: int, known: Mapping[int, int]) -> int | None:
    for factor in sorted(known, reverse=True):
        other = known.get(number // factor)
        if number % factor == 0 and other is not None:
            return known[factor] * other
    return None


def _combination(number: int, known: Mapping[int, int], factors: Sequence[int] = _FACTORS) -> int | None:
    """A product, a multiple, or a sum."""
    product = _product(number, known)
    if product is not None:
        return product
    for factor in factors:
        part = known.get(number // factor)
        if number % factor == 0 and part is not None:
            return part * factor
    for part in sorted(known, reverse=True):
        rest = known.get(number - part)
        if rest is not None:
            return known[part] + rest
    return None
