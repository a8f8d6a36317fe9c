"""Scales: how positions along an axis change when a large unit becomes a small one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

LARGEST_OFFSET = 16
"""How far a position may lie from a multiple of the unit; such offsets do not scale."""


@dataclass(frozen=True)
class Scale:
    """Positions ``q * unit + offset`` become ``q * small + offset``, for the q that makes the offset smallest."""

    unit: int
    small: int

    def __call__(self, position: int) -> int:
        quotient, offset = self.split(position)
        return quotient * self.small + offset

    def split(self, position: int) -> tuple[int, int]:
        """Quotient and (signed) offset of a position."""
        quotient = (2 * position + self.unit) // (2 * self.unit)
        return quotient, position - quotient * self.unit

    def source(self, position: int) -> int:
        """A position of the large axis that becomes this one of the small axis."""
        quotient, rest = divmod(position, self.small)
        return quotient * self.unit + rest if 2 * rest < self.small else (quotient + 1) * self.unit - self.small + rest

    def fits(self, positions: Iterable[int]) -> bool:
        """Whether offsets are small and different positions stay different and in order."""
        if self.unit == self.small:
            return True
        ordered = sorted({position for position in positions if position > 0})
        worst = max((abs(self.split(position)[1]) for position in ordered), default=0)
        if worst > LARGEST_OFFSET or (worst and self.unit < 8 * worst):
            return False
        scaled = [self(position) for position in ordered]
        return all(low < high for low, high in pairwise([0, *scaled]))


IDENTITY = Scale(1, 1)


def scales(positions: set[int], long: bool) -> Iterator[Scale]:
    """Scales for a component with these positions, the one that shrinks most first; the last is the identity.

    ``long`` asks for axes of at least a dozen elements.
    """
    known = {position for position in positions if position > 0}
    if known:
        for unit in sorted(_units(known), reverse=True):
            small = _smallest(unit, known, long)
            if small is not None:
                yield Scale(unit, small)
    yield IDENTITY


def _units(known: set[int]) -> set[int]:
    largest = sorted(known, reverse=True)[:40]
    found = set(largest)
    found.update(math.gcd(a, b) for a in largest for b in largest)
    found.add(math.gcd(*known))
    return {unit for unit in found if unit > 2}


def _smallest(unit: int, known: set[int], long: bool) -> int | None:
    """The smallest new unit with which all positions stay apart, if it is smaller than the old one."""
    count = max(1, max(known) // unit)
    wanted = 12 if long else 5
    for small in range(min(unit, max(2, -(-wanted // count))), min(unit, 4 * LARGEST_OFFSET)):
        if Scale(unit, small).fits(known):
            return small
        if not _offsets_fit(unit, known):
            return None
    return None


def _offsets_fit(unit: int, known: set[int]) -> bool:
    worst = max(abs(Scale(unit, 1).split(position)[1]) for position in known)
    return worst <= LARGEST_OFFSET and (not worst or unit >= 8 * worst)
