"""Reductions whose first or last few elements are something else than the others: a sink beside the scores of keys.

``max over k <= n of select(k < n, s[k], c)`` is ``max(max over k < n of s[k], c)``. What is left is a reduction over
the loop of the keys, so that it shares a pass with what is summed over them.
"""

from __future__ import annotations

from dataclasses import dataclass

from rewright.ir.types import DType
from rewright.optimize.scalars.expressions import Expression, Table, walk
from rewright.optimize.scalars.ranges import decide_sign
from rewright.optimize.scalars.simplify import as_index
from rewright.terms.index import Index, Variable

FEW = 4
"""So many elements are computed by themselves."""
MANY = 8
"""And these are fewer than all by at least this factor: the halves of a rotary embedding are none of them."""
JOINED = {"sum": "add", "product": "multiply"}
"""The function of two values that a reduction repeats, where it has another name."""


@dataclass(frozen=True)
class Parted:
    """A reduction without some elements: its body over the same index from zero, its size, and the elements."""

    most: Expression
    size: int
    elements: tuple[Expression, ...]


def parted_at(table: Table, name: str, body: Expression, size: int) -> Parted | None:
    """The parts of a reduction; None where it has one, and where computing an element takes a reduction of its own."""
    for place in sorted({p for e in walk(body) if (p := _boundary(e, name)) is not None and 0 < p < size}):
        if min(place, size - place) > min(FEW, size // MANY):
            continue
        first = place >= size - place
        few = range(place, size) if first else range(place)
        elements = tuple(table.substitute(body, {name: Index(k)}) for k in few)
        shared = {e.number for e in walk(body) if e.bound is not None}
        if any(e.bound is not None and e.number not in shared for e in walk(*elements)):
            continue
        count = place if first else size - place
        moved = body if first else table.substitute(body, {name: Index(place, ((Variable(name), 1),))})
        return Parted(_below(table, moved, name, count), count, elements)
    return None


def _boundary(e: Expression, name: str) -> int | None:
    """The first index at which a choice changes, where it depends on this index alone."""
    condition = e.arguments[0] if e.op == "select" else e
    index = as_index(condition.arguments[0]) if condition.op == "at_least_zero" else None
    if e.op != "select" or index is None or not isinstance(index.constant, int) or len(index.terms) != 1:
        return None
    ((atom, factor),) = index.terms
    if atom != Variable(name) or factor not in (1, -1):
        return None
    return -index.constant if factor == 1 else index.constant + 1


def _below(table: Table, body: Expression, name: str, size: int) -> Expression:
    """The body where its index is below a size, without conditions that hold for all such or for none."""

    def change(e: Expression) -> Expression | None:
        index = as_index(e.arguments[0]) if e.op in ("at_least_zero", "is_zero") else None
        known = None if index is None else decide_sign(index, e.op == "at_least_zero", {name: (0, size - 1)})
        return None if known is None else table.constant(known, DType.BOOL)

    return table.replace(body, change)
