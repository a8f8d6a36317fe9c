"""A rank's sum as the one of the sequential program that adds up the same products in another order.

What a rank applies a function to must be a term of the sequential program, or nothing behind the function is related.
Where the sum that it applies one to was made in other steps (rows added one by one before they are summed, or summed
before they are multiplied), the polynomials of both are equal. Those of sequential sums of the same terms are made and
compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby, islice, permutations, product
from typing import TYPE_CHECKING, cast

from rewright.claims.language import Access, Add, Addend, Content, Guard, Index, Ranged, View, applies, folds
from rewright.ir.dims import Dim
from rewright.lifting.masks.positions import factors_of
from rewright.lifting.recognition.equal_steps import equal_steps, stepping
from rewright.lifting.recognition.expansion import BOUND, Expansion, Factors, Kept, Sum, TooLong, is_sum, nothing
from rewright.lifting.recognition.instances import solve
from rewright.lifting.terms.algebra import EFFORT, Algebra, Effort
from rewright.lifting.terms.index import at_zero, compose, identity, variables_in
from rewright.lifting.terms.regions import NotAView, Region, scale, whole
from rewright.lifting.terms.store import Named
from rewright.lifting.terms.value import Pieces, Value

if TYPE_CHECKING:
    from rewright.lifting.terms.store import Label

_MOST_ALIKE, _HIGHEST = 64, 12
"""Sequential terms above one that are looked at, and how far above."""

_MOST_ORDERS = 24
"""Orders of products of the same terms that are tried."""

_TIMES = 4
"""How many times as many products a sequential sum may have on the way to those of a rank's."""

_MOST_PRODUCTS = 64
"""A sum of more products is not looked for."""

Signature = tuple[tuple[int, ...], ...]


