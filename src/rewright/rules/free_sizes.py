"""Sizes that must be equal, equations between them, and what the equations leave free.

Every size of a program is a *place*. Operators make places one or relate them by an equation
(:mod:`rewright.rules.size_relations`). What the equations leave open is free; a place for which they leave one number
only keeps the number that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import combinations, count

from rewright.ir.dims import Dim, SizeExpr, product, symbol

Place = int
Term = tuple[int, tuple[Place, ...]]
"""A coefficient and the places whose product it multiplies."""


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
        return replaced(found, self._names)


class Places:
    """The sizes of programs, those that must be equal being one, and the equations between them."""

    def __init__(self) -> None:
        self._values: list[Dim] = []
        self._parents: list[Place] = []
        self._fixed: set[Place] = set()
        self._equations: list[list[Term]] = []

    def new(self, value: Dim) -> Place:
        """A size of its own; 0 and 1 mean something to most operators and are numbers."""
        self._values.append(value)
        self._parents.append(len(self._parents))
        if value in (0, 1):
            self._fixed.add(self._parents[-1])
        return self._parents[-1]

    def fixed(self, value: Dim) -> Place:
        """A size that stays the number or the expression that it is."""
        place = self.new(value)
        self._fixed.add(place)
        return place

    def value(self, place: Place) -> Dim:
        """The size that a place has in the programs as they are."""
        return self._values[place]

    def same(self, first: Place, second: Place) -> None:
        """The two are one size."""
        a, b = self._root(first), self._root(second)
        if a != b:
            self._parents[b] = a
            if b in self._fixed:
                self._fixed.add(a)

    def fix(self, places: Iterable[Place]) -> None:
        """All of these stay what they are."""
        self._fixed.update(self._root(place) for place in places)

    def vanishes(self, *terms: Term) -> None:
        """A sum of products of sizes is nothing."""
        self._equations.append(list(terms))

    def _root(self, place: Place) -> Place:
        while self._parents[place] != place:
            place = self._parents[place]
        return place

    def related(self) -> list[Place]:
        """The places that an equation is about."""
        return [place for terms in self._equations for _, places in terms for place in places]

    def solved(self) -> Solution:
        """Every place as an expression in free sizes."""
        roots = list(dict.fromkeys(map(self._root, range(len(self._parents)))))
        fixed = set(map(self._root, self._fixed))
        known: dict[str, Dim] = {}
        taken = {name for r in fixed if isinstance(v := self._values[r], SizeExpr) for name in v.symbols()}
        own = {root: self._values[root] if root in fixed else symbol(f"place {root}") for root in roots}
        values = {str(own[root]): self._values[root] for root in roots if root not in fixed}

        def now(place: Place) -> Dim:
            return replaced(own[self._root(place)], known)

        for terms in self._equations:
            rest: Dim = 0
            for coefficient, places in terms:
                rest = rest + coefficient * product(map(now, places))
            _eliminate(rest, values, known)
        return Solution(now, values, taken)


def _eliminate(rest: Dim, values: Mapping[str, Dim], known: dict[str, Dim]) -> None:
    """Make an expression vanish: by what one size is of others, else by numbers in place of as few as possible."""
    while isinstance(rest, SizeExpr):
        found = _pivot(rest, values) or _specialised(rest, values)
        assert found, "sizes that stay what they are satisfy every equation"
        for name in known:
            known[name] = replaced(known[name], found)
        known.update(found)
        rest = replaced(rest, found)


def _pivot(rest: SizeExpr, values: Mapping[str, Dim]) -> dict[str, Dim] | None:
    """A size that the others give, without a difference, so that it is at least one whatever they are."""
    for monomial, coefficient in rest.terms:
        name = monomial[0] if len(monomial) == 1 else ""
        alone = sum(name in other for other, _ in rest.terms) == 1
        if name in values and abs(coefficient) == 1 and alone:
            solution = symbol(name) - rest * coefficient
            terms = solution.terms if isinstance(solution, SizeExpr) else (((), solution),)
            if all(c > 0 for _, c in terms):
                return {name: solution}
    return None


def _specialised(rest: SizeExpr, values: Mapping[str, Dim]) -> dict[str, Dim]:
    """Numbers for few sizes, or two sizes made one, with which an expression vanishes; else numbers for all of them."""
    names = sorted((n for n in rest.symbols() if n in values), key=lambda n: (str(values[n]), n))
    for name in names:
        if replaced(rest, {name: values[name]}) == 0:
            return {name: values[name]}
    for first, second in combinations(names, 2):
        if values[first] == values[second] and replaced(rest, {second: symbol(first)}) == 0:
            return {second: symbol(first)}
    return {name: values[name] for name in names}


def replaced(size: Dim, known: Mapping[str, Dim]) -> Dim:
    """A size with expressions in place of some of its symbols."""
    if not isinstance(size, SizeExpr) or not any(name in known for name in size.symbols()):
        return size
    total: Dim = 0
    for monomial, coefficient in size.terms:
        total = total + coefficient * product(known.get(name, symbol(name)) for name in monomial)
    return total
