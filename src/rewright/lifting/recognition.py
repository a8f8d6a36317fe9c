"""A rank's sum as the one of the sequential program that adds up the same products in another order.

What a rank applies a function to must be a term of the sequential program, or nothing behind the function is related.
Where the sum that it applies one to was made in other steps (rows added one by one before they are summed, or summed
before they are multiplied), the polynomials of both are equal. That of every sequential sum is made once and looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from rewright.lifting.algebra import Algebra
from rewright.lifting.expansion import BOUND, Expansion, Factors, Sum, TooLong
from rewright.lifting.index import Access, Index, identity, used
from rewright.lifting.instances import solve
from rewright.lifting.regions import NotAView, Region, scale
from rewright.lifting.value import Addend

_MOST_ALIKE = 16
"""Sequential sums of products of the same terms that are looked at."""

_MOST_PRODUCTS = 64
"""A sum of more products is not looked for."""

Signature = tuple[tuple[int, ...], ...]


class Recogniser:
    """Sums of the sequential program by the products that they are made of."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._expansion = Expansion(algebra)
        self._known: dict[Signature, list[tuple[int, Sum]]] | None = None

    def forget(self) -> None:
        """Expand every term anew from here on."""
        self._expansion = Expansion(self._algebra)

    def recognise(self, addend: Addend) -> Addend | None:
        """The same tensor as a term of the sequential program; None where it is none or cannot be told."""
        ones = {v for v, n in enumerate(self._algebra.terms.window or ()) if n == 1}
        at_zero = tuple((low, tuple((v, s) for v, s in strides if v not in ones)) for low, strides in addend.access)
        for access in dict.fromkeys((addend.access, at_zero)):
            found = self._found(addend.term, access)
            if found is not None:
                self._algebra.used("products")
                return Addend(found.coefficient * addend.coefficient, found.term, found.access)
        return None

    def _found(self, term: int, access: Access) -> Addend | None:
        if self._algebra.effort <= 0:
            return None
        try:
            own = identity(self._algebra.terms.arity[term])
            wanted = self._expansion.read(self._expansion.operand((term, own)), access)
            if not wanted or len(wanted) > _MOST_PRODUCTS:
                return None
            for other, products in self._index().get(_signature(wanted), ()):
                found = self._instance(products, self._algebra.terms.arity[other], wanted)
                if found is not None:
                    # What it is made of counts: whoever traces this has to see it.
                    Expansion(self._algebra).operand((other, identity(self._algebra.terms.arity[other])))
                    return Addend(found[0], other, found[1])
        except (TooLong, NotAView):
            return None
        return None

    def _instance(self, own: Sum, arity: int, wanted: Sum) -> tuple[Fraction, Access] | None:
        """How many times a polynomial, read where, another one is."""
        found = _solved(own, arity, wanted)
        if found is None:
            return None
        there = self._expansion.read(own, found[1])
        return found if {f: scale(r, found[0]) for f, r in there.items()} == wanted else None

    def _index(self) -> dict[Signature, list[tuple[int, Sum]]]:
        if self._known is None:
            terms = self._algebra.terms
            trace, terms.trace = terms.trace, None
            try:
                self._known = self._made()
            finally:
                terms.trace = trace
        return self._known

    def _made(self) -> dict[Signature, list[tuple[int, Sum]]]:
        found: dict[Signature, list[tuple[int, Sum]]] = {}
        terms, expansion = self._algebra.terms, Expansion(self._algebra)
        for term in range(self._algebra.horizon):
            if terms.open[term] or not _is_sum(terms.label(term)):
                continue
            if self._algebra.effort <= 0:
                break
            try:
                products = expansion.operand((term, identity(terms.arity[term])))
            except (TooLong, NotAView):
                continue
            alike = found.setdefault(_signature(products), [])
            if products and len(products) <= _MOST_PRODUCTS and len(alike) < _MOST_ALIKE:
                alike.append((term, products))
        return found


def _is_sum(label: tuple[object, ...]) -> bool:
    return label[0] in ("add", "ranged") or label[:2] == ("apply", "multiply")


def _signature(several: Sum) -> Signature:
    """The terms that every product is made of."""
    return tuple(sorted(tuple(term for term, _ in factors) for factors in several))


def _ordered(several: Sum) -> list[tuple[Factors, Region]]:
    """Products in an order that does not depend on where they are read."""
    return sorted(several.items(), key=lambda item: (tuple(term for term, _ in item[0]), repr(item[1])))


def _solved(own: Sum, arity: int, wanted: Sum) -> tuple[Fraction, Access] | None:
    """How many times a polynomial, read where, another one may be."""
    mine, others = _ordered(own), _ordered(wanted)
    often = others[0][1][0][1] / mine[0][1][0][1]
    if any(scale(a, often) != b for (_, a), (_, b) in zip(mine, others, strict=True)):
        mine, others = _by_terms(own), _by_terms(wanted)
        often = others[0][1][0][1] / mine[0][1][0][1]
    found: dict[int, Index] = {}
    pairs = [
        pair
        for (left, _), (right, _) in zip(mine, others, strict=True)
        for (_, a), (_, b) in zip(left, right, strict=True)
        for pair in zip(a, b, strict=True)
    ]
    bound = {v for own_index, index in pairs for v in used((own_index, index)) if v >= BOUND}
    found.update({v: (0, ((v, 1),)) for v in bound})
    for index, there in sorted(pairs, key=lambda pair: len(pair[0][1])):
        fresh = [(v, s) for v, s in index[1] if v not in found]
        if fresh and not solve(found, index, there, fresh):
            return None
    free = [found.get(v) for v in range(arity)]
    access = tuple(index for index in free if index is not None)
    if len(access) < arity or any(v >= BOUND for v in used(access)):
        return None
    return often, access


def _by_terms(several: Sum) -> Sequence[tuple[Factors, Region]]:
    return sorted(several.items(), key=lambda item: tuple(term for term, _ in item[0]))
