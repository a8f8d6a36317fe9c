"""What the sizes of loops say of an index: its least and largest value, and digits that vanish or go together again."""

from __future__ import annotations

from collections.abc import Mapping

from rewright.ir.dims import Dim, at_most, is_nonnegative
from rewright.terms.index import Index, Quotient, Remainder, Variable, collect, quotient, remainder

Span = tuple[Dim, Dim]
"""A least and a largest value; of sizes that are symbols, polynomials of these."""


def is_below(found: Span | None, size: Dim) -> bool:
    """Whether what is in a span is in range of an axis for certain."""
    return found is not None and is_nonnegative(found[0]) is True and at_most(found[1] + 1, size) is True


def number_span(index: Index, ranges: Mapping[str, Span]) -> tuple[int, int] | None:
    """As :func:`span`, where both ends are numbers."""
    found = span(index, ranges)
    if found is None or not isinstance(found[0], int) or not isinstance(found[1], int):
        return None
    return found[0], found[1]


def span(index: Index, ranges: Mapping[str, Span]) -> Span | None:
    """The least and the largest value of an index; None where it is computed from data, or sizes do not tell."""
    low = high = index.constant
    for atom, factor in index.terms:
        if isinstance(atom, Variable):
            inner = ranges.get(atom.name)
        elif isinstance(atom, (Quotient, Remainder)):
            inner = _digit_span(atom, span(atom.numerator, ranges))
        else:
            inner = None
        rises = is_nonnegative(factor)
        if inner is None or rises is None:
            return None
        low += inner[0 if rises else 1] * factor
        high += inner[1 if rises else 0] * factor
    return low, high


def narrowed(found: Span, factor: Dim, constant: Dim, holds: bool) -> Span:
    """What is left of a span of x where ``factor * x + constant >= 0`` holds, or where it does not.

    ``3 * x - 7 >= 0`` leaves 3 to 9 of 0 to 9, and 0 to 2 where it does not hold. Symbols leave all.
    """
    low, high = found
    if not (isinstance(low, int) and isinstance(high, int) and isinstance(factor, int) and isinstance(constant, int)):
        return found
    a, b = (factor, constant) if holds else (-factor, -constant - 1)
    if a > 0:
        return max(low, -(b // a)), high
    return (low, min(high, b // -a)) if a < 0 else found


def _digit_span(atom: Quotient | Remainder, inner: Span | None) -> Span | None:
    if isinstance(atom, Remainder):
        return 0, atom.divisor - 1
    if inner is None or not isinstance(atom.divisor, int):
        return None
    low, high = inner
    return (low // atom.divisor, high // atom.divisor) if isinstance(low, int) and isinstance(high, int) else None


def joined_digits(index: Index) -> Index:
    """The index with ``d * (x div d) + x mod d`` put together again."""
    for atom, factor in index.terms:
        low = _remainder_of(atom)
        if low is not None:
            whole = _single(Quotient(low.numerator, low.divisor))
            for other, weight in index.terms:
                if isinstance(other, Quotient) and _single(other) == whole and weight == low.divisor * factor:
                    rest = Index(index.constant, tuple(t for t in index.terms if t[0] not in (atom, other)))
                    return joined_digits(rest + low.numerator * factor)
    return index


def _remainder_of(atom: object) -> Remainder | None:
    """A remainder, also written as ``(x mod 4) div 2``, which is ``(x div 2) mod 2``; None for anything else."""
    if isinstance(atom, Remainder):
        return atom
    if not isinstance(atom, Quotient) or len(atom.numerator.terms) != 1 or atom.numerator.constant != 0:
        return None
    ((inner, factor),) = atom.numerator.terms
    if factor != 1 or not isinstance(inner, Remainder):
        return None
    modulus, divisor = inner.divisor, atom.divisor
    if not isinstance(modulus, int) or not isinstance(divisor, int) or modulus % divisor:
        return None
    return Remainder(quotient(inner.numerator, divisor), modulus // divisor)


def _single(atom: Quotient) -> Quotient:
    """One quotient for several: ``(x div 2) div 3`` is ``x div 6``."""
    numerator, divisor = atom.numerator, atom.divisor
    while numerator.constant == 0 and len(numerator.terms) == 1 and isinstance(divisor, int):
        ((inner, factor),) = numerator.terms
        if factor != 1 or not isinstance(inner, Quotient) or not isinstance(inner.divisor, int):
            break
        numerator, divisor = inner.numerator, inner.divisor * divisor
    return Quotient(numerator, divisor)


def simplify_index(index: Index, ranges: Mapping[str, Span]) -> Index:
    """The index without digits that have one value for all indices in the ranges, and with whole numbers joined.

    The heads of a projection are ``o div 32`` of a loop of 32, which is 0; the two axes that a group normalisation
    makes of its channels are ``4 * (o div 4) + o mod 4``, which is o.
    """
    total = Index(index.constant)
    for atom, factor in index.terms:
        if isinstance(atom, (Quotient, Remainder)):
            total = total + _settled_digit(atom, ranges) * factor
        else:
            total = total + collect(0, [(atom, factor)])
    return joined_digits(total)


def _settled_digit(atom: Quotient | Remainder, ranges: Mapping[str, Span]) -> Index:
    numerator, divisor = simplify_index(atom.numerator, ranges), atom.divisor
    found = span(numerator, ranges)
    if is_below(found, divisor):
        return Index(0) if isinstance(atom, Quotient) else numerator
    low, high = found or (None, None)
    if isinstance(low, int) and isinstance(high, int) and isinstance(divisor, int):
        block = low // divisor
        if block == high // divisor:
            return Index(block) if isinstance(atom, Quotient) else numerator - block * divisor
    return (quotient if isinstance(atom, Quotient) else remainder)(numerator, divisor)


def decide_sign(index: Index, least: bool, ranges: Mapping[str, Span]) -> bool | None:
    """Whether an index is at least zero (or, without ``least``, zero) everywhere or nowhere; None where it is both."""
    found = span(index, ranges)
    if found is None:
        return None
    if is_nonnegative(found[1]) is False:
        return False
    if least:
        return True if is_nonnegative(found[0]) else None
    return True if found == (0, 0) else False if at_most(1, found[0]) else None
