"""Which elements of a term a view reads: what is known of the values read holds there and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

from rewright.claims.language import Access, Index, Ranged
from rewright.ir.dims import Dim, at_most, is_nonnegative
from rewright.lifting.terms.store import POINTWISE, Operand, Terms

Window = tuple[tuple[Dim, Dim], ...]
"""For every axis of a term the first index and the one behind the last."""


def hull(access: Access, lengths: Sequence[Dim]) -> Window | None:
    """The smallest window that holds all elements read, variable ``v`` running over ``lengths[v]``."""
    found: list[tuple[Dim, Dim]] = []
    for constant, strides in access:
        low = high = constant
        for var, stride in strides:
            last = stride * (lengths[var] - 1) if 0 <= var < len(lengths) else None
            if last is None:
                return None
            if is_nonnegative(stride):
                high = high + last
            elif is_nonnegative(-stride):
                low = low + last
            else:
                return None
        found.append((low, high + 1))
    return tuple(found)


def dense(access: Access, lengths: Sequence[Dim]) -> bool:
    """Whether every element of the hull is read: no gaps, no diagonal, and something to read at all."""
    used = [v for _, strides in access for v, _ in strides]
    some = all(at_most(1, n) is True for n in lengths)
    return some and len(used) == len(set(used)) and all(_gapless(index, lengths) for index in access)


def _gapless(index: Index, lengths: Sequence[Dim]) -> bool:
    left = dict(index[1])
    reach: Dim = 1
    while left:
        var = next((v for v, stride in left.items() if stride == reach and 0 <= v < len(lengths)), None)
        if var is None:
            return False
        del left[var]
        reach = reach * lengths[var]
    return True


def contains(outer: Window, inner: Window) -> bool:
    """Whether a window is certainly part of another."""
    return all(
        at_most(low, first) is True and at_most(last, high) is True
        for (low, high), (first, last) in zip(outer, inner, strict=True)
    )


def read_by(terms: Terms, operand: Operand) -> list[Operand]:
    """A term with everything that it computes elementwise from, each where it is read."""
    found = [operand]
    seen = {operand}
    for term, access in found:
        label = terms.see(term)
        if isinstance(label, Ranged):
            inner = [(terms.children(term)[0], access)]
        elif isinstance(label, POINTWISE):
            inner = terms.operands((term, access))
        else:
            continue
        fresh = [o for o in dict.fromkeys(inner) if o not in seen]
        seen.update(fresh)
        found.extend(fresh)
    return found


__all__ = ["Window", "contains", "dense", "hull", "read_by"]
