"""Smaller sizes for a call: what divides, or adds up to, another size still does."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from rewright.frontends.torch.validation.cuts import Cut

_KEPT = 8
"""Integers up to this are axes, strides or sizes that are small already."""
_LARGEST = 2**31
"""Integers from here on mean no size: the end of a slice that has none."""
_MOST_ELEMENTS = 1 << 16
_FRESH = (5, 7, 6, 9, 11, 10, 13, 12, 14, 15)
_FACTORS = (2, 3, 4)


def shrunk(call: Cut) -> Iterator[Cut]:
    """The call at smaller sizes, most promising first, and as it is where it is small."""
    numbers = dict.fromkeys(number for number in call.numbers() if _KEPT < number < _LARGEST)
    if numbers:
        for related in (_product, _combination):
            table = _table(list(numbers), related)
            yield call.resized(lambda number, table=table: table.get(number, number))
    if sum(math.prod(leaf.shape) for leaf in call.leaves) + sum(map(math.prod, call.results)) <= _MOST_ELEMENTS:
        yield call


def _table(numbers: list[int], related: Callable[[int, Mapping[int, int]], int | None]) -> dict[int, int]:
    """By number a smaller one: of the same relation to smaller numbers, or else the next of its own.

    Numbers of their own go by where they stand first, so that calls that differ in sizes alone become the same.
    """
    relations: dict[int, int] = {}
    free: set[int] = set()
    for number in sorted(numbers):
        if related(number, relations) is None:
            free.add(number)
        relations[number] = number
    fresh = iter((*_FRESH, *sorted(numbers)))
    found = {number: min(next(fresh), number) for number in numbers if number in free}
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


def _combination(number: int, known: Mapping[int, int]) -> int | None:
    """A product, a multiple, or a sum."""
    product = _product(number, known)
    if product is not None:
        return product
    for factor in _FACTORS:
        part = known.get(number // factor)
        if number % factor == 0 and part is not None:
            return part * factor
    for part in sorted(known, reverse=True):
        rest = known.get(number - part)
        if rest is not None:
            return known[part] + rest
    return None