class Recogniser:
    """Sums of the sequential program by the products that they are made of."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._sequential = Expansion(algebra)
        self._known: dict[int, Sum | None] = {}
        self._users: dict[int, list[int]] | None = None
        self._left = Effort(EFFORT)
        """How many factors may still be looked at for sums that stand alone, which takes few: what is behind them is
        much."""
        self.forget()

    def forget(self) -> None:
        """Expand every term anew from here on."""
        algebra = self._algebra
        self._expansion = Expansion(algebra)
        self._by_parts = Expansion(algebra, self._is_sequential)
        self._asked: dict[tuple[int, Access | None], Addend | None] = {}
        self._sums: dict[int, Addend | None] = {}
        """What sums are that stood alone in a step."""

    def recognise(self, addend: Addend) -> Addend | None:
        """The same tensor as a term of the sequential program; None where it is none or cannot be told."""
        ones = {v for v, n in enumerate(self._algebra.terms.window or ()) if n == 1}
        for access in dict.fromkeys((addend.access, at_zero(addend.access, ones))):
            found = self._found(addend.term, access)
            if found is not None:
                self._algebra.count_use("products")
                return Addend(found.coefficient * addend.coefficient, found.term, found.access)
        return None

    def recognise_parts(self, value: Value) -> Value:
        """What members of a group added up, with every closed part that the sequential program has as that."""
        if isinstance(value, Pieces):
            return Pieces(value.axis, value.outer, tuple(self.recognise_parts(part) for part in value.parts))
        if any(a.term >= self._algebra.horizon for a in value.addends if a.parts):
            value = self._closed(value) or value
        closed = [a for a in value.addends if not a.parts and a.term != self._algebra.terms.one]
        if len(closed) != 1 or closed[0].term < self._algebra.horizon:
            return value
        with self._algebra.over(value.dims):
            found = self.recognise(closed[0])
        if found is None:
            return value
        return View(value.dims, tuple(found if a is closed[0] else a for a in value.addends))

    def recognise_sums(self, value: Value) -> Value:
        """Sums of products of the sequential program's terms as its sums, where it has such of the same products.

        Attention that is mended block by block sums ``dO O`` over the width for the gradient of its softmax, where the
        sequential program sums ``P dP`` over the keys.
        """
        if isinstance(value, Pieces):
            return Pieces(value.axis, value.outer, tuple(self.recognise_sums(part) for part in value.parts))
        if self._algebra.sequential or self._algebra.is_familiar(value):
            return value
        found = [self._sum(value, addend) for addend in value.addends]
        return value if found == list(value.addends) else self._algebra.settle(value.dims, found)

    def _sum(self, value: View, addend: Addend) -> Addend:
        """An addend with an open sum of familiar terms, alone or as a factor, as what the sequential program sums."""
        terms, horizon = self._algebra.terms, self._algebra.horizon
        if len(addend.parts) != 1 or terms.parts_kind(addend.parts) != "sum":
            return addend
        factors = factors_of(terms, (addend.term, addend.access))
        ((hole, region),) = addend.parts
        sums = [(term, access) for term, access in factors if term == hole]
        (body,) = terms.children(hole)[-1:]
        inside = factors_of(terms, (body, identity(terms.arity[body])))
        if len(sums) != 1 or hole < horizon or any(term >= horizon for term, _ in inside):
            return addend
        closed = terms.set_range(hole, region)
        if closed not in self._sums:
            with self._algebra.over(None):  # wherever it is read
                self._sums[closed] = self._reorder(closed, [term for term, _ in inside])
        found = self._sums[closed]
        if found is None:
            return addend
        rest = [factor for factor in factors if factor[0] != hole]
        with self._algebra.over(value.dims):
            product = terms.multiply([*rest, (found.term, compose(found.access, sums[0][1]))])
        return Addend(addend.coefficient * found.coefficient, *product)

    def _reorder(self, term: int, factors: Sequence[int]) -> Addend | None:
        """A sum of products of sums, one of which is taken apart, as the sequential program's in another order.

        All that is no sum of these two stays what it is, however it is computed.
        """
        terms = self._algebra.terms
        with self._algebra.spending(self._left):
            for factor in dict.fromkeys(factors):

                def stays(other: int, factor: int = factor) -> bool:
                    return other not in (term, factor) and is_sum(terms, other)

                found = self._made_of(Expansion(self._algebra, stays), stays, term, identity(terms.arity[term]))
                if found is not None:
                    self._algebra.count_use("products")
                    return found
        return None

    def _closed(self, value: View) -> View | None:
        """A sum with its folds closed, as the sequential program's; None where it is none of these."""
        dims, close = value.dims, self._algebra.folds.close
        whole = self._algebra.settle(dims, [close(a) for a in value.addends])
        if len(whole.addends) != 1:
            return None
        with self._algebra.over(dims):
            found = self.recognise(close(whole.addends[0]))  # which a sum may have opened again
        return None if found is None else View(dims, (found,))

    def _found(self, term: int, access: Access) -> Addend | None:
        """What a term is, wherever it is read; else what it is there, where that is less."""
        own = identity(self._algebra.terms.arity[term])
        if (term, None) not in self._asked:
            with self._algebra.over(None):
                self._asked[term, None] = self._sought(term, own)
        found = self._asked[term, None]
        if found is not None:
            return replace(found, access=compose(found.access, access))
        if (term, access) not in self._asked:
            self._asked[term, access] = self._sought(term, access)
        return self._asked[term, access]

    def _sought(self, term: int, access: Access) -> Addend | None:
        """First by what the rank itself reads of the sequential program, then with everything multiplied out."""
        found = self._made_of(self._by_parts, self._is_sequential, term, access)
        return found or self._made_of(self._expansion, None, term, access)

    def _is_sequential(self, term: int) -> bool:
        return term < self._algebra.horizon

    def _made_of(self, expansion: Expansion, kept: Kept | None, term: int, access: Access) -> Addend | None:
        """The sequential sum of the products that a term is made of, of which some stay; of all, without ``kept``."""
        terms = self._algebra.terms
        there: Kept = nothing
        with terms.traced(None) as trace:  # what is looked into in vain is no part of a step
            wanted = self._polynomial(expansion, term, access)
            other = self._sequential
            if wanted is not None and kept is not None:
                there = frozenset(factor for product in wanted for factor, _ in product).__contains__
                other = Expansion(self._algebra, there, most=_TIMES * len(wanted), only=True)
            found = None if wanted is None else self._among(wanted, other)
        if found is not None and trace is not None:
            for number, stays in ((term, kept or nothing), (found.term, there)):
                Expansion(self._algebra, stays).operand((number, identity(terms.arity[number])))
        return found

    def _polynomial(self, expansion: Expansion, term: int, access: Access) -> Sum | None:
        """What a term is made of; None where that is nothing, or too much to look for."""
        if self._algebra.effort.left <= 0:
            return None
        try:
            own = identity(self._algebra.terms.arity[term])
            read = expansion.read(expansion.operand((term, own)), access)
            return self._normal(read) if 0 < len(read) <= _MOST_PRODUCTS else None
        except (TooLong, NotAView):
            return None

    def _among(self, wanted: Sum, expansion: Expansion) -> Addend | None:
        """The sequential term that a polynomial is a multiple of."""
        terms = self._algebra.terms
        for other in self._candidates(wanted):
            products = self._products(other, expansion)
            try:
                mine = self._normal(products) if products else None
                if not mine or _signature(mine) != _signature(wanted):
                    continue
                found = self._instance(mine, terms.arity[other], wanted)
            except (TooLong, NotAView):
                continue
            if found is not None:
                return Addend(found[0], other, found[1])
        return None

    def _instance(self, own: Sum, arity: int, wanted: Sum) -> tuple[Fraction, Access] | None:
        """How many times a polynomial, read where, another one is."""
        for found in _solve(own, arity, wanted):
            there = self._normal(self._expansion.read(own, found[1]))
            if {f: scale(r, found[0]) for f, r in there.items()} == wanted:
                return found
        return None

    def _normal(self, several: Sum) -> Sum:
        """A polynomial in a form that does not depend on where ranges begin and on who summed which step of them."""
        based = _from_zero(several)
        stepped = _in_steps(based)
        return based if len(stepped) == len(based) else _from_zero(self._expansion.gather(stepped))

    def _candidates(self, wanted: Sum) -> Iterator[int]:
        """Sequential sums of products of one of the terms that a polynomial is made of, those next to it first."""
        terms = self._algebra.terms
        factors = {term for product in wanted for term, _ in product}
        # An indicator may be a factor here that is a guard there, where no product is made of it.
        others = {term for term in factors if terms.predicate(term) is None}
        seen = set[int]()
        for several in (others, factors - others):
            layer, near = [max(several)] if several else [], set[int]()
            for _ in range(_HIGHEST):
                layer = [user for term in layer for user in self._above().get(term, ()) if user not in near]
                near.update(layer)
                if len(near) > _MOST_ALIKE:
                    break
                fresh = [term for term in dict.fromkeys(layer) if term not in seen]
                seen.update(fresh)
                yield from (term for term in fresh if not terms.open[term] and _is_sum(terms.label(term)))

    def _above(self) -> dict[int, list[int]]:
        """The sequential sums, products and guards that read a term."""
        if self._users is None:
            self._users = {}
            for term in range(self._algebra.horizon):
                label, children = self._algebra.terms.graph.node(term)
                if _is_linear(cast("Label", label).content):
                    for child in dict.fromkeys(children):
                        self._users.setdefault(child, []).append(term)
        return self._users

    def _products(self, term: int, expansion: Expansion) -> Sum | None:
        """The polynomial of a sequential term; None where that is too long, or too much to look for."""
        if expansion is not self._sequential or term not in self._known:
            try:
                found = expansion.operand((term, identity(self._algebra.terms.arity[term])))
            except (TooLong, NotAView):
                found = None
            if expansion is not self._sequential:
                return found
            self._known[term] = found
        return self._known[term]


