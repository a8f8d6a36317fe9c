"""Products of views: they stay partial where one factor is, and take the form that the sequential program has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import gcd
from typing import TYPE_CHECKING

from rewright.claims.language import Add, Addend, Index, View
from rewright.ir.dims import Dim
from rewright.lifting.arithmetic.roots import in_pairs, squared_root
from rewright.lifting.masks.positions import factors_of
from rewright.lifting.recognition.instances import instance
from rewright.lifting.recognition.shifts import within_sums
from rewright.lifting.terms.index import at_zero, compose, magnitude, rename, variables_in
from rewright.lifting.terms.value import Digits

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra

_MOST_DISTRIBUTED = 6
"""A factor is tried in each of at most this many addends."""
_MOST_PLACES = 2
"""Factors that are read at more single indices are not looked for among the sequential program's products."""


def multiply(algebra: Algebra, left: View, right: View) -> View:
    """The product; it stays partial where exactly one factor is."""
    with algebra.over(left.dims):
        return _multiply(algebra, left, right)


def _multiply(algebra: Algebra, left: View, right: View) -> View:
    for view, other in ((left, right), (right, left)):
        number = algebra.as_constant(view)
        if number is not None:
            return algebra.add([other], [number])
    many, one = (right, left) if any(a.parts for a in right.addends) else (left, right)
    factor = algebra.close(one)
    sources = algebra.solid(many, linear=True)
    whole = squared_root(algebra.terms, sources[0], factor) if len(sources) == 1 else None
    if whole is not None:
        return algebra.settle(left.dims, [algebra.complete(a) for a in whole])
    result = algebra.settle(left.dims, [_product(algebra, a, factor) for a in sources])
    if algebra.sequential or algebra.is_familiar(result):
        return result
    if algebra.is_strange(left, right):
        return result
    return (
        _identify(algebra, left.dims, sources, factor)
        or _instance(algebra, left.dims, result)
        or _distribute(algebra, left.dims, sources, factor)
        or _moved_in(algebra, left.dims, sources, factor)
        or _generalise(algebra, left.dims, sources, factor)
        or _widen(algebra, left.dims, sources, factor)
        or _place(algebra, left.dims, sources, factor)
        or result
    )


def _instance(algebra: Algebra, dims: tuple[Digits, ...], result: View) -> View | None:
    """A product as one of the sequential program's read elsewhere."""
    found = [instance(algebra.terms, a) if a.term >= algebra.horizon else a for a in result.addends]
    view = View(dims, tuple(a for a in found if a is not None))
    return view if len(view.addends) == len(found) and algebra.is_familiar(view) else None


def _generalise(algebra: Algebra, dims: tuple[Digits, ...], sources: Sequence[Addend], factor: Addend) -> View | None:
    """A product at one index of some axes as the sequential program's product over all of these axes, read there."""
    fresh = sum(len(digits) for digits in dims)
    places = [[k for k, (_, strides) in enumerate(a.access) if not strides] for a in (*sources, factor)]
    if len(sources) != 1 or not all(0 < len(own) <= _MOST_PLACES for own in places):
        return None
    (source,) = sources
    alike = [(k, j) for k, j in product(*places) if source.access[k] == factor.access[j]]
    for pairs in (*((pair,) for pair in alike), *combinations(alike, 2)):
        ours, theirs = (
            dict(zip(own, range(fresh, fresh + len(pairs)), strict=True)) for own in zip(*pairs, strict=True)
        )
        if len(ours) != len(pairs) or len(theirs) != len(pairs):
            continue
        with algebra.over(None):  # with variables that no view has
            found = _product(algebra, _spread(source, ours), _spread(factor, theirs))
        if found.term < algebra.horizon and variables_in(found.access) >= set(ours.values()):
            at: dict[int, Index] = {v: (0, ((v, 1),)) for v in variables_in(found.access)}
            at |= {v: (source.access[place][0], ()) for place, v in ours.items()}
            view = View(dims, (replace(found, access=compose(found.access, at)),))
            if algebra.is_familiar(view):
                return view
    return None


