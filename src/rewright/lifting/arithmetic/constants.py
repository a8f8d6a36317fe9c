"""Sums of constants that are known entry by entry, as of what each rank counted: the one constant that they come to."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite

from rewright.claims.language import Access, Addend, Table
from rewright.lifting.terms.store import ONE, Terms

_MOST = 4_096
"""Entries of a table that is added up."""


def add_tables(terms: Terms, addends: Sequence[Addend]) -> list[Addend]:
    """A sum of addends with tables, and what is constant beside them, as one constant of the sequential program.

    They are read at the same places. Without such a constant the addends are as they were.
    """
    tables = [a for a in addends if _entries(terms, a)]
    if not tables or len(addends) < 2:
        return list(addends)
    access, shape = tables[0].access, _shape(terms, tables[0])
    own = [a for a in addends if _is_constant_beside(terms, a, access, shape)]
    if len(own) < 2:
        return list(addends)
    sums = [Fraction(0)] * len(_entries(terms, tables[0]))
    for a in own:
        found = _entries(terms, a) or range(len(sums))  # numbers along an axis are their places
        values = [1] * len(sums) if a.term == terms.one else found
        sums = [total + a.coefficient * Fraction(value) for total, value in zip(sums, values, strict=True)]
    total = _constant(terms, sums, shape, access)
    return list(addends) if total is None else [*(a for a in addends if a not in own), *total]


def _shape(terms: Terms, table: Addend) -> tuple[int, ...]:
    content = terms.see(table.term)
    return content.shape if isinstance(content, Table) else ()


def _entries(terms: Terms, addend: Addend) -> Sequence[float]:
    """The entries of a table that can be added up; none for other addends."""
    content = terms.label(addend.term)
    if addend.parts or not isinstance(content, Table) or len(content.values) > _MOST:
        return ()
    values = [value for value in content.values if isinstance(value, (int, float)) and isfinite(value)]
    return values if len(values) == len(content.values) else ()


def _is_constant_beside(terms: Terms, addend: Addend, access: Access, shape: tuple[int, ...]) -> bool:
    if addend.parts:
        return False
    if addend.term == terms.one:
        return True
    if addend.access != access:
        return False
    return addend.term == terms.index if not _entries(terms, addend) else _shape(terms, addend) == shape


def _constant(
    terms: Terms, sums: Sequence[Fraction], shape: tuple[int, ...], access: Access
) -> Sequence[Addend] | None:
    """Numbers as one constant: the same everywhere, in equal steps along an axis, or a table that is known."""
    if all(value == sums[0] for value in sums):
        return [Addend(sums[0], terms.one, ())] if sums[0] else []
    step = sums[1] - sums[0]
    if len(shape) == 1 and all(value == sums[0] + step * place for place, value in enumerate(sums)):
        start = [Addend(sums[0], terms.one, ())] if sums[0] else []
        return [Addend(step, terms.index, access), *start]
    entries = [int(value) if value.denominator == 1 else float(value) for value in sums]
    if any(Fraction(entry) != value for entry, value in zip(entries, sums, strict=True)):
        return None
    term = terms.table(shape, tuple(entries))
    return [Addend(ONE, term, access)] if term < terms.horizon else None
