"""Sums and products multiplied out, for two tensors that add up the same products in another order.

The gradient of a router goes through the gradient of a softmax on every rank, ``y (g - sum(g y))`` of the rank's own
addend of ``g``. Those add up to the gradient of the sum, which no step on the way shows: only written as sums of
products are the two alike. That form may be long, so it is the last that is tried, and given up beyond a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import cast

from rewright.lifting.algebra import Algebra
from rewright.lifting.index import compose, identity
from rewright.lifting.placed import at_place
from rewright.lifting.regions import single
from rewright.lifting.terms import ONE, Operand
from rewright.lifting.value import Addend

Sum = dict[Operand, Fraction]
"""Coefficients by product."""

_MOST = 512
_DEPTH = 60


class TooLong(Exception):
    """A sum of more products than are looked at."""


def multiplied_out(algebra: Algebra, addends: Sequence[Addend]) -> Sum | None:
    """The sum of the addends, all of them closed, as a sum of products of neither; None where that is too long."""
    expansion = _Expansion(algebra)
    try:
        terms = (((a.term, a.access), a.coefficient) for a in addends)
        return _added((expansion.operand(o), c) for o, c in terms) if all(not a.parts for a in addends) else None
    except TooLong:
        return None


class _Expansion:
    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._terms = algebra.terms
        self._known: dict[int, Sum] = {}

    def operand(self, operand: Operand, depth: int = _DEPTH) -> Sum:
        """An operand as a sum of products."""
        there = at_place(self._terms, operand)
        if (there.term, there.access) != operand:
            return _added([(self.operand((there.term, there.access), depth), there.coefficient)])
        term, access = operand
        if term not in self._known:
            if depth == 0:
                raise TooLong
            self._known[term] = self._term(term, depth - 1)
        return _added([({(t, compose(a, access)): c for (t, a), c in self._known[term].items()}, ONE)])

    def _term(self, term: int, depth: int) -> Sum:
        terms = self._terms
        label, whole = terms.label(term), identity(terms.arity[term])
        if label[0] == "add":
            return _added((self.operand(o, depth), c) for c, o in terms.expand(term, whole))
        if label[:2] == ("apply", "multiply"):
            return self._product(list(zip(terms.children(term), terms.accesses(term), strict=True)), depth)
        if label[0] == "ranged" and terms.label(terms.children(term)[0])[:2] == ("fold", "sum"):
            return self._fold(term, depth)
        return {(term, whole): ONE}

    def _product(self, factors: Sequence[Operand], depth: int) -> Sum:
        found: list[tuple[Fraction, list[Operand]]] = [(ONE, [])]
        for factor in factors:
            several = self.operand(factor, depth)
            if len(found) * len(several) > _MOST:
                raise TooLong
            found = [(c * d, [*before, one]) for c, before in found for one, d in several.items()]
        return _added(self._placed(self._terms.multiply(operands), c) for c, operands in found)

    def _placed(self, operand: Operand, coefficient: Fraction) -> tuple[Sum, Fraction]:
        """A product with what it reads at known places written out."""
        found = at_place(self._terms, operand)
        return {(found.term, found.access): ONE}, coefficient * found.coefficient

    def _fold(self, term: int, depth: int) -> Sum:
        """A sum over a range of a sum, as the sum of sums over that range."""
        terms = self._terms
        hole, region = terms.children(term)[0], terms.region(term)
        (body,), axes = terms.children(hole), cast("tuple[int, ...]", terms.label(hole)[2])
        several = self.operand((body, identity(terms.arity[body])), depth)
        if several == {(body, identity(terms.arity[body])): ONE} or single(region) is None:
            return {(term, identity(terms.arity[term])): ONE}
        folded = [(self._algebra.filler.refold(body, axes, region, Addend(c, *o))) for o, c in several.items()]
        return _added(({(a.term, a.access): ONE}, a.coefficient) for a in folded)


def _added(sums: Iterable[tuple[Sum, Fraction]]) -> Sum:
    total: Sum = {}
    for several, factor in sums:
        for operand, coefficient in several.items():
            total[operand] = total.get(operand, Fraction(0)) + coefficient * factor
        if len(total) > _MOST:
            raise TooLong
    return {operand: c for operand, c in total.items() if c}
