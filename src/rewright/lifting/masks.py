"""Masks over positions, such as that of causal attention: where they certainly hold, and numbers that they keep finite.

A mask tests a sum of indices. Within a window of a tensor its values lie between two numbers, and these may decide it:
a rank whose queries all come after its keys has no mask, and one that skips later keys leaves out zeros.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import cast

from rewright.ir.dims import Dim
from rewright.lifting import regions
from rewright.lifting.index import Access, Index, compose, used
from rewright.lifting.regions import Region
from rewright.lifting.terms import ONE, Operand, Terms
from rewright.lifting.value import Addend

Ranges = Mapping[int, tuple[int, int]]
"""For every variable the first number that it stands for, and the one behind the last."""

_DEPTH = 6
_MOST_AXES = 3
_FRESH = 1 << 20
"""Variables of folds are numbered from here on."""


def affine(terms: Terms, operand: Operand) -> tuple[Fraction, dict[int, Fraction]] | None:
    """An integer that is a sum of indices: its constant, and its slope in every variable; else None."""
    constant, slopes = Fraction(0), dict[int, Fraction]()
    for factor, (term, access) in _flat(terms, operand):
        if term == terms.one:
            constant += factor
            continue
        if term != terms.index:
            return None
        ((low, strides),) = access
        if not isinstance(low, int) or any(v < 0 or not isinstance(s, int) for v, s in strides):
            return None
        constant += factor * low
        for v, stride in strides:
            slopes[v] = slopes.get(v, Fraction(0)) + factor * cast("int", stride)
    return constant, {v: s for v, s in slopes.items() if s}


def _flat(terms: Terms, operand: Operand, depth: int = _DEPTH) -> list[tuple[Fraction, Operand]]:
    """The addends of a sum, of the sums among them as well."""
    found = terms.expand(*operand)
    if depth == 0 or found == [(ONE, operand)]:
        return found
    return [(c * d, inner) for c, outer in found for d, inner in _flat(terms, outer, depth - 1)]


def factors_of(terms: Terms, operand: Operand) -> list[Operand]:
    """The factors of a product; of anything else itself."""
    term, access = operand
    if terms.label(term)[:2] != ("apply", "multiply"):
        return [operand]
    children = zip(terms.children(term), terms.accesses(term), strict=True)
    return [(child, compose(inner, access)) for child, inner in children]


def ranges_of(lengths: Sequence[Dim] | None) -> Ranges | None:
    """The ranges of variables that count up to these lengths; None where some is a symbol."""
    if lengths is None:
        return None
    return {v: (0, n) for v, n in enumerate(lengths) if isinstance(n, int)}


def decided(terms: Terms, value: Operand, region: Region, ranges: Ranges | None) -> bool | None:
    """Whether an integer always lies in a set, or never; None where that is not known."""
    found = affine(terms, value)
    if found is None or ranges is None:
        return None
    low, slopes = found
    high = low
    for v, slope in slopes.items():
        if v not in ranges:
            return None
        ends = [slope * end for end in (ranges[v][0], ranges[v][1] - 1)]
        low, high = low + min(ends), high + max(ends)
    if low.denominator != 1 or high.denominator != 1:
        return None
    reached = regions.intervals(int(low), int(high) + 1)
    common = regions.intersect(reached, region)
    return True if common == reached else None if common else False


def aligned(terms: Terms, value: Operand, region: Region, body: Operand) -> tuple[Operand, Region]:
    """The test of a guard with its indices read where the body is: one test for all windows of one mask."""
    found = affine(terms, value)
    if found is None or not found[1]:
        return value, region
    constant, slopes = found
    starts = {strides[0][0]: low for low, strides in reversed(body[1]) if len(strides) == 1 and strides[0][1] == 1}
    lead = next(iter(slopes.values()))
    if any(not isinstance(starts.get(v, 0), int) or (s / lead).denominator != 1 for v, s in slopes.items()):
        return value, region
    there = {v: cast("int", starts.get(v, 0)) for v in slopes}
    index: list[tuple[Fraction, int, Access]] = []
    for v, slope in slopes.items():
        place: Index = (there[v], ((v, 1),))
        index.append((slope, terms.index, (place,)))
    total = terms.add(index)
    assert total is not None
    offset = constant - sum((slope * there[v] for v, slope in slopes.items()), start=Fraction(0))
    return (total.term, total.access), regions.preimage(region, total.coefficient, offset)


def lowest(terms: Terms, operand: Operand) -> tuple[Operand, Region] | None:
    """For minus infinity where an integer lies in a set, and zero elsewhere, that integer and set; else None."""
    term, access = operand
    if terms.label(term)[0] != "ranged":
        return None
    hole = terms.children(term)[0]
    if terms.label(hole)[0] != "guard" or not regions.is_set(terms.region(term)):
        return None
    value, body = terms.children(hole)
    if not is_lowest(terms, body):
        return None
    return (value, compose(terms.accesses(hole)[0], access)), terms.region(term)


def is_lowest(terms: Terms, term: int) -> bool:
    """Whether a term is minus infinity."""
    return terms.label(term)[:2] == ("number", repr(float("-inf")))


def is_finite(terms: Terms, operand: Operand, ranges: Ranges | None) -> bool:
    """Whether a number is certainly no infinity; the maximum of masked numbers is none where one is not masked."""
    term, access = operand
    if term not in terms.infinite:
        return True
    label = terms.label(term)
    if label[0] == "ranged" and terms.label(terms.children(term)[0])[:2] == ("fold", "maximum"):
        return _has_finite(terms, operand, ranges)
    if label[0] != "add" and label[:2] not in (("apply", "maximum"), ("apply", "identity")):
        return False
    children = zip(terms.children(term), terms.accesses(term), strict=True)
    return all(is_finite(terms, (child, compose(inner, access)), ranges) for child, inner in children)


def _has_finite(terms: Terms, operand: Operand, ranges: Ranges | None) -> bool:
    """Whether a maximum over a range is of finite numbers and minus infinities, and of one finite number at least."""
    some = False
    for body, inside, corners in _bodies(terms, operand, ranges):
        tests: list[tuple[Operand, Region]] = []
        for factor, addend in _flat(terms, body):
            mask = lowest(terms, addend)
            if mask is not None and factor > 0:
                tests.append(mask)
            elif not is_finite(terms, addend, inside):
                return False
        some |= any(all(decided(terms, v, r, inside | corner) is False for v, r in tests) for corner in corners)
    return some


def _has_positive(terms: Terms, operand: Operand, ranges: Ranges | None, depth: int) -> bool:
    """Whether a sum over a range is of numbers that are positive where a mask holds, which it does somewhere."""
    some = False
    for body, inside, corners in _bodies(terms, operand, ranges):
        guard = terms.children(body[0])[0] if terms.label(body[0])[0] == "ranged" else None
        if guard is None or terms.label(guard)[0] != "guard":
            if not is_positive(terms, body, inside, depth):
                return False
            some = True
            continue
        (value, inner), (at_value, at_inner) = terms.children(guard), terms.accesses(guard)
        region = terms.region(body[0])
        if not regions.is_set(region) or not is_positive(terms, (inner, compose(at_inner, body[1])), inside, depth):
            return False
        test = value, compose(at_value, body[1])
        some |= any(decided(terms, test, region, inside | corner) is True for corner in corners)
    return some


_Bound = dict[int, tuple[int, int]]


def _bodies(
    terms: Terms, operand: Operand, ranges: Ranges | None
) -> Iterator[tuple[Operand, _Bound, list[_Bound]]]:
    """The body of a fold over every box of its region, with its variables' ranges, and at the corners of the box.

    None at all where a box is empty, or no box of numbers.
    """
    term, access = operand
    hole = terms.children(term)[0]
    body, boxes = terms.children(hole)[0], terms.region(term)
    found = list(_boxes(terms, hole, access, boxes, ranges))
    axes = cast("tuple[int, ...]", terms.label(hole)[2])
    if len(found) != len(boxes) or len(axes) > _MOST_AXES:
        return
    for inner, bound in found:
        fresh = [inner[axis][1][0][0] for axis in axes]
        ends = [[(v, (n, n + 1)) for n in dict.fromkeys((bound[v][0], bound[v][1] - 1))] for v in fresh]
        yield (body, inner), bound, [dict(corner) for corner in product(*ends)]


def _boxes(
    terms: Terms, hole: int, access: Access, region: Region, ranges: Ranges | None
) -> Iterator[tuple[Access, _Bound]]:
    """Where the body of a fold is read in every box of a region that has elements, and its variables' ranges."""
    body, axes = terms.children(hole)[0], cast("tuple[int, ...]", terms.label(hole)[2])
    rest, first = iter(access), 1 + max((_FRESH, *used(access), *(ranges or {})))
    inner: Access = tuple(
        (0, ((first + axis, 1),)) if axis in axes else next(rest) for axis in range(terms.arity[body])
    )
    for box, _ in region:
        own: _Bound = {}
        for axis, (low, high) in zip(axes, box, strict=True):
            if isinstance(low, int) and isinstance(high, int) and low < high:
                own[first + axis] = low, high
        if len(own) == len(axes):
            yield inner, {**(ranges or {}), **own}


