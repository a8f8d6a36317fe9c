"""Places of elements in memory, and the first and last value that an index has in a tile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rewright.ir.dims import Dim, Shape, is_nonnegative
from rewright.optimize.printing.statements import Scalar, Sum, call
from rewright.optimize.scalars.expressions import Expression, Table
from rewright.optimize.scalars.ranges import joined_digits
from rewright.optimize.scalars.simplify import as_index
from rewright.terms.index import Index, Quotient, Remainder, Variable

Bounds = Mapping[str, tuple[Scalar, Scalar]]
"""The first and the last value of loop indices in a tile."""

FLOOR = "floor_quotient"
"""The whole quotient that is rounded down."""


def offset(table: Table, places: tuple[Expression, ...], shape: Shape) -> Index:
    """The place of an element in row-major memory."""
    total, stride = Index(0), cast("Dim", 1)
    for place, size in zip(reversed(places), reversed(shape), strict=True):
        index = as_index(place)
        total = total + (index if index is not None else table.opaque(place)) * stride
        stride = stride * size
    return joined_digits(total)


def ends(index: Index, bounds: Bounds, quotient: str) -> tuple[Sum, Sum] | None:
    """The least and the largest value of an index in a tile; None where they are not known before it is computed.

    ``quotient`` is the target's function for whole quotients; one that rounds towards 0 is right for what is not
    negative.
    """
    lows, highs = list[tuple[Scalar, Dim]](), list[tuple[Scalar, Dim]]()
    for atom, factor in index.terms:
        found = _atom_ends(atom, bounds, quotient)
        rises = is_nonnegative(factor)
        if found is None or rises is None:
            return None
        first, last = found if rises else found[::-1]
        lows.append((first, factor))
        highs.append((last, factor))
    return Sum(tuple(lows), index.constant), Sum(tuple(highs), index.constant)


def _atom_ends(atom: object, bounds: Bounds, quotient: str) -> tuple[Scalar, Scalar] | None:
    if isinstance(atom, Variable):
        return bounds.get(atom.name)
    if not isinstance(atom, (Quotient, Remainder)):
        return None
    if isinstance(atom, Remainder):
        return Sum(()), Sum((), atom.divisor - 1)
    if quotient != FLOOR and not _is_positive(atom.numerator):
        return None
    inner, divisor = ends(atom.numerator, bounds, quotient), Sum((), atom.divisor)
    return None if inner is None else (call(quotient, inner[0], divisor), call(quotient, inner[1], divisor))


def _is_positive(index: Index) -> bool:
    """Whether an index of loops, which start at 0 or later, is never negative: no number of it is."""
    return all(isinstance(n, int) and n > 0 for n in (*(f for _, f in index.terms), index.constant + 1))