def _is_sum(label: Content | Named) -> bool:
    return isinstance(label, Add | Ranged) or applies(label, "multiply")


def _is_linear(label: Content | Named) -> bool:
    return _is_sum(label) or folds(label, "sum") or applies(label, "identity") or isinstance(label, Guard)


def _signature(several: Sum) -> Signature:
    """The terms that every product is made of."""
    return tuple(sorted(tuple(term for term, _ in factors) for factors in several))


def _from_zero(several: Sum) -> Sum:
    """A polynomial with every product that is summed over one box summed from zero on.

    A rank's share of a range begins elsewhere than the range does that the model sums over.
    """
    found: Sum = {}
    for factors, region in several.items():
        if len(region) == 1 and any(low for low, _ in region[0][0]):
            ((box, often),) = region
            starts = {BOUND + k: low for k, (low, _) in enumerate(box) if low is not None}
            lengths = [high - low for low, high in box if low is not None and high is not None]
            if len(lengths) < len(box):
                return several
            region = scale(whole(tuple((0, length) for length in lengths)), often)
            factors = tuple((term, tuple(_move(index, starts) for index in access)) for term, access in factors)
        if factors in found:
            return several
        found[factors] = region
    return found


def _in_steps(several: Sum) -> list[tuple[Factors, Region]]:
    """Products that differ in where they are read alone, in equal steps, as one product that is summed over these.

    Ranks that hold one head each add up the gradients of what these heads share, which the model sums over heads.
    """
    alike: dict[object, list[Factors]] = {}
    for factors, region in several.items():
        strides = tuple((term, tuple(index[1] for index in access)) for term, access in factors)
        alike.setdefault((strides, region), []).append(factors)
    found: list[tuple[Factors, Region]] = []
    for group in alike.values():
        region = several[group[0]]
        step = equal_steps([tuple(low for _, access in factors for low, _ in access) for factors in group])
        if step is None or len(region) != 1:
            found += [(factors, several[factors]) for factors in group]
            continue
        ((box, often),) = region
        (first, by), fresh = step, BOUND + len(box)
        places = iter(zip(first, by, strict=True))
        factors = tuple(
            (term, tuple(stepping(index, *next(places), fresh) for index in access)) for term, access in group[0]
        )
        found.append((factors, scale(whole((*box, (0, len(group)))), often)))
    return found


