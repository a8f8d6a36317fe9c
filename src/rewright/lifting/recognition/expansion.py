"""Closed terms as sums of products, for tensors that add up the same products in another order.

A *polynomial* is a sum of products of *factors* over ranges of bound variables: sums inside of products and of other
sums are multiplied out, and ranges of one product add up. So a sum over rows of sums over columns, rows that are added
one by one, and sums that were split before they were multiplied are one polynomial. What is no sum and no product is a
factor. A polynomial may be long, so it is the last that is tried, and given up beyond a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product

from rewright.claims.language import Access, Add, Addend, Fold, Guard, Index, Ranged, applies, folds
from rewright.ir.dims import Dim
from rewright.lifting.recognition.placed import at_place
from rewright.lifting.terms.algebra import Algebra
from rewright.lifting.terms.index import build, identity, magnitude, substitute
from rewright.lifting.terms.regions import Box, NotAView, Region, add, is_set, scale, whole
from rewright.lifting.terms.store import ONE, Operand, Terms

Factors = tuple[Operand, ...]
Sum = dict[Factors, Region]
"""Over which values of its bound variables a product is added up, how often."""

Kept = Callable[[int], bool]
"""Which terms stay factors, whatever they are made of."""

BOUND = 1 << 20
"""The first bound variable of a product; the others follow."""

_MOST = 256
_LONGEST, _LONGEST_AT_LAST = 12, 16
"""Products of more factors are not multiplied out; of more where sums are looked for step by step, as a proof of one
step with many products is long."""
_DEPTH = 60


class TooLong(Exception):
    """A sum of more products than are looked at, or of what may be infinite."""


def multiplied_out(algebra: Algebra, addends: Sequence[Addend]) -> Sum | None:
    """The sum of the addends, all of them closed, as a polynomial; None where that is too long."""
    if any(a.parts for a in addends) or algebra.effort.left <= 0:
        return None
    expansion = Expansion(algebra)
    try:
        return expansion.total(((a.term, a.access), a.coefficient) for a in addends)
    except (TooLong, NotAView):
        return None


def nothing(term: int) -> bool:
    """No term at all."""
    return False


class Expansion:
    """Polynomials of terms, each made once, with a bound on their products.

    The terms that ``kept`` says stay factors, whatever they are made of. With ``only``, a polynomial of anything else
    is too long.
    """

    def __init__(self, algebra: Algebra, kept: Kept = nothing, *, most: int = _MOST, only: bool = False) -> None:
        self._algebra = algebra
        self._terms = algebra.terms
        self._kept = kept
        self._most = most
        self._only = only
        self._known: dict[int, Sum] = {}

    def total(self, operands: Iterable[tuple[Operand, Fraction]], depth: int = _DEPTH) -> Sum:
        """The polynomial of a sum of operands; raises TooLong, or NotAView where ranges depend on symbols."""
        parts: list[tuple[Factors, Region]] = []
        for operand, coefficient in operands:
            found = self.operand(operand, depth)
            parts += [(factors, scale(region, coefficient)) for factors, region in found.items()]
            if len(parts) > 2 * self._most:
                raise TooLong
        return self.gather(parts)

    def read(self, several: Sum, access: Access | Mapping[int, Index]) -> Sum:
        """A polynomial with its free variables replaced; raises TooLong and NotAView."""
        return self.gather((tuple(_read(f, access) for f in factors), region) for factors, region in several.items())

    def gather(self, parts: Iterable[tuple[Factors, Region]]) -> Sum:
        """The sum of all parts, each in its form."""
        found: dict[Factors, list[Region]] = {}
        longest = _LONGEST_AT_LAST if self._algebra.forms.products else _LONGEST
        effort = self._algebra.effort
        for factors, region in parts:
            for box, coefficient in region:
                effort.spend(1 + len(factors))
                if len(factors) > longest:
                    raise TooLong
                form, own, often = _form(factors, box)
                found.setdefault(form, []).append(((own, coefficient * often),))
            if len(found) > self._most or effort.left < 0:
                raise TooLong
        added = {factors: add(several) for factors, several in found.items()}
        return {factors: region for factors, region in added.items() if region}

    def operand(self, operand: Operand, depth: int = _DEPTH) -> Sum:
        """The polynomial of an operand; raises TooLong and NotAView."""
        if self._algebra.forms.plain:
            there = at_place(self._terms, operand)
            if (there.term, there.access) != operand:
                return self.total([((there.term, there.access), there.coefficient)], depth)
        term, access = operand
        if term in self._terms.infinite:
            raise TooLong
        if term not in self._known:
            if depth == 0:
                raise TooLong
            self._known[term] = self._term(term, depth - 1)
        known = self._known[term]
        return known if access == identity(self._terms.arity[term]) else self.read(known, access)

    def _term(self, term: int, depth: int) -> Sum:
        terms = self._terms
        label, own = terms.see(term), identity(terms.arity[term])
        if term == terms.one:
            return {(): whole(())}
        if self._kept(term):
            return {((term, own),): whole(())}
        if isinstance(label, Add):
            return self.total([(o, c) for c, o in terms.expand(term, own)], depth)
        if applies(label, "multiply") or applies(label, "identity"):
            return self._product(list(zip(terms.children(term), terms.accesses(term), strict=True)), depth)
        hole = terms.children(term)[0] if isinstance(label, Ranged) else term
        if isinstance(label, Ranged) and folds(terms.see(hole), "sum"):
            return self._fold(term, hole, depth)
        if isinstance(label, Ranged) and isinstance(terms.see(hole), Guard) and is_set(terms.region(term)):
            (value, body), (tested, read) = terms.children(hole), terms.accesses(hole)
            if body != terms.one:
                indicator = self._algebra.guards.indicator((value, tested), terms.region(term))
                scaled = self._product([(indicator.term, indicator.access), (body, read)], depth)
                return {factors: scale(region, indicator.coefficient) for factors, region in scaled.items()}
        if self._only and terms.predicate(term) is None:
            raise TooLong
        return {((term, own),): whole(())}

    def _product(self, operands: Sequence[Operand], depth: int) -> Sum:
        """A product of sums; where that is too long the factors stay as they are."""
        found: Sum = {(): whole(())}
        for operand in operands:
            try:
                several = self.operand(operand, depth)
                if len(found) * len(several) > self._most:
                    raise TooLong
            except TooLong:
                if self._only or operand[0] in self._terms.infinite:
                    raise
                several = self.gather([((operand,), whole(()))])
            found = self.gather(
                _times(left, right) for left, right in product(list(found.items()), list(several.items()))
            )
        return found

    def _fold(self, term: int, hole: int, depth: int) -> Sum:
        """A sum over ranges of some axes of a sum of products."""
        terms = self._terms
        (body,), axes = terms.children(hole), terms.axes(hole)
        left = [axis for axis in range(terms.arity[body]) if axis not in axes]
        moved = {axis: BOUND + k for k, axis in enumerate(axes)} | {axis: k for k, axis in enumerate(left)}
        access: Access = tuple((0, ((moved[axis], 1),)) for axis in range(terms.arity[body]))
        parts: list[tuple[Factors, Region]] = []
        several = self.operand((body, identity(terms.arity[body])), depth)
        for factors, region in several.items():
            inner = tuple(_shifted(f, len(axes)) for f in factors)
            read = tuple((t, tuple(_place(i, access) for i in a)) for t, a in inner)
            boxes = [((*a, *b), c * d) for a, c in terms.region(term) for b, d in region]
            parts.append((read, tuple(boxes)))
        return self.gather(parts)


def is_sum(terms: Terms, term: int) -> bool:
    """Whether a term adds up others, some or over a range."""
    label = terms.label(term)
    return isinstance(label, Add) or (
        isinstance(label, Ranged) and isinstance(terms.label(terms.children(term)[0]), Fold)
    )


def _place(index: Index, access: Access | Mapping[int, Index]) -> Index:
    """An index with its free variables replaced."""
    constant, strides = index
    free = substitute((constant, tuple((v, s) for v, s in strides if v < BOUND)), access)
    return build(free[0], {**dict(free[1]), **{v: s for v, s in strides if v >= BOUND}})


def _read(factor: Operand, access: Access | Mapping[int, Index]) -> Operand:
    """A factor of what is read at an access of other variables than bound ones."""
    return factor[0], tuple(_place(index, access) for index in factor[1])


def _shifted(factor: Operand, by: int) -> Operand:
    """A factor with its bound variables later by some."""
    moved = [(low, tuple((v + by if v >= BOUND else v, s) for v, s in strides)) for low, strides in factor[1]]
    return factor[0], tuple(moved)


def _times(left: tuple[Factors, Region], right: tuple[Factors, Region]) -> tuple[Factors, Region]:
    """The product of two sums of products."""
    by = len(left[1][0][0]) if left[1] else 0
    factors = (*left[0], *(_shifted(f, by) for f in right[0]))
    return factors, tuple([((*a, *b), c * d) for a, c in left[1] for b, d in right[1]])


def _form(factors: Factors, box: Box) -> tuple[Factors, Box, Fraction]:
    """One product with bound variables in the order of their first use, from where they are first read on.

    An index that is a number is a bound variable of one value, so that elements that are added one by one are a range.
    """
    names = _Names(box)
    ordered = sorted(factors, key=_blank)
    read = tuple((term, names.access(access)) for term, access in ordered)
    often = ONE
    for var, (low, high) in enumerate(box):
        if var not in names.places:
            if not isinstance(low, int) or not isinstance(high, int):
                raise TooLong
            often *= high - low
    return read, tuple(names.box), often


@lru_cache(1 << 14)
def _blank(factor: Operand) -> tuple[object, ...]:
    """An order of factors that does not depend on the names of bound variables."""
    term, access = factor
    return term, repr(
        [
            (sorted((v if v < BOUND else BOUND, str(s)) for v, s in strides), "" if _is_bound(strides) else str(low))
            for low, strides in access
        ]
    )


def _is_bound(strides: tuple[tuple[int, Dim], ...]) -> bool:
    return not strides or any(v >= BOUND for v, _ in strides)


class _Names:
    """New names for the bound variables of a product, and their ranges."""

    def __init__(self, box: Box) -> None:
        self._given = box
        self.box: list[tuple[Dim | None, Dim | None]] = []
        self.places: dict[int, int] = {}
        self._shift: dict[int, Dim] = {}
        self._numbers: dict[tuple[str, int], int] = {}

    def access(self, access: Access) -> Access:
        """What a factor reads, by new names."""
        seen: dict[str, int] = {}
        return tuple(self._index(index, seen) for index in access)

    def _index(self, index: Index, seen: dict[str, int]) -> Index:
        constant, strides = index
        if not strides:
            key = str(constant)
            seen[key] = seen.get(key, 0) + 1
            if (key, seen[key]) not in self._numbers:
                self._numbers[key, seen[key]] = len(self.box)
                self.box.append((constant, constant + 1))
            return 0, ((BOUND + self._numbers[key, seen[key]], 1),)
        bound = [(v - BOUND, s) for v, s in strides if v >= BOUND]
        fresh = sorted((item for item in bound if item[0] not in self.places), key=lambda item: magnitude(item[1]))
        for var, stride in bound:
            if var in self.places:
                constant = constant - stride * self._shift[var]
        for var, stride in reversed(fresh):
            shift: Dim = constant if len(fresh) == 1 and stride == 1 else 0
            low, high = self._given[var]
            if low is None or high is None:
                raise TooLong
            self.places[var], self._shift[var] = len(self.box), shift
            self.box.append((low + shift, high + shift))
            constant = constant - shift
        moved = {(v if v < BOUND else BOUND + self.places[v - BOUND]): s for v, s in strides}
        return build(constant, moved)