def _widen(algebra: Algebra, dims: tuple[Digits, ...], sources: Sequence[Addend], factor: Addend) -> View | None:
    """A product at every n-th element as the sequential program's product at all elements, read there.

    Where pairs are rotated, one program may multiply all elements, and another one the first of each pair.
    """
    if len(sources) != 1:
        return None
    fresh = sum(len(digits) for digits in dims)
    for mine, others, first in _both_ways(_steps(sources[0]), _steps(factor)):
        with algebra.over(None):  # with a variable that no view has
            found = _product(algebra, _stretch(sources[0], mine, fresh), _stretch(factor, others, fresh))
        if found.term < algebra.horizon and fresh in variables_in(found.access):
            at: dict[int, Index] = {v: (0, ((v, 1),)) for v in variables_in(found.access)}
            at[fresh] = (first, ())
            view = View(dims, (replace(found, access=compose(found.access, at)),))
            if algebra.is_familiar(view):
                return view
    return None


_Progression = tuple[int, int, int]


def _both_ways(
    mine: Sequence[_Progression], others: Sequence[_Progression]
) -> Iterator[tuple[Sequence[_Progression], Sequence[_Progression], int]]:
    """One index of either factor, or of both alike, and where in a step it begins."""
    yield from (((one,), (), one[2]) for one in mine)
    yield from (((), (one,), one[2]) for one in others)
    yield from (((one,), (other,), one[2]) for one, other in product(mine, others) if one[1:] == other[1:])


def _steps(addend: Addend) -> list[_Progression]:
    """The indices that leave elements out: their places, how far apart what they read is, and where it begins."""
    found: list[_Progression] = []
    for place, (low, strides) in enumerate(addend.access):
        sizes = [stride for _, stride in strides if isinstance(stride, int)]
        step = gcd(*sizes)
        if step > 1 and len(sizes) == len(strides) and isinstance(low, int):
            found.append((place, step, low % step))
    return found


def _stretch(addend: Addend, steps: Sequence[_Progression], fresh: int) -> Addend:
    """An addend with a variable that reads what lies between the elements that an index reads."""
    access = list(addend.access)
    for place, _, first in steps:
        low, strides = access[place]
        access[place] = (low - first, (*strides, (fresh, 1)))
    return replace(addend, access=tuple(access))


def _place(algebra: Algebra, dims: tuple[Digits, ...], sources: Sequence[Addend], factor: Addend) -> View | None:
    """The same with every index of one value read at that value.

    A rank that holds one expert has such indices where the sequential program has an axis, or nothing at all.
    """
    single = {v for v, n in enumerate(n for digits in dims for n in digits) if n == 1}
    if not any(single & variables_in(a.access) for a in (*sources, factor)):
        return None
    *many, other = [replace(a, access=at_zero(a.access, single)) for a in (*sources, factor)]
    return _generalise(algebra, dims, many, other)


def _spread(addend: Addend, variables: Mapping[int, int]) -> Addend:
    """An addend with variables in place of some of its indices."""
    access = tuple((0, ((variables[k], 1),)) if k in variables else index for k, index in enumerate(addend.access))
    return replace(addend, access=access)


def _identify(algebra: Algebra, dims: tuple[Digits, ...], sources: Sequence[Addend], factor: Addend) -> View | None:
    """The product with an index of one value read otherwise: any way is right, one may be the sequential program's.

    Where a rank holds one head, the head of one factor may be an axis and that of the other a part of some axis.
    """
    lengths = [n for digits in dims for n in digits]
    single = {v for v, n in enumerate(lengths) if n == 1}
    if not single:
        return None
    for many, one in _readings(algebra, sources, factor, lengths, single):
        view = algebra.settle(dims, [_product(algebra, a, one) for a in many])
        if algebra.is_familiar(view):
            return view
    return None


def _distribute(algebra: Algebra, dims: tuple[Digits, ...], sources: Sequence[Addend], factor: Addend) -> View | None:
    """The product of a sum as the sum of products, where the sequential program computes it so."""
    for many, other in ((sources, factor), ((factor,), sources[0] if len(sources) == 1 else None)):
        if other is None or any(a.parts and isinstance(algebra.terms.label(a.term), Add) for a in many):
            continue
        flat = [
            Addend(a.coefficient * c, term, access, a.parts)
            for a in many
            for c, (term, access) in algebra.terms.expand(a.term, a.access)
        ]
        if 1 < len(flat) <= _MOST_DISTRIBUTED:
            view = algebra.settle(dims, [_product(algebra, a, other) for a in flat])
            if algebra.is_familiar(view):
                return view
    return None


