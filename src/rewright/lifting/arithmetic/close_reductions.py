"""Closing the folds inside a term once it is known how much of their range has been summed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import cast

from rewright.claims.language import Access, Add, Addend, Apply, Content, Fold, Guard, Ranged, Take, applies
from rewright.ir.dims import Dim
from rewright.lifting.terms.index import compose, identity, rename, variables_in
from rewright.lifting.terms.regions import End, Range, Region, add, covers, single
from rewright.lifting.terms.store import ONE, Named, Operand, Terms
from rewright.lifting.terms.value import Parts

Facts = Callable[[int], Region | None]
"""The set that the values of an integer term are known to lie in, where it is known."""


class FoldCloser:
    """Replaces open folds by ranged ones and rebuilds what is above them, each term once."""

    def __init__(self, terms: Terms, allowed: Facts) -> None:
        self._terms = terms
        self._allowed = allowed
        self._memo: dict[tuple[int, Parts], Addend] = {}

    def forget(self) -> None:
        """Rebuild every term anew from here on."""
        self._memo.clear()

    def close(self, addend: Addend) -> Addend:
        """The addend with the regions of its parts written into its term."""
        if not addend.parts:
            return addend
        with self._terms.over(None):  # what is closed has variables of its own
            inner = self._close_inside(addend.term, addend.parts)
        return Addend(addend.coefficient * inner.coefficient, inner.term, compose(inner.access, addend.access), ())

    def _close_inside(self, term: int, parts: Parts) -> Addend:
        terms = self._terms
        wanted = tuple((hole, region) for hole, region in parts if hole in terms.open[term])
        if not wanted:
            return Addend(ONE, term, identity(terms.arity[term]))
        found = self._memo.get((term, wanted))
        if found is None:
            found = self._memo[term, wanted] = self._rebuild(term, dict(wanted), wanted)
        return found

    def _rebuild(self, term: int, regions: dict[int, Region], parts: Parts) -> Addend:
        terms = self._terms
        if term in regions:
            return self._close_fold(term, regions[term])
        label, children = terms.label(term), terms.children(term)
        if isinstance(label, Ranged):
            return self._rebuild_ranged(term, parts)
        closed = zip([self._close_inside(child, parts) for child in children], terms.accesses(term), strict=True)
        inner = [Addend(child.coefficient, child.term, compose(child.access, access)) for child, access in closed]
        if isinstance(label, Add):
            return terms.remake(term, inner)
        scale = prod((child.coefficient for child in inner), start=ONE)
        return Addend(scale, *self._node(label, [(child.term, child.access) for child in inner]))

    def _node(self, label: Content | Named, operands: list[Operand]) -> Operand:
        terms = self._terms
        if applies(label, "multiply"):
            return terms.multiply(operands)
        if applies(label, "identity"):
            return terms.make(partial(Apply, "identity"), operands)  # a name for how the operand is read
        if isinstance(label, Apply):
            return terms.apply(label.function, operands)
        if isinstance(label, Take):
            return terms.take(operands)
        if isinstance(label, Guard):
            return terms.guard(operands[0], operands[1])
        raise AssertionError(f"no linear term is {label}")

    def _rebuild_ranged(self, term: int, parts: Parts) -> Addend:
        """A closed fold or guard whose body holds an open one."""
        terms = self._terms
        region, hole = terms.region(term), terms.children(term)[0]
        label, children = terms.label(hole), terms.children(hole)
        body = self._close_inside(children[-1], parts)
        if isinstance(label, Guard):
            accesses = terms.accesses(hole)
            value: Operand = (children[0], accesses[0])
            new, access = terms.guard(value, (body.term, compose(body.access, accesses[1])))
            return Addend(body.coefficient, terms.set_range(new, region), access)
        fold = cast("Fold", label)
        kind, axes = fold.kind, fold.axes
        return self._refold(str(kind), children[0], axes, region, body)

    def _refold(self, kind: str, old: int, axes: tuple[int, ...], region: Region, body: Addend) -> Addend:
        """The fold of a body that has taken the place of the term ``old``."""
        terms = self._terms
        occurring = variables_in(body.access)
        if any(axis not in occurring for axis in axes):
            body = self._repeat(kind, axes, region, body)
        if not occurring & set(axes):
            positions = {axis: k for k, axis in enumerate(a for a in range(terms.arity[old]) if a not in axes)}
            return Addend(body.coefficient, body.term, tuple(rename(i, positions) for i in body.access))
        ranges: dict[int, tuple[Dim, Dim]] = {axis: (0, 0) for axis in axes if axis in occurring}
        folded = terms.fold_over(kind, (body.term, body.access), ranges)
        shifts = [(axes.index(var), folded.box[k][0]) for k, var in enumerate(folded.order)]
        moved: Region = tuple(
            (tuple(_shift(box[k], offset) for k, offset in shifts), coefficient) for box, coefficient in region
        )
        left = [axis for axis in range(terms.arity[old]) if axis not in axes]
        positions = {axis: k for k, axis in enumerate(left)}
        hole, moved = terms.flat(folded.hole, add([moved])) if kind == "sum" else (folded.hole, add([moved]))
        return Addend(
            body.coefficient,
            terms.set_range(hole, moved),
            tuple(rename(i, positions) for i in folded.access),
        )

    def _repeat(self, kind: str, axes: tuple[int, ...], region: Region, body: Addend) -> Addend:
        """The body times the lengths of the axes on which it does not depend any more."""
        box = single(region)
        assert kind == "sum" and box is not None
        occurring = variables_in(body.access)
        coefficient, operand = body.coefficient, (body.term, body.access)
        for axis, (low, high) in zip(axes, box, strict=True):
            if axis in occurring:
                continue
            assert low is not None and high is not None
            length = high - low
            if isinstance(length, int):
                coefficient *= length
            else:
                operand = self._terms.multiply([operand, self._terms.size(length)])
        return Addend(coefficient, *operand)

    def _close_fold(self, hole: int, region: Region) -> Addend:
        terms = self._terms
        if isinstance(terms.label(hole), Guard):
            body = self.drop_guard(hole, region)
            if body is not None:
                return body
        return Addend(ONE, terms.set_range(hole, region), identity(terms.arity[hole]))

    def drop_guard(self, hole: int, region: Region) -> Addend | None:
        """The body of a guard whose set holds every value that can occur."""
        terms = self._terms
        value, body = terms.children(hole)
        allowed = self._allowed(value)
        if single(region) == ((None, None),) or (
            allowed is not None and all(covers(region, box) for box, _ in allowed)
        ):
            accesses = terms.accesses(hole)
            access: Access = accesses[1]
            return Addend(ONE, body, access)
        return None


def _shift(ends: Range, offset: End) -> Range:
    low, high = ends
    assert low is not None and high is not None and offset is not None
    return low + offset, high + offset
