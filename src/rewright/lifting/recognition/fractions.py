"""Sums of fractions over sums of parts of one range, brought to one denominator.

Attention that goes over its keys block by block mends the quotient of the blocks before by that of the next one:
``a/s - t/(s + t) (a/s - b/t)``, which is ``(a + b)/(s + t)``. Each of these letters is a sum over a part of one range.
So numerators are multiplied out, and those that differ in one such sum only become one, over the parts together.
Denominators are positive, as :func:`rewright.lifting.recognition.signs.is_positive` has it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from rewright.claims.language import Access, Addend
from rewright.lifting.masks.clipping import clip_region
from rewright.lifting.masks.positions import factors_of
from rewright.lifting.masks.vanishing import widen_region
from rewright.lifting.recognition.shifts import inverse_of, is_part
from rewright.lifting.terms import regions
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Operand, Terms

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra

_MOST = 16
"""Sums of more products are left as they are."""


class Factor(NamedTuple):
    """A term, or a sum over a part of its range."""

    term: int
    access: Access
    region: Region | None = None


@dataclass(frozen=True)
class Product:
    """A number times factors over others."""

    coefficient: Fraction
    above: tuple[Factor, ...]
    below: tuple[Factor, ...] = ()


def gather_fractions(algebra: Algebra, addends: Sequence[Addend]) -> list[Addend] | None:
    """The addends of a sum over one denominator, where that leaves fewer of them; else None."""
    terms = algebra.terms
    products = _products(terms, addends)
    if products is None or not 1 < len(products) <= _MOST or not any(p.below for p in products):
        return None
    below: Counter[Factor] = Counter()
    for product in products:
        below |= Counter(product.below)
    above = [_over(product, below) for product in products if all(f.region != () for f in product.above)]
    merged = _merge(above)
    if len(merged) >= len(products):
        return None
    for factor in list(below.elements()):
        if merged and all(factor in product.above for product in merged):
            merged = [Product(p.coefficient, _without(p.above, factor)) for p in merged]
            below[factor] -= 1
    under = [terms.apply("reciprocal", [_close(algebra, factor)]) for factor in below.elements()]
    return [algebra.complete(_addend(algebra, product, under)) for product in merged]


def _products(terms: Terms, addends: Sequence[Addend]) -> list[Product] | None:
    """Every addend as products; None where a sum that is open stands inside of something else."""
    found: list[Product] = []
    for a in addends:
        if len(a.parts) > 1:
            return None
        region = dict(a.parts)
        several = terms.expand(a.term, a.access) if not region else [(ONE, (a.term, a.access))]
        for coefficient, operand in several:
            factors = factors_of(terms, operand)
            if region and sum(term in region for term, _ in factors) != 1:
                return None
            above = [_factor(terms, f, region) for f in factors if inverse_of(terms, f) is None]
            below = [_factor(terms, inner, region) for f in factors if (inner := inverse_of(terms, f)) is not None]
            found.append(Product(coefficient * a.coefficient, tuple(above), tuple(below)))
    return found


def _factor(terms: Terms, operand: Operand, open_: dict[int, Region]) -> Factor:
    term, access = operand
    region = open_.get(term)
    if is_part(terms, term):
        term, region = terms.children(term)[0], terms.region(term)
    return Factor(term, access, None if region is None else clip_region(terms, term, access, region))


def _over(product: Product, below: Counter[Factor]) -> Product:
    """The product with the factors above that its own denominator lacks."""
    return Product(product.coefficient, (*product.above, *(below - Counter(product.below)).elements()))


def _merge(products: Sequence[Product]) -> list[Product]:
    """The same sum with equal products added, and those that differ in the part of one sum only."""
    left = list(products)
    while (found := next(_pairs(left), None)) is not None:
        first, second, together = found
        left = [p for k, p in enumerate(left) if k not in (first, second)] + together
    return left


def _pairs(products: Sequence[Product]) -> Iterator[tuple[int, int, list[Product]]]:
    for first, second in combinations(range(len(products)), 2):
        for together in _together(products[first], products[second]):
            yield first, second, together


def _together(left: Product, right: Product) -> Iterator[list[Product]]:
    """Two products as one, or as none where they cancel."""
    mine, other = Counter(left.above) - Counter(right.above), Counter(right.above) - Counter(left.above)
    if not mine and not other:
        total = left.coefficient + right.coefficient
        yield [Product(total, left.above)] if total else []
        return
    if mine.total() != 1 or other.total() != 1:
        return
    (a,), (b,) = mine, other
    if a.region is None or b.region is None or a[:2] != b[:2]:
        return
    region = regions.add([regions.scale(a.region, left.coefficient), regions.scale(b.region, right.coefficient)])
    counts = {count for _, count in region}
    if len(counts) > 1:
        return
    for count in counts:
        sum_ = Factor(a.term, a.access, regions.scale(region, 1 / count))
        yield [Product(count, (*_without(left.above, a), sum_))]
    if not counts:
        yield []


def _without(factors: Sequence[Factor], one: Factor) -> tuple[Factor, ...]:
    rest = list(factors)
    rest.remove(one)
    return tuple(rest)


def _close(algebra: Algebra, factor: Factor) -> Operand:
    if factor.region is None:
        return factor.term, factor.access
    region = widen_region(algebra.terms, factor.term, factor.access, factor.region, algebra.known) or factor.region
    return algebra.terms.set_range(factor.term, region), factor.access


def _addend(algebra: Algebra, product: Product, under: Sequence[Operand]) -> Addend:
    """The product over a denominator, its one sum over a part of a range open."""
    terms = algebra.terms
    sums = [factor for factor in product.above if factor.region is not None]
    if len(sums) != 1:
        return Addend(product.coefficient, *terms.multiply([*(_close(algebra, f) for f in product.above), *under]))
    (one,) = sums
    assert one.region is not None
    rest = [_close(algebra, f) for f in _without(product.above, one)]
    whole = terms.multiply([(one.term, one.access), *rest, *under])
    return Addend(product.coefficient, *whole, ((one.term, one.region),))