def is_positive(terms: Terms, operand: Operand, ranges: Ranges | None, depth: int = _DEPTH * 2) -> bool:
    """Whether a number is made of exponentials in ways that keep it above zero where it is read."""
    term, access = operand
    label = terms.label(term)
    if depth == 0:
        return False
    if label[0] == "ranged" and terms.label(terms.children(term)[0])[:2] == ("fold", "sum"):
        return regions.is_set(terms.region(term)) and _has_positive(terms, operand, ranges, depth - 1)
    if label[0] not in ("apply", "add"):
        return term == terms.one
    children = [(c, compose(a, access)) for c, a in zip(terms.children(term), terms.accesses(term), strict=True)]
    if label[:2] == ("apply", "exponential"):
        return is_finite(terms, children[0], ranges)
    if label[0] == "add" and not all(c > 0 for c in terms.coefficients(term)):
        return False
    if label[0] == "add" or label[1] in ("multiply", "reciprocal"):
        return all(is_positive(terms, child, ranges, depth - 1) for child in children)
    return False


def is_defined(terms: Terms, operand: Operand, ranges: Ranges | None) -> bool:
    """Whether a number is certainly finite, also where it is a logarithm."""
    term, access = operand
    if terms.label(term)[:2] == ("apply", "log"):
        return is_positive(terms, (terms.children(term)[0], compose(terms.accesses(term)[0], access)), ranges)
    return is_finite(terms, operand, ranges)