def _moved_in(algebra: Algebra, dims: tuple[Digits, ...], sources: Sequence[Addend], factor: Addend) -> View | None:
    """The product with one of its factors moved into a sum beside it, where the sequential program has it there.

    Where quotients count, a softmax's gradient is ``e/s (a - b)`` here and ``e (a/s - b/s)`` there.
    """
    if not algebra.forms.quotients or len(sources) != 1:
        return None
    guard = algebra.guards.guard_of(sources[0])
    source = sources[0] if guard is None else guard[2]
    for one, other in () if source.parts or factor.parts else ((source, factor), (factor, source)):
        for found in _inside(algebra, one, other):
            whole = found if guard is None else algebra.guards.guard(guard[0], guard[1], found)
            view = algebra.settle(dims, [whole])
            if algebra.is_familiar(view):
                return view
    return None


def _inside(algebra: Algebra, total: Addend, other: Addend) -> Iterator[Addend]:
    """A sum times factors, with one of these in the sum, that sum being the sequential program's."""
    terms = algebra.terms
    addends, factors = terms.expand(total.term, total.access), factors_of(terms, (other.term, other.access))
    for inner in factors if len(addends) > 1 and len(factors) > 1 else ():
        found = terms.add([(c, *terms.multiply([operand, inner])) for c, operand in addends])
        if found is not None and found.term < algebra.horizon:
            rest = list(factors)
            rest.remove(inner)
            product = terms.multiply([(found.term, found.access), *rest])
            yield Addend(total.coefficient * other.coefficient * found.coefficient, *product)


def _product(algebra: Algebra, left: Addend, right: Addend) -> Addend:
    coefficient = left.coefficient * right.coefficient
    if coefficient == 0:
        return Addend(Fraction(0), algebra.terms.one, ())
    for guarded, other in ((left, right), (right, left)):
        guard = algebra.guards.guard_of(guarded)
        if guard is not None:
            return algebra.guards.guard(guard[0], guard[1], _product(algebra, guard[2], other))
    number, operands = 1, [(left.term, left.access), (right.term, right.access)]
    if algebra.terms.roots:
        number, operands = in_pairs(algebra.terms, *operands)
    coefficient *= number
    parts = left.parts or right.parts
    simpler = within_sums(algebra.terms, operands) if algebra.forms.quotients and not parts else None
    if simpler is not None:
        return replace(simpler, coefficient=coefficient * simpler.coefficient)
    return Addend(coefficient, *algebra.terms.multiply(operands), parts)


def _readings(
    algebra: Algebra, sources: Sequence[Addend], factor: Addend, lengths: Sequence[Dim], single: Set[int]
) -> Iterator[tuple[Sequence[Addend], Addend]]:
    """Ways to read indices of one value in a product: of either side renamed, left out or added."""
    for left, right in product(_loosen(sources, single), _loosen((factor,), single)):
        yield left, right[0]
        known = algebra.terms.strides(right[0].term, left[0].term)
        for one in _relink(right[0], lengths, single, known):
            yield left, one
        if len(left) == 1:
            for one in _relink(left[0], lengths, single, algebra.terms.strides(left[0].term, right[0].term)):
                yield (one,), right[0]
                for other in _relink(right[0], lengths, single & variables_in(one.access), known):
                    yield (one,), other


def _loosen(addends: Sequence[Addend], single: Set[int]) -> list[Sequence[Addend]]:
    """Addends as they are, and with an index of one value left out where it stands beside others."""
    free = [
        replace(
            a,
            access=tuple(
                (low, strides if len(strides) == 1 else tuple((v, s) for v, s in strides if v not in single))
                for low, strides in a.access
            ),
        )
        for a in addends
    ]
    return [addends] if free == list(addends) else [addends, free]


def _relink(addend: Addend, lengths: Sequence[Dim], single: Set[int], known: Set[tuple[int, Dim]]) -> Iterator[Addend]:
    """An addend with its own indices of one value renamed, or others added as an outer part of some index.

    Such a part is as far apart as the index reaches, or as in products that are known: a rank that holds some of the
    heads that share a key does not tell how many share it.
    """
    access = addend.access
    mine = single & variables_in(access)
    for old, new in product(sorted(mine), sorted(single - mine)):
        yield replace(addend, access=tuple(rename(i, {v: new if v == old else v for v, _ in i[1]}) for i in access))
    for new in sorted(single - mine):
        for place, (low, strides) in enumerate(access):
            reach: Dim = 1
            for v, stride in strides:
                reach = max(reach, stride * lengths[v], key=magnitude) if v >= 0 else reach
            for step in dict.fromkeys((reach, *sorted((s for axis, s in known if axis == place), key=magnitude))):
                longer = (low, tuple(sorted((*strides, (new, step)))))
                yield replace(addend, access=(*access[:place], longer, *access[place + 1 :]))
