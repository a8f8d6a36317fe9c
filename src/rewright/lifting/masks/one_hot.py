"""Indicators that an index equals a position: summed over the position they read at the index."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from rewright.claims.language import Access, Addend, View
from rewright.ir.dims import Dim
from rewright.lifting.masks.nested_guards import take
from rewright.lifting.terms import regions
from rewright.lifting.terms.index import variables_in
from rewright.lifting.terms.regions import single
from rewright.lifting.terms.store import ONE, Operand

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra


def collapse(algebra: Algebra, addend: Addend, var: int, length: Dim, lengths: Sequence[Dim]) -> list[Addend] | None:
    """``sum over v in [0, length) of [t = v] * body(v)`` as ``body(t) where t in [0, length)``, else None."""
    guard = algebra.guards.guard_of(addend)
    if guard is None or not isinstance(length, int):
        return None
    value, region, body = guard
    point = single(region)
    if point is None or point[0][0] is None or point[0][1] != point[0][0] + 1:
        return None
    position = _solve(algebra, value, var, point[0][0])
    if position is None:
        return None
    constant, scale, term = algebra.integer(View((), tuple(position)))
    if term is None:
        return None
    window = regions.preimage(regions.intervals(0, length), scale, constant)
    index = algebra.close(View((), tuple(position)))
    replaced = tuple(_at_index(i, var) for i in body.access)
    read = take(algebra.terms, Addend(body.coefficient, body.term, replaced, body.parts), [index])
    tested = algebra.facts.name_operand(term, lengths)
    return [algebra.guards.guard(tested, window, a) for a in read]


def _at_index(index: tuple[Dim, tuple[tuple[int, Dim], ...]], var: int) -> tuple[Dim, tuple[tuple[int, Dim], ...]]:
    constant, strides = index
    return constant, tuple(sorted((-1 if v == var else v, s) for v, s in strides))


def _solve(algebra: Algebra, value: Operand, var: int, wanted: Dim) -> list[Addend] | None:
    """The position v at which ``value = wanted``, where value is an index along v plus what does not depend on v."""
    terms = algebra.terms
    found: Fraction | None = None
    offset: Dim = 0
    rest: list[tuple[Fraction, int, Access]] = []
    for factor, (term, access) in terms.expand(*value):
        if var not in variables_in(access):
            rest.append((factor, term, access))
            continue
        if term != terms.index or found is not None or access[0][1] != ((var, 1),) or abs(factor) != 1:
            return None
        found, offset = factor, access[0][0]
    if found is None or not rest or not isinstance(wanted, int) or not isinstance(offset, int):
        return None
    addends = [Addend(-factor * found, term, access) for factor, term, access in rest]
    constant = wanted * found - offset
    return [*addends, Addend(constant * ONE, terms.one, ())] if constant else addends
