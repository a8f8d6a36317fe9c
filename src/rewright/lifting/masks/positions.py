"""Masks over positions, such as that of causal attention, and where they certainly hold.

A mask tests a sum of indices. Within a window of a tensor its values lie between two numbers, and these may decide it:
a rank whose queries all come after its keys has no mask, and one that skips later keys leaves out zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import cast

from rewright.claims.language import Access, Add, Addend, Fold, Index, Number, applies
from rewright.ir.dims import Dim, SizeExpr, at_most, divide
from rewright.lifting.terms import regions
from rewright.lifting.terms.index import compose, variables_in
from rewright.lifting.terms.regions import Region, is_set
from rewright.lifting.terms.store import ONE, Operand, Terms

Ranges = Mapping[int, tuple[Dim, Dim]]
"""For every variable the first number that it stands for, and the one behind the last."""

_DEPTH = 6
_FRESH = 1 << 20
"""Variables of folds are numbered from here on."""


def affine(terms: Terms, operand: Operand) -> tuple[Fraction, dict[int, Fraction]] | None:
    """An integer that is a sum of indices: its constant, and its slope in every variable; else None."""
    constant, slopes = Fraction(0), dict[int, Fraction]()
    for factor, (term, access) in flat(terms, operand):
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


def flat(terms: Terms, operand: Operand, depth: int = _DEPTH) -> list[tuple[Fraction, Operand]]:
    """The addends of a sum, of the sums among them as well."""
    found = terms.expand(*operand)
    if depth == 0 or found == [(ONE, operand)]:
        return found
    return [(c * d, inner) for c, outer in found for d, inner in flat(terms, outer, depth - 1)]


def factors_of(terms: Terms, operand: Operand) -> list[Operand]:
    """The factors of a product; of anything else itself."""
    return terms.operands(operand) if applies(terms.label(operand[0]), "multiply") else [operand]


def ranges_of(lengths: Sequence[Dim] | None) -> Ranges | None:
    """The ranges of variables that count up to these lengths."""
    return None if lengths is None else {v: (0, n) for v, n in enumerate(lengths)}


def decide(terms: Terms, value: Operand, region: Region, ranges: Ranges | None) -> bool | None:
    """Whether an integer always lies in a set, or never; None where that is not known."""
    ends = None if ranges is None else ends_of(terms, value, ranges)
    if ends is None:
        return None
    reached = regions.intervals(ends[0], ends[1] + 1)
    try:
        common = regions.intersect(reached, region)
    except regions.NotAView:  # symbols leave it open
        return None
    return True if common == reached else None if common else False


def ends_of(terms: Terms, value: Operand, ranges: Ranges) -> tuple[Dim, Dim] | None:
    """The least and the largest value of a sum of indices in their ranges; None for any other integer."""
    found = _linear(terms, flat(terms, value))
    if found is None:
        return None
    whole, low, slopes = found
    high = low
    for v, slope in slopes.items():
        if v not in ranges or not isinstance(slope, int):
            return None
        ends = [slope * end for end in (ranges[v][0], ranges[v][1] - 1)]
        first, last = ends if slope > 0 else ends[::-1]
        low, high = low + first, high + last
    least, most = divide(low, whole), divide(high, whole)
    return None if least is None or most is None else (least, most)


def _linear(terms: Terms, addends: Sequence[tuple[Fraction, Operand]]) -> tuple[int, Dim, dict[int, Dim]] | None:
    """A sum of indices times a whole number: that number, the constant, and the slope in every variable; else None."""
    whole = lcm(*(factor.denominator for factor, _ in addends))
    constant: Dim = 0
    slopes: dict[int, Dim] = {}
    for factor, (term, access) in addends:
        times = int(factor * whole)
        if term == terms.one:
            constant = constant + times
            continue
        if term != terms.index:
            return None
        ((start, strides),) = access
        constant = constant + start * times
        for v, stride in strides:
            slopes[v] = slopes.get(v, 0) + stride * times
    return whole, constant, {v: slope for v, slope in slopes.items() if slope != 0}


def named_places(terms: Terms, value: Operand, region: Region, variable: int, ranges: Ranges) -> Iterator[Index]:
    """Places in the range of a variable at which an integer is the end of its set, as the diagonal of a causal mask."""
    found = _linear(terms, flat(terms, value))
    slope = None if found is None else found[2].get(variable)
    if found is None or found[0] != 1 or slope not in (1, -1):
        return
    low, high = ranges[variable]
    others = tuple(sorted((v, -s * slope) for v, s in found[2].items() if v != variable))
    for ((start, stop),), _ in region:
        end = start if start is not None else None if stop is None else stop - 1
        if end is None:
            continue
        place: Index = ((end - found[1]) * slope, others)
        reached = ends_of(terms, (terms.index, (place,)), ranges)
        if reached is not None and at_most(low, reached[0]) and at_most(reached[1] + 1, high):
            yield place


def everywhere(terms: Terms, value: Operand, region: Region) -> bool | None:
    """The same whatever the windows are: positions are not negative, so that a sum of them has a bound on one side."""
    found = affine(terms, value)
    if found is None or found[0].denominator != 1 or not found[1]:
        return None
    constant, slopes = int(found[0]), found[1].values()
    if all(slope > 0 for slope in slopes):
        reached = regions.intervals(constant, None)
    elif all(slope < 0 for slope in slopes):
        reached = regions.intervals(None, constant + 1)
    else:
        return None
    common = regions.intersect(reached, region)
    return True if common == reached else None if common else False


def align(terms: Terms, value: Operand, region: Region, body: Operand) -> tuple[Operand, Region]:
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
    if any((slope / total.coefficient).denominator != 1 for slope in slopes.values()):
        return value, region  # what is read at one of several digits would be no integer
    offset = constant - sum((slope * there[v] for v, slope in slopes.items()), start=Fraction(0))
    return (total.term, total.access), regions.preimage(region, total.coefficient, offset)


def orient(terms: Terms, value: Operand, region: Region) -> tuple[Operand, Region]:
    """The test of a difference of two indices, ``j - i``, as one of a number below: ``i - j < c`` is ``j - i > -c``.

    What is transposed afterwards has its variables in the other order, and would be another term else.
    """
    term, access = value
    if not isinstance(terms.label(term), Add) or terms.coefficients(term) != (ONE, -ONE):
        return value, region
    first, second = terms.children(term)
    plain = terms.accesses(term) == (((0, ((0, 1),)),), ((0, ((1, 1),)),))
    if first != second or not plain or not region or region[0][0][0][0] is not None or region[-1][0][0][1] is None:
        return value, region
    return (term, (access[1], access[0])), regions.preimage(region, -ONE, Fraction(0))


def lowest(terms: Terms, operand: Operand) -> tuple[Operand, Region] | None:
    """For minus infinity where an integer lies in a set, and zero elsewhere, that integer and set; else None."""
    masked = terms.mask(operand)
    if masked is None or not regions.is_set(masked[2]) or not is_lowest(terms, masked[1][0]):
        return None
    return masked[0], masked[2]


def is_lowest(terms: Terms, term: int) -> bool:
    """Whether a term is minus infinity."""
    return is_infinity(terms, term, "-inf")


def is_infinity(terms: Terms, term: int, which: str) -> bool:
    """Whether a term is the infinity of that name."""
    return terms.label(term) == Number(which)


def restate(terms: Terms, value: Operand, region: Region, other: Operand) -> Region | None:
    """A test of an integer as one of another, which is a constant more, or minus the integer and a constant."""
    if value == other:
        return region
    if any(isinstance(end, SizeExpr) for box, _ in region for ends in box for end in ends):
        return None
    own, wanted = flat(terms, value), flat(terms, other)
    if not any(term == terms.index for _, (term, _) in wanted):
        return None
    for sign in (ONE, -ONE):
        found = _linear(terms, [*own, *((-sign * factor, operand) for factor, operand in wanted)])
        if found is not None and not found[2] and isinstance(found[1], int):
            return regions.preimage(region, sign, Fraction(found[1], found[0]))
    return None


def boxes(
    terms: Terms, hole: int, access: Access, region: Region, ranges: Ranges | None
) -> Iterator[tuple[Access, dict[int, tuple[Dim, Dim]]]]:
    """Where the body of a fold is read in every box of a region that has elements, and its variables' ranges."""
    body, axes = terms.children(hole)[0], cast("Fold", terms.label(hole)).axes
    variables: list[int] = [_FRESH, *variables_in(access), *(ranges or {})]
    rest, first = iter(access), 1 + max(variables)
    inner: Access = tuple(
        (0, ((first + axis, 1),)) if axis in axes else next(rest) for axis in range(terms.arity[body])
    )
    for box, _ in region:
        own: dict[int, tuple[Dim, Dim]] = {}
        for axis, (low, high) in zip(axes, box, strict=True):
            if low is not None and high is not None and at_most(low + 1, high) is True:
                own[first + axis] = low, high
        if len(own) == len(axes):
            yield inner, {**(ranges or {}), **own}


def exclude(terms: Terms, addends: Sequence[tuple[Fraction, Operand]], value: Operand, region: Region) -> list[Addend]:
    """The addends where an integer lies outside of a set: guards on the same integer are decided."""
    form = affine(terms, value)
    found: list[Addend] = []
    for coefficient, operand in addends:
        masked = terms.mask(operand)
        own = None if masked is None else affine(terms, masked[0])
        if masked is None or own is None or form is None or own[1] != form[1] or not (own[1] and is_set(masked[2])):
            found.append(Addend(coefficient, *operand))
            continue
        allowed = regions.preimage(regions.complement(region), ONE, form[0] - own[0])
        common = regions.intersect(allowed, masked[2])
        if common or common == allowed:
            found.append(Addend(coefficient, *(masked[1] if common == allowed else operand)))
    return found


def find_masked_term(terms: Terms, addend: Addend, lengths: Sequence[Dim]) -> Addend | None:
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
            if regions.is_set(terms.region(closed)) and decide(terms, test, terms.region(closed), ranges):
                return Addend(addend.coefficient, closed, tuple(places[axis] for axis in range(terms.arity[hole])))
    return None