def under_mask(
    terms: Terms, addend: Addend, ranges: Ranges | None
) -> tuple[Operand | None, Region, list[tuple[Fraction, Operand]]] | None:
    """A sum with minus infinity under a mask: the test of the mask, where it holds, and the other addends.

    The test is None where all is minus infinity. None without a mask, or where the others may be infinite.
    """
    found = [(c * addend.coefficient, operand) for c, operand in _flat(terms, (addend.term, addend.access))]
    masks = [(k, lowest(terms, o)) for k, (c, o) in enumerate(found) if c > 0 and _masks(terms, o)]
    if len(masks) != 1:
        return None
    ((place, mask),) = masks
    rest = found[:place] + found[place + 1 :]
    if not all(is_defined(terms, operand, ranges) for _, operand in rest):
        return None
    return (None, regions.EVERYTHING, rest) if mask is None else (*mask, rest)


def _masks(terms: Terms, operand: Operand) -> bool:
    return is_lowest(terms, operand[0]) or lowest(terms, operand) is not None


def outside(terms: Terms, addends: Sequence[tuple[Fraction, Operand]], value: Operand, region: Region) -> list[Addend]:
    """The addends where an integer lies outside of a set: guards on the same integer are decided."""
    form = affine(terms, value)
    found: list[Addend] = []
    for coefficient, (term, access) in addends:
        hole = terms.children(term)[0] if terms.label(term)[0] == "ranged" else None
        if hole is None or terms.label(hole)[0] != "guard":
            found.append(Addend(coefficient, term, access))
            continue
        (tested, body), (at_value, at_body) = terms.children(hole), terms.accesses(hole)
        own = affine(terms, (tested, compose(at_value, access)))
        if own is None or form is None or own[1] != form[1] or not own[1] or not regions.is_set(terms.region(term)):
            found.append(Addend(coefficient, term, access))
            continue
        allowed = regions.preimage(regions.complement(region), ONE, form[0] - own[0])
        common = regions.intersect(allowed, terms.region(term))
        if common == allowed:
            found.append(Addend(coefficient, body, compose(at_body, access)))
        elif common:
            found.append(Addend(coefficient, term, access))
    return found