def _move(index: Index, starts: Mapping[int, Dim]) -> Index:
    """An index whose bound variables begin at zero."""
    return index[0] + sum((starts[v] * s for v, s in index[1] if v in starts), start=cast(Dim, 0)), index[1]


def _order(several: Sum) -> list[tuple[Factors, Region]]:
    """Products in an order that does not depend on where they are read."""
    return sorted(several.items(), key=lambda item: (tuple(term for term, _ in item[0]), repr(item[1])))


def _solve(own: Sum, arity: int, wanted: Sum) -> Iterator[tuple[Fraction, Access]]:
    """How many times a polynomial, read where, another one may be.

    Products of the same terms, such as what a mask chooses by rows and by columns, are paired in every order.
    """
    mine, others = _order(own), _order(wanted)
    often = others[0][1][0][1] / mine[0][1][0][1]
    if any(scale(a, often) != b for (_, a), (_, b) in zip(mine, others, strict=True)):
        mine, others = _by_terms(own), _by_terms(wanted)
        often = others[0][1][0][1] / mine[0][1][0][1]
    alike = [list(group) for _, group in groupby(others, key=lambda item: tuple(term for term, _ in item[0]))]
    for order in islice(product(*(islice(permutations(group), _MOST_ORDERS) for group in alike)), _MOST_ORDERS):
        access = _read(mine, arity, [item for group in order for item in group])
        if access is not None:
            yield often, access


def _read(
    mine: Sequence[tuple[Factors, Region]], arity: int, others: Sequence[tuple[Factors, Region]]
) -> Access | None:
    """Where products are read so that each of them is another one."""
    found: dict[int, Index] = {}
    pairs = [
        (index, _plain(there, region))
        for (left, _), (right, region) in zip(mine, others, strict=True)
        for (_, a), (_, b) in zip(left, right, strict=True)
        for index, there in zip(a, b, strict=True)
    ]
    for index, there in sorted(pairs, key=lambda pair: len(pair[0][1])):
        fresh = [(v, s) for v, s in index[1] if v not in found]
        if fresh and all(v >= BOUND for v, _ in index[1]):
            found.update({v: (0, ((v, 1),)) for v, _ in fresh} if len(fresh) > 1 else {fresh[0][0]: there})
        elif fresh and not solve(found, index, there, fresh):
            return None
    free = [found.get(v) for v in range(arity)]
    access = tuple(index for index in free if index is not None)
    return None if len(access) < arity or any(v >= BOUND for v in variables_in(access)) else access


def _plain(index: Index, region: Region) -> Index:
    """An index that has one value over a region as that number."""
    if len(index[1]) != 1 or index[1][0][0] < BOUND or index[1][0][1] != 1:
        return index
    values = {box[index[1][0][0] - BOUND] for box, _ in region}
    low, high = values.pop()
    single = not values and low is not None and high is not None and high - low == 1
    return (index[0] + low, ()) if single and low is not None else index


def _by_terms(several: Sum) -> Sequence[tuple[Factors, Region]]:
    return sorted(several.items(), key=lambda item: tuple(term for term, _ in item[0]))
