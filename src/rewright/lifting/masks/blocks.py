"""Which block a whole number is in, and its place there: ``index // size == rank`` as a test of the index itself."""

from __future__ import annotations

from fractions import Fraction

from rewright.claims.language import Addend, Apply
from rewright.lifting.terms import regions
from rewright.lifting.terms.regions import Region
from rewright.lifting.terms.store import DIGITS, ONE, Operand, Terms


def multiply_out(terms: Terms, operand: Operand, region: Region) -> tuple[Operand, Region] | None:
    """A test of a number divided by a constant, rounded towards zero, as a test of that number; None for others."""
    divided = _by_constant(terms, operand, "divide_integer")
    if divided is None:
        return None
    value, by = divided
    found: list[Region] = []
    for ((low, high),), _ in region:
        if not isinstance(low, int | None) or not isinstance(high, int | None):
            return None
        found.append(regions.intervals(_least(low, by), _least(high, by)))
    return value, regions.add(found)


def _least(quotient: int | None, by: int) -> int | None:
    """The least number whose quotient is at least a given one: those of minus one begin after minus two blocks."""
    if quotient is None:
        return None
    return quotient * by if quotient > 0 else (quotient - 1) * by + 1


def digit_within(terms: Terms, operand: Operand, value: Operand, region: Region) -> Addend | None:
    """A quotient, or a remainder, of a number that is known to be in one block; None where it is not known."""
    box = regions.single(region)
    if box is None or len(box) != 1:
        return None
    ((low, high),) = box
    if not isinstance(low, int) or not isinstance(high, int):
        return None
    for name in DIGITS:
        divided = _by_constant(terms, operand, name)
        if divided is None or divided[0] != value:
            continue
        block, last = (int(Fraction(place, divided[1])) for place in (low, high - 1))
        if block != last:
            continue
        if name == "divide_integer":
            return Addend(Fraction(block), terms.one, ())
        return terms.add([(ONE, *value), (Fraction(-block * divided[1]), terms.one, ())])
    return None


def _by_constant(terms: Terms, operand: Operand, name: str) -> tuple[Operand, int] | None:
    """What is divided by a constant above zero, and that constant."""
    label = terms.see(operand[0])
    if not isinstance(label, Apply) or label.function != name:
        return None
    value, divisor = terms.operands(operand)
    parts = terms.expand(*divisor)
    if len(parts) != 1 or parts[0][1] != (terms.one, ()) or parts[0][0].denominator != 1 or parts[0][0] <= 0:
        return None
    return value, int(parts[0][0])
