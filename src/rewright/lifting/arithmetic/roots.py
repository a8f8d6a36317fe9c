"""Roots: of numbers, and of what is never negative, as norms of gradients use them; absolute values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from rewright.claims.language import Add, Addend, Apply, Fold, Guard, Ranged, View, applies, folds
from rewright.lifting.masks.positions import factors_of
from rewright.lifting.terms.index import compose
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import ONE, Operand, Terms
from rewright.terms.normal.polynomials.factors import prime_powers

_DEPTH = 8
_NEVER_NEGATIVE = frozenset({"sqrt", "exponential", "abs"})


def root_of_number(terms: Terms, number: Fraction) -> Addend:
    """The root of a number that is not negative, as a rational number times roots of different primes."""
    if not number:
        return Addend(number, terms.one, ())
    coefficient, roots = Fraction(1, number.denominator), list[Operand]()
    for prime, often in prime_powers(number.numerator * number.denominator):
        coefficient *= prime ** (often // 2)
        if often % 2:
            inner = terms.make(partial(Add, (Fraction(prime),)), [(terms.one, ())])
            roots.append(terms.apply("sqrt", [inner]))
            terms.roots[roots[-1][0]] = prime
    return Addend(coefficient, *terms.multiply(roots))


def in_pairs(terms: Terms, *products: Operand) -> tuple[int, list[Operand]]:
    """A product of factors in which no root of a prime is twice, and the number that such pairs are."""
    factors = [factor for operand in products for factor in factors_of(terms, operand)]
    if not terms.roots:
        return 1, factors
    number, rest, single = 1, list[Operand](), set[Operand]()
    for factor in factors:
        if factor[0] not in terms.roots:
            rest.append(factor)
        elif factor in single:
            number *= _prime(terms, factor)
            single.remove(factor)
        else:
            single.add(factor)
    return number, rest + [factor for factor in factors if factor in single]


def inverse_roots(terms: Terms, factors: Sequence[Operand]) -> tuple[int, list[Operand], list[Operand]]:
    """The roots of primes among factors, what one over their product is divided by, and the other factors."""
    roots = [factor for factor in factors if factor[0] in terms.roots]
    number = 1
    for factor in roots:
        number *= _prime(terms, factor)
    return number, roots, [factor for factor in factors if factor[0] not in terms.roots]


def _prime(terms: Terms, root: Operand) -> int:
    terms.see(terms.children(root[0])[0])  # a proof needs to know what the root is of
    return terms.roots[root[0]]


def squared_root(terms: Terms, left: Addend, right: Addend) -> list[Addend] | None:
    """``sqrt(x) * sqrt(x)`` as the addends of ``x``, where ``x`` is certainly no negative number; else None.

    A sum over a part of its range is given back as one that the other parts can be added to.
    """
    if (left.term, left.access) != (right.term, right.access) or left.parts or right.parts:
        return None
    factors = factors_of(terms, (left.term, left.access)) if terms.roots else [(left.term, left.access)]
    number, _, others = inverse_roots(terms, factors)
    root = others[0] if len(others) == 1 else None
    if root is None or not applies(terms.label(root[0]), "sqrt"):
        return None
    (inner,), (child,) = terms.accesses(root[0]), terms.children(root[0])
    if not never_negative(terms, child):
        return None
    addends: list[Addend] = []
    for coefficient, (term, access) in _flat(terms, (child, compose(inner, root[1]))):
        hole, parts = term, ()
        if isinstance(terms.label(term), Ranged) and isinstance(terms.label(terms.children(term)[0]), Fold):
            hole = terms.children(term)[0]
            parts = ((hole, terms.region(term)),)
        addends.append(Addend(left.coefficient * right.coefficient * number * coefficient, hole, access, parts))
    return addends


def _flat(terms: Terms, operand: Operand) -> list[tuple[Fraction, Operand]]:
    """The addends of a sum, of the sums among them as well."""
    found = terms.expand(*operand)
    if found == [(ONE, operand)]:
        return found
    return [(c * d, inner) for c, outer in found for d, inner in _flat(terms, outer)]


def absolute(terms: Terms, view: View) -> View | None:
    """``abs(x)`` where ``x`` is certainly no negative number, also where only a part of it has been folded."""
    for a in view.addends:
        positive = all(never_negative_part(terms, hole, region) for hole, region in a.parts)
        if a.coefficient < 0 or not positive or not never_negative(terms, a.term):
            return None
    return view


def never_negative(terms: Terms, term: int, depth: int = _DEPTH) -> bool:
    """Whether a term is a sum of squares, or of other numbers that are certainly not negative."""
    label, children = terms.label(term), terms.children(term)
    if term == terms.one or (isinstance(label, Apply) and label.function in _NEVER_NEGATIVE):
        return True
    if depth == 0:
        return False
    if isinstance(label, Add):
        positive = all(c > 0 for c in terms.coefficients(term))
        return positive and all(never_negative(terms, child, depth - 1) for child in children)
    if isinstance(label, Ranged):
        return never_negative_part(terms, children[0], terms.region(term)) and never_negative(terms, children[0], depth)
    if isinstance(label, Fold | Guard):
        return never_negative(terms, children[-1], depth - 1)
    if applies(label, "multiply"):
        factors: Counter[Operand] = Counter(zip(children, terms.accesses(term), strict=True))
        return all(n % 2 == 0 or never_negative(terms, child, depth - 1) for (child, _), n in factors.items())
    return (applies(label, "reciprocal") or applies(label, "identity")) and never_negative(
        terms, children[0], depth - 1
    )


def never_negative_part(terms: Terms, hole: int, region: Region) -> bool:
    """Whether a fold or guard of no negative numbers over a region is none; a maximum must be of some."""
    label = terms.see(hole)
    if isinstance(label, Guard) or folds(label, "sum"):
        return all(c > 0 for _, c in region)
    ends = [(low, high) for box, _ in region for low, high in box]
    some = all(isinstance(low, int) and isinstance(high, int) and low < high for low, high in ends)
    return folds(label, "maximum") and bool(region) and some
