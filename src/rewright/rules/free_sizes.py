"""Sizes that must be equal, equations between them, and what the equations leave free.

Every size of a program is a *place*. Operators say which places are one and relate others by an equation
(:mod:`rewright.ops.sizes`). What the equations leave open is free; a place for which they leave one number only keeps
the number that it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, count
from math import gcd
from typing import Any, cast

from rewright import ops
from rewright.ir.dims import Dim, SizeExpr, divide, product, symbol
from rewright.ir.graph import Graph
from rewright.ir.union_find import UnionFind
from rewright.ops.base import TensorOperator
from rewright.ops.sizes import Attributes, Axes, Sizes

Place = int
Term = tuple[int, tuple[Place, ...]]
"""A coefficient and the places whose product it multiplies."""


@dataclass(frozen=True)
class Shifted:
    """An attribute that is a place plus a number."""

    place: Place
    offset: int = 0


@dataclass(frozen=True)
class Sized:
    """One node: the places of its result, and its attributes that are sizes."""

    result: tuple[Place, ...]
    attributes: Attributes = field(default_factory=dict[str, Any])


class Solution:
    """What places are in free sizes, which are named in the order in which they are asked for."""

    def __init__(self, now: Callable[[Place], Dim], values: Mapping[str, Dim], taken: Collection[str]) -> None:
        self._now, self._values = now, values
        self._fresh = (name for k in count() if (name := f"n{k}") not in taken)
        self._names: dict[str, Dim] = {}
        self.example: dict[str, Dim] = {}
        """The free sizes in the programs as they are."""

    def size(self, place: Place) -> Dim:
        """A place as an expression in free sizes."""
        found = self._now(place)
        for name in sorted(found.symbols()) if isinstance(found, SizeExpr) else ():
            if name in self._values and name not in self._names:
                new = next(self._fresh)
                self._names[name], self.example[new] = symbol(new), self._values[name]
        return substitute(found, self._names)


class Places:
    """The sizes of programs, those that must be equal being one, and the equations between them."""

    def __init__(self) -> None:
        self._values: list[Dim] = []
        self._classes = UnionFind[Place]()
        self._fixed: set[Place] = set()
        self._equations: list[list[Term]] = []
        self._cuts: dict[tuple[Place, Dim], Place] = {}
        self._parts: dict[tuple[Place, Dim, Dim], Place] = {}

    def new(self, value: Dim) -> Place:
        """A size of its own; 0 and 1 mean something to most operators and are numbers."""
        place = len(self._values)
        self._values.append(value)
        if value in (0, 1):
            self._fixed.add(place)
        return place

    def constant(self, value: Dim) -> Place:
        """A size that stays the number or the expression that it is."""
        place = self.new(value)
        self._fixed.add(place)
        return place

    def value(self, place: Place) -> Dim:
        """The size that a place has in the programs as they are."""
        return self._values[place]

    def same(self, first: Place, second: Place) -> None:
        """The two are one size."""
        a, b = self._classes.find(first), self._classes.find(second)
        if a != b:
            self._classes.union(a, b)
            if b in self._fixed:
                self._fixed.add(a)

    def fix(self, places: Iterable[Place]) -> None:
        """All of these stay what they are."""
        self._fixed.update(self._classes.find(place) for place in places)

    def vanishes(self, *terms: Term) -> None:
        """A sum of products of sizes is nothing."""
        self._equations.append(list(terms))

    def whole(self, size: Place) -> Shifted:
        """An attribute that is a size."""
        return Shifted(size)

    def regroup(self, before: Axes, after: Axes) -> None:
        """Runs of axes with equal products, as short as possible; one axis that stays is one size."""
        while before and after:
            ends = (
                (i, j)
                for total in range(2, len(before) + len(after) + 1)
                for i in range(max(1, total - len(after)), min(len(before), total - 1) + 1)
                for j in [total - i]
                if product(map(self.value, before[:i])) == product(map(self.value, after[:j]))
            )
            i, j = next(ends, (len(before), len(after)))
            first, second = ([p for p in run if self.value(p) != 1] for run in (before[:i], after[:j]))
            if len(first) == len(second) == 1:
                self.same(first[0], second[0])
            else:
                self.vanishes((1, tuple(first)), (-1, tuple(second)))
            before, after = before[i:], after[j:]

    def slice(self, result: Place, source: Place, low: Dim, high: Dim, step: int) -> tuple[Shifted, Shifted]:
        """What is cut at one number is cut at one position at all sizes."""
        size, all_ = self.value(result), self.value(source)
        limit = self._cut(source, high)
        if step == 1:
            if size == all_:
                self.same(source, result)
            else:
                self._part(source, low, high, result)
            return Shifted(self._cut(source, low)), Shifted(limit)
        if high == all_ and all_ == step * size:
            self.vanishes((1, (source,)), (-step, (result,)))
        else:
            self.fix((source, limit, result))
        return Shifted(self.constant(low)), Shifted(limit)

    def pad(self, result: Place, source: Place, low: Dim, high: Dim) -> tuple[Shifted, Shifted]:
        """What is added is free; what is taken away stays a number."""
        ends = [self.new(n) if isinstance(n, int) and n > 0 else self.constant(n) for n in (low, high)]
        if low == high == 0:
            self.same(source, result)
        self.vanishes((1, (result,)), (-1, (source,)), (-1, (ends[0],)), (-1, (ends[1],)))
        return Shifted(ends[0]), Shifted(ends[1])

    def join(self, result: Place, parts: Axes) -> None:
        """Each part lies between two positions."""
        low: Dim = 0
        for part in parts:
            high = low + self.value(part)
            if high != low:
                self._part(result, low, high, part)
            low = high

    def divide(self, source: Place, lengths: Iterable[Dim]) -> tuple[Dim, ...]:
        """Where the parts of an axis are numbers, so is the axis."""
        self.fix((source,))
        return tuple(lengths)

    def slide(self, result: Place, source: Place, width: Dim, low: Dim, high: Dim) -> tuple[Any, Any, Any]:
        """A window over one element, or over all elements up to one or from one on, leaves the size free."""
        size = self.value(source)
        if width == 1 and low == high == 0:
            self.same(source, result)
            return 1, 0, 0
        if width == size and sorted(map(str, (low, high))) == sorted(("0", str(size - 1))):
            self.same(source, result)
            before = Shifted(source, -1)
            return (Shifted(source), 0, before) if low == 0 else (Shifted(source), before, 0)
        self.fix((source, result))
        return width, low, high

    def part(self, part: Place, source: Place) -> None:
        """All of the axis, where it is as much in the programs as they are."""
        if self.value(part) == self.value(source):
            self.same(source, part)

    def chosen(self, count: Place, source: Place) -> None:
        """The same."""
        self.part(count, source)

    def _cut(self, whole: Place, at: Dim) -> Place:
        """A position on an axis; what is cut at one number is cut at one position at all sizes."""
        if at in (0, self.value(whole)):
            return whole if at else self.constant(0)
        known = self._known(self._cuts, whole, at)
        if known is None:
            known = self._cuts[whole, at] = self.new(at)
        return known

    def _part(self, whole: Place, low: Dim, high: Dim, own: Place) -> None:
        """A place is the size of what lies between two positions on an axis."""
        known = self._known(self._parts, whole, low, high)
        if known is None:
            self._parts[whole, low, high] = own
            self.vanishes((1, (self._cut(whole, high),)), (-1, (self._cut(whole, low),)), (-1, (own,)))
        else:
            self.same(known, own)

    def _known(self, places: Mapping[tuple[Any, ...], Place], whole: Place, *where: Dim) -> Place | None:
        root = self._classes.find(whole)
        found = (p for (axis, *other), p in places.items() if other == [*where] and self._classes.find(axis) == root)
        return next(found, None)

    def related(self) -> list[list[Place]]:
        """The places of every equation that leaves a choice."""
        found = [{self._classes.find(place) for _, places in terms for place in places} for terms in self._equations]
        return [
            sorted(places) for places in found if not places <= {self._classes.find(place) for place in self._fixed}
        ]

    def solved(self) -> Solution:
        """Every place as an expression in free sizes."""
        roots = list(dict.fromkeys(map(self._classes.find, range(len(self._values)))))
        fixed = set(map(self._classes.find, self._fixed))
        known: dict[str, Dim] = {}
        taken = {name for r in fixed if isinstance(v := self._values[r], SizeExpr) for name in v.symbols()}
        own = {root: self._values[root] if root in fixed else symbol(f"place {root}") for root in roots}
        values = {str(own[root]): self._values[root] for root in roots if root not in fixed}

        def now(place: Place) -> Dim:
            return substitute(own[self._classes.find(place)], known)

        def left(terms: list[Term]) -> Dim:
            rest: Dim = 0
            for coefficient, places in terms:
                rest = rest + coefficient * product(map(now, places))
            return _reduce(rest)

        waiting = self._equations
        while waiting := [terms for terms in waiting if isinstance(left(terms), SizeExpr)]:
            found = next((p for terms in waiting if (p := _pivot(left(terms), values))), None)
            found = found or _specialise(left(waiting[0]), values)
            for name in known:
                known[name] = substitute(known[name], found)
            known.update(found)
        return Solution(now, values, taken)


def places_of(graph: Graph, places: Places, inputs: dict[str, tuple[Place, ...]]) -> list[Sized]:
    """The places of every node of a program; inputs of one name are one tensor, also over several programs."""
    found: list[Sized] = []
    sizes: Sizes = places
    for node in graph.nodes:
        own = tuple(map(places.new, node.type.shape))
        if isinstance(node.op, ops.Input):
            own = inputs.setdefault(node.op.label, own)
        related = cast(TensorOperator, node.op).relate_sizes(sizes, [found[p].result for p in node.operands], own)
        found.append(Sized(own, related))
    return found


def _reduce(rest: Dim) -> Dim:
    """An expression without the factors that all its terms have; sizes are no zeros."""
    if not isinstance(rest, SizeExpr):
        return rest
    common = Counter(rest.terms[0][0])
    for monomial, _ in rest.terms:
        common &= Counter(monomial)
    factor = gcd(*(c for _, c in rest.terms)) * product(symbol(name) for name in common.elements())
    found = divide(rest, factor)
    return rest if found is None else found


def _pivot(rest: Dim, values: Mapping[str, Dim]) -> dict[str, Dim] | None:
    """A size that the others give, without a difference, so that it is at least one whatever they are."""
    if not isinstance(rest, SizeExpr):
        return None
    for monomial, coefficient in rest.terms:
        name = monomial[0] if len(monomial) == 1 else ""
        alone = sum(name in other for other, _ in rest.terms) == 1
        if name in values and abs(coefficient) == 1 and alone:
            solution = symbol(name) - rest * coefficient
            terms = solution.terms if isinstance(solution, SizeExpr) else (((), solution),)
            if all(c > 0 for _, c in terms):
                return {name: solution}
    return None


def _specialise(rest: Dim, values: Mapping[str, Dim]) -> dict[str, Dim]:
    """The number that one size is, or two equal sizes made one: nothing is left then, one size follows, or least is."""
    symbols = rest.symbols() if isinstance(rest, SizeExpr) else ()
    names = sorted((name for name in symbols if name in values), key=_number)
    assert names, "sizes that stay what they are satisfy every equation"
    numbers: list[dict[str, Dim]] = [{name: values[name]} for name in sorted(names, key=lambda n: str(values[n]))]
    pairs: list[dict[str, Dim]] = [{b: symbol(a)} for a, b in combinations(names, 2) if values[a] == values[b]]
    for found in (*numbers, *pairs):
        if substitute(rest, found) == 0:
            return found
    for found in (*numbers, *pairs):
        if _pivot(_reduce(substitute(rest, found)), values):
            return found
    return min(pairs, key=lambda pair: _terms(substitute(rest, pair)), default={name: values[name] for name in names})


def _terms(size: Dim) -> int:
    return len(size.terms) if isinstance(size, SizeExpr) else 1


def _number(name: str) -> int:
    return int(name.rpartition(" ")[2])


def substitute(size: Dim, known: Mapping[str, Dim]) -> Dim:
    """A size with expressions in place of some of its symbols."""
    if not isinstance(size, SizeExpr) or not any(name in known for name in size.symbols()):
        return size
    total: Dim = 0
    for monomial, coefficient in size.terms:
        total = total + coefficient * product(known.get(name, symbol(name)) for name in monomial)
    return total
