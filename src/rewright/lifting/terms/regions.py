"""Which part of a sum has been taken: boxes of binder ranges with a coefficient, and sets of integers.

A *region* is a canonical tuple of ``(box, coefficient)``; a box gives a half-open range for every binder of a fold.
Adding the regions of all ranks of a group and finding the whole range with coefficient one is what proves an
all-reduce right. Ends are sizes, or ``None`` for an unbounded end of a guard's set.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from rewright.ir.dims import Dim, at_most

End = Dim | None
Range = tuple[End, End]
Box = tuple[Range, ...]
Region = tuple[tuple[Box, Fraction], ...]

ONE = Fraction(1)


class NotAView(Exception):
    """An operation that is no piecewise affine view, or whose pieces depend on the sizes that symbols stand for.

    The caller keeps the operation as an opaque term.
    """


def whole(box: Box) -> Region:
    """The region that is one box with coefficient one."""
    return ((box, ONE),)


def scale(region: Region, factor: Fraction) -> Region:
    """Every coefficient multiplied."""
    return tuple((box, coefficient * factor) for box, coefficient in region)


def add(regions: Iterable[Region]) -> Region:
    """The sum of regions, overlaps counted with their multiplicity, in canonical form."""
    pieces = [item for region in regions for item in region if not _is_empty(item[0])]
    return _canonical(_disjoint(pieces))


def union(regions: Iterable[Region]) -> Region:
    """The union of regions for an idempotent fold such as the maximum: overlaps count once."""
    return _canonical([(box, ONE) for box, _ in add(regions)])


def single(region: Region) -> Box | None:
    """The box of a region that is one box with coefficient one, else None."""
    return region[0][0] if len(region) == 1 and region[0][1] == 1 else None


def is_set(region: Region) -> bool:
    """Whether no point is counted other than once."""
    return all(coefficient == 1 for _, coefficient in region)


def covers(region: Region, wanted: Box) -> bool:
    """Whether every point of the box is counted exactly once (and nothing else matters)."""
    inside = add([tuple((cut, c) for box, c in region if (cut := _intersect(box, wanted)) is not None)])
    return single(inside) == wanted


def _is_empty(box: Box) -> bool:
    return any(low is not None and high is not None and at_most(high, low) is True for low, high in box)


def _intersect(left: Box, right: Box) -> Box | None:
    """The common part of two boxes, None where there is none; raises NotAView where symbols leave that open."""
    cut: list[Range] = []
    for (low, high), (other_low, other_high) in zip(left, right, strict=True):
        start = low if other_low is None else other_low if low is None else _larger(low, other_low)
        stop = high if other_high is None else other_high if high is None else -_larger(-high, -other_high)
        if start is not None and stop is not None:
            empty = at_most(stop, start)
            # Of a range that lies in the other it need not be known whether it has any element.
            if empty is None and (start, stop) not in ((low, high), (other_low, other_high)):
                raise NotAView(f"whether {stop} is at most {start}")
            if empty:
                return None
        cut.append((start, stop))
    return tuple(cut)


def _larger(left: Dim, right: Dim) -> Dim:
    return right if _is_ordered(left, right) else left


def _is_ordered(left: Dim, right: Dim) -> bool:
    """Whether left <= right."""
    found = at_most(left, right)
    if found is None:
        raise NotAView(f"whether {left} is at most {right}")
    return found


def _disjoint(pieces: list[tuple[Box, Fraction]]) -> list[tuple[Box, Fraction]]:
    """Split overlapping boxes at each other's faces until no two overlap; coefficients of equal boxes add."""
    total: dict[Box, Fraction] = {}
    for box, coefficient in pieces:
        total[box] = total.get(box, Fraction(0)) + coefficient
    items = [(b, c) for b, c in total.items() if c]
    for first in range(len(items)):
        for second in range(first + 1, len(items)):
            cut = _intersect(items[first][0], items[second][0])
            if cut is None:
                continue
            (a, x), (b, y) = items[first], items[second]
            rest = items[:first] + items[first + 1 : second] + items[second + 1 :]
            split = [(cut, x + y), *((p, x) for p in _minus(a, cut)), *((p, y) for p in _minus(b, cut))]
            return _disjoint(rest + split)
    return items


def _minus(box: Box, cut: Box) -> list[Box]:
    """The parts of a box outside of a sub-box."""
    left: list[Box] = []
    for axis, ((low, high), (start, stop)) in enumerate(zip(box, cut, strict=True)):
        after, inside = box[axis + 1 :], cut[:axis]
        if low != start:
            left.append((*inside, (low, start), *after))
        if high != stop:
            left.append((*inside, (stop, high), *after))
    return left


def _canonical(items: list[tuple[Box, Fraction]]) -> Region:
    """Merge boxes that touch along one axis until none do; sort."""
    items = [(b, c) for b, c in items if c]
    merged = True
    while merged:
        merged = False
        for axis in range(len(items[0][0]) if items else 0):
            found = _merge_along(items, axis)
            if len(found) < len(items):
                items, merged = found, True
    return tuple(sorted(items, key=repr))


def _merge_along(items: list[tuple[Box, Fraction]], axis: int) -> list[tuple[Box, Fraction]]:
    lines: dict[object, dict[End, End]] = {}
    shells: dict[object, tuple[Box, Fraction]] = {}
    for box, coefficient in items:
        key = (box[:axis], box[axis + 1 :], coefficient)
        lines.setdefault(key, {})[box[axis][0]] = box[axis][1]
        shells.setdefault(key, (box, coefficient))
    out: list[tuple[Box, Fraction]] = []
    for key, line in lines.items():
        box, coefficient = shells[key]
        ends = {high for high in line.values() if high is not None}
        for low in [start for start in line if start is None or start not in ends]:
            high = line[low]
            while high is not None and high in line:
                high = line[high]
            out.append(((*box[:axis], (low, high), *box[axis + 1 :]), coefficient))
    return out


def intervals(low: End, high: End) -> Region:
    """The set of integers from low up to but not including high."""
    return whole(((low, high),))


def point(value: Fraction) -> Region | None:
    """The set of one integer; None for a fraction."""
    return intervals(int(value), int(value) + 1) if value.denominator == 1 else None


EVERYTHING: Region = whole(((None, None),))
NOTHING: Region = ()


def complement(region: Region) -> Region:
    """The integers that are not in a set."""
    return add([EVERYTHING, scale(region, Fraction(-1))])


def intersect(left: Region, right: Region) -> Region:
    """The integers that are in both sets."""
    cuts = [(cut, ONE) for a, _ in left for b, _ in right if (cut := _intersect(a, b)) is not None]
    return add([tuple(cuts)])


def preimage(wanted: Region, scale: Fraction, constant: Fraction) -> Region:
    """The integers t with scale*t + constant in a set; raises NotAView where an end is symbolic."""
    found: list[Region] = []
    for ((low, high),), _ in wanted:
        if not isinstance(low, int | None) or not isinstance(high, int | None):
            raise NotAView("a set with symbolic ends")
        first = None if low is None else (low - constant) / scale
        last = None if high is None else (high - 1 - constant) / scale
        if scale < 0:
            first, last = last, first
        start = None if first is None else -((-first.numerator) // first.denominator)
        stop = None if last is None else last.numerator // last.denominator + 1
        if start is None or stop is None or start < stop:
            found.append(intervals(start, stop))
    return add(found) if found else NOTHING
