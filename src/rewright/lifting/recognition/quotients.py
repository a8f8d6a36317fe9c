"""Quotients and remainders of places by numbers: the block that a place is in, and the place in its block.

Programs that split a sequence count ``(i // block + first) * block + i % block``. Over an axis that is so many blocks
these are the two digits of the place, and their sum is the place again.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rewright.claims.language import Addend, Index, View
from rewright.ir.dims import Dim
from rewright.lifting.terms.store import ONE
from rewright.lifting.terms.value import Digits, refine, variables_of

if TYPE_CHECKING:
    from rewright.lifting.terms.algebra import Algebra


def quotient(algebra: Algebra, view: View, divisor: View) -> View | None:
    """What a place, which is not negative, is divided by a number, rounded down; None where that is no place."""
    return _digit(algebra, view, divisor, 0)


def remainder(algebra: Algebra, view: View, divisor: View) -> View | None:
    """What is left of a place by a number; None where that is no place."""
    return _digit(algebra, view, divisor, 1)


def join_digits(algebra: Algebra, view: View) -> View:
    """A sum of blocks and of places in a block, where these are the digits of an axis, as the place on the axis."""
    if all(len(digits) < 2 for digits in view.dims):
        return view
    whole = place(algebra, view)
    if whole is None:
        return view
    strides, dims, moved = dict(whole[1]), list[Digits](), dict[int, object]()
    for digits, names in zip(view.dims, variables_of(view.dims), strict=True):
        kept: list[Dim] = []
        for size, name in zip(digits, names, strict=True):
            own, outer = strides.get(name), strides.get(name - 1)
            if kept and own and isinstance(own, int) and outer == own * size:
                kept[-1] = kept[-1] * size
            else:
                kept.append(size)
            moved[sum(map(len, dims)) + len(kept) - 1] = own
        dims.append(tuple(kept))
    if tuple(dims) == view.dims:
        return view
    index = algebra.terms.index
    found = [Addend(Fraction(str(s)), index, ((0, ((v, 1),)),)) for v, s in moved.items() if s]
    return algebra.settle(tuple(dims), [*found, Addend(Fraction(str(whole[0])), algebra.terms.one, ())])


def _digit(algebra: Algebra, view: View, divisor: View, which: int) -> View | None:
    number = algebra.as_constant(divisor)
    if number is None or number.denominator != 1 or number <= 0:
        return None
    by = int(number)
    for dims in (view.dims, _in_blocks(view.dims, by)):
        if dims is None:
            continue
        split = refine(view, dims)
        index = place(algebra, split)
        found = None if index is None else _divide(index, [n for digits in dims for n in digits], by)
        if found is not None:
            low, strides = found[which]
            if not strides:
                return algebra.constant(dims, Fraction(str(low)))
            return algebra.settle(dims, [Addend(ONE, algebra.terms.index, (found[which],))])
    return None


def _in_blocks(dims: tuple[Digits, ...], by: int) -> tuple[Digits, ...] | None:
    """Axes with every digit that counts several blocks written as two digits."""
    found = tuple(tuple(part for n in digits for part in _blocks(n, by)) for digits in dims)
    return None if found == dims else found


def _blocks(size: Dim, by: int) -> Digits:
    return (size // by, by) if isinstance(size, int) and size > by and not size % by else (size,)


def place(algebra: Algebra, view: View) -> Index | None:
    """A sum of numbers and indices as one index; None where anything else is in it."""
    low, strides, terms = Fraction(0), dict[int, Fraction](), algebra.terms
    for addend in view.addends:
        for often, (term, access) in () if addend.parts else terms.expand(addend.term, addend.access):
            times = often * addend.coefficient
            if term == terms.one:
                low += times
                continue
            if term != terms.index:
                return None
            ((first, steps),) = access
            if not isinstance(first, int) or not all(isinstance(step, int) for _, step in steps):
                return None
            low += times * first
            for variable, step in steps:
                strides[variable] = strides.get(variable, Fraction(0)) + times * int(str(step))
    if any(addend.parts for addend in view.addends) or any(n.denominator != 1 for n in (low, *strides.values())):
        return None
    return int(low), tuple(sorted((v, int(s)) for v, s in strides.items() if s))


def _divide(index: Index, sizes: list[object], by: int) -> tuple[Index, Index] | None:
    """Quotient and remainder, where the part of a place that is no multiple lies between two multiples."""
    low, strides = index
    if not isinstance(low, int):
        return None
    whole = tuple((v, s // by) for v, s in strides if isinstance(s, int) and not s % by)
    rest = tuple((v, s) for v, s in strides if isinstance(s, int) and s % by)
    least, most = low, low
    for v, s in rest:
        size = sizes[v]
        if not isinstance(size, int):
            return None
        least, most = least + min(0, s * (size - 1)), most + max(0, s * (size - 1))
    if any(s < 0 for _, s in whole) or least < 0 or least // by != most // by:
        return None
    return (least // by, whole), (low - least // by * by, rest)