def masked(terms: Terms, addend: Addend, lengths: Sequence[Dim]) -> Addend | None:
    """A term as the sequential program has it under a mask, where that mask holds everywhere; else None."""
    ranges = ranges_of(lengths)
    for hole in terms.masks.get(addend.term, ()):
        at_value, at_body = terms.accesses(hole)
        places: dict[int, Index] = {}
        for (low, strides), (start, own) in zip(at_body, addend.access, strict=True):
            if len(strides) == 1 and strides[0][1] == 1 and strides[0][0] >= 0:
                places.setdefault(strides[0][0], (start - low, own))
        if len(places) != terms.arity[hole] or compose(at_body, places) != addend.access:
            continue
        test = terms.children(hole)[0], compose(at_value, places)
        for closed in terms.closings.get(hole, ()):
            if regions.is_set(terms.region(closed)) and decided(terms, test, terms.region(closed), ranges):
                return Addend(addend.coefficient, closed, tuple(places[axis] for axis in range(terms.arity[hole])))
    return None


def clipped(terms: Terms, hole: int, access: Access, region: Region) -> Region:
    """A region of a sum without what a mask certainly rules out where the sum is read."""
    guard, ranges = _guard_of(terms, hole), ranges_of(terms.window)
    if guard is None or ranges is None:
        return region
    (value, at_value), allowed = guard
    if any(not isinstance(end, int) for box, _ in region for ends in box for end in ends):
        return region
    found: Region = ()
    for box, count in region:
        for inner, bound in _boxes(terms, hole, access, ((box, count),), ranges):
            form = affine(terms, (value, compose(at_value, inner)))
            if form is None or any(v not in bound for v in form[1]):
                return region
            axes = cast("tuple[int, ...]", terms.label(hole)[2])
            fresh = [inner[axis][1][0][0] for axis in axes]
            own = tuple(_possible(v, form, bound, allowed) for v in fresh)
            found = regions.add([found, ((own, count),)])
    return found


def _guard_of(terms: Terms, hole: int) -> tuple[Operand, tuple[Fraction | None, Fraction | None]] | None:
    """The test of a sum whose body is under a guard, and the first and last integer that it allows."""
    if terms.label(hole)[:2] != ("fold", "sum") or terms.label(terms.children(hole)[0])[0] != "ranged":
        return None
    body = terms.children(hole)[0]
    guard, ends = terms.children(body)[0], regions.single(terms.region(body))
    if terms.label(guard)[0] != "guard" or ends is None:
        return None
    ((low, high),) = ends
    if not isinstance(low, int | None) or not isinstance(high, int | None):
        return None
    last = None if high is None else Fraction(high - 1)
    return (terms.children(guard)[0], terms.accesses(guard)[0]), (None if low is None else Fraction(low), last)


def _possible(
    variable: int,
    form: tuple[Fraction, dict[int, Fraction]],
    bound: Ranges,
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


def widened(terms: Terms, hole: int, access: Access, region: Region, known: Container[int]) -> Region | None:
    """A region that the sequential program sums over and that is this one but for what a mask rules out; else None."""
    if _guard_of(terms, hole) is None:
        return None
    own = clipped(terms, hole, access, region)
    for closed in terms.closings.get(hole, ()):
        if closed in known and clipped(terms, hole, access, terms.region(closed)) == own:
            return terms.region(closed)
    return None
