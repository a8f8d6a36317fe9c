"""Numbers that are certainly finite, or above zero, although a mask makes parts of them infinite or zero.

The maximum of masked scores is finite where one of them is not masked, and the sum of their exponentials is positive
there. Both are needed before exponentials are written as quotients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import cast

from rewright.claims.language import Access, Add, Addend, Apply, Fold, Index, Ranged, applies, folds
from rewright.ir.dims import Dim
from rewright.lifting.masks.positions import Ranges, boxes, decide, flat, is_lowest, lowest, named_places
from rewright.lifting.terms import regions
from rewright.lifting.terms.index import compose, variables_in
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import Operand, Terms

_DEPTH = 12
_MOST_AXES = 3


def is_finite(terms: Terms, operand: Operand, ranges: Ranges | None) -> bool:
    """Whether a number is certainly no infinity; the maximum of masked numbers is none where one is not masked."""
    term = operand[0]
    if term not in terms.infinite:
        return True
    label = terms.label(term)
    if isinstance(label, Ranged) and folds(terms.label(terms.children(term)[0]), "maximum"):
        return _has_finite(terms, operand, ranges)
    if not isinstance(label, Add) and not (applies(label, "maximum") or applies(label, "identity")):
        return False
    return all(is_finite(terms, child, ranges) for child in terms.operands(operand))


def _has_finite(terms: Terms, operand: Operand, ranges: Ranges | None) -> bool:
    """Whether a maximum over a range is of finite numbers and minus infinities, and of one finite number at least."""
    some = False
    for body, inside, own in _bodies(terms, operand, ranges):
        tests: list[Test] = []
        for factor, addend in flat(terms, body):
            mask = lowest(terms, addend)
            if mask is not None and factor > 0:
                tests.append((mask[0], regions.complement(mask[1])))
            elif not is_finite(terms, addend, inside):
                return False
        some |= _meet(terms, tests, own, inside)
    return some


def _has_positive(terms: Terms, operand: Operand, ranges: Ranges | None, depth: int) -> bool:
    """Whether a sum over a range is of numbers that are positive where a mask holds, which it does somewhere."""
    some = False
    for body, inside, own in _bodies(terms, operand, ranges):
        masked = terms.mask(body)
        if masked is None:
            if not is_positive(terms, body, inside, depth):
                return False
            some = True
            continue
        test, inner, region = masked
        if not regions.is_set(region) or not is_positive(terms, inner, inside, depth):
            return False
        some |= _meet(terms, [(test, region)], own, inside)
    return some


Test = tuple[Operand, Region]
"""An integer and the set that it has to lie in."""
_Bound = dict[int, tuple[Dim, Dim]]


def _bodies(terms: Terms, operand: Operand, ranges: Ranges | None) -> Iterator[tuple[Operand, _Bound, list[int]]]:
    """The body of a fold over every box of its region, with the ranges of all variables, and those of the fold.

    None at all where a box is empty, or may be.
    """
    term, access = operand
    hole = terms.children(term)[0]
    body, region = terms.children(hole)[0], terms.region(term)
    found = list(boxes(terms, hole, access, region, ranges))
    axes = cast("Fold", terms.label(hole)).axes
    if len(found) == len(region) and len(axes) <= _MOST_AXES:
        for inner, bound in found:
            yield (body, inner), bound, [inner[axis][1][0][0] for axis in axes]


def _meet(terms: Terms, tests: Sequence[Test], own: Sequence[int], bound: _Bound) -> bool:
    """Whether integers lie in their sets at one place of a fold at least, whatever its other variables are.

    Looked at are the corners of its box, and for one variable the places that the tests name, as the diagonal.
    """
    corners = product(*([(n, ()) for n in dict.fromkeys((bound[v][0], bound[v][1] - 1))] for v in own))
    places: list[tuple[Index, ...]] = [*corners]
    if len(own) == 1:
        places += [(index,) for test in tests for index in named_places(terms, *test, own[0], bound)]
    return any(
        all(
            decide(terms, (term, _at(access, dict(zip(own, place, strict=True)))), r, bound)
            for (term, access), r in tests
        )
        for place in places
    )


def _at(access: Access, place: dict[int, Index]) -> Access:
    """An access at given places of some of its variables."""
    return compose(access, {v: place.get(v, (0, ((v, 1),))) for v in variables_in(access)})


def is_positive(terms: Terms, operand: Operand, ranges: Ranges | None, depth: int = _DEPTH) -> bool:
    """Whether a number is made of exponentials in ways that keep it above zero where it is read."""
    term = operand[0]
    label = terms.label(term)
    if depth == 0:
        return False
    if isinstance(label, Ranged) and folds(terms.label(terms.children(term)[0]), "sum"):
        return regions.is_set(terms.region(term)) and _has_positive(terms, operand, ranges, depth - 1)
    if not isinstance(label, Apply | Add):
        return term == terms.one
    children = terms.operands(operand)
    if applies(label, "exponential"):
        return is_finite(terms, children[0], ranges)
    if isinstance(label, Add) and not all(c > 0 for c in terms.coefficients(term)):
        return False
    if isinstance(label, Add) or label.function in ("multiply", "reciprocal"):
        return all(is_positive(terms, child, ranges, depth - 1) for child in children)
    return False


def is_defined(terms: Terms, operand: Operand, ranges: Ranges | None) -> bool:
    """Whether a number is certainly finite, also where it is a logarithm."""
    if applies(terms.label(operand[0]), "log"):
        return is_positive(terms, terms.operands(operand)[0], ranges)
    return is_finite(terms, operand, ranges)


_TESTS = frozenset({"is_finite", "equal", "not_equal", "greater", "greater_or_equal"})


def is_truth(terms: Terms, term: int, depth: int = _DEPTH) -> bool:
    """Whether a number is a truth value, which is zero or one: a test, or what is made of tests."""
    label = terms.see(term)
    if not isinstance(label, Apply) or depth == 0:
        return False
    if label.function in ("not", "and", "or", "xor", "identity"):
        return all(is_truth(terms, child, depth - 1) for child in terms.children(term))
    return label.function in _TESTS


def under_mask(
    terms: Terms, addend: Addend, ranges: Ranges | None
) -> tuple[Operand | None, Region, list[tuple[Fraction, Operand]]] | None:
    """A sum with minus infinity under a mask: the test of the mask, where it holds, and the other addends.

    The test is None where all is minus infinity. None without a mask, or where the others may be infinite.
    """
    found = [(c * addend.coefficient, operand) for c, operand in flat(terms, (addend.term, addend.access))]
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
