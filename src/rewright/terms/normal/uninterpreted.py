"""Functions of which little more is known than that they are equal of equal arguments."""

from __future__ import annotations

from fractions import Fraction

from rewright.terms.normal.atoms import ONE, ZERO, Function, Polynomial, leading_monomial, polynomial
from rewright.terms.records import RECORDS


def uninterpreted(name: str, arguments: tuple[Polynomial, ...], integer: bool = False) -> Polynomial:
    """A function of arguments: of one that is even or odd the argument has the sign that sorts first."""
    record = RECORDS.get(name)
    if record is None or record.parity == "none" or len(arguments) != 1:
        return polynomial(Function(name, arguments, integer))
    (argument,) = arguments
    if not argument.terms:
        if record.parity == "odd":
            return ZERO
        return ONE * Fraction(record.at_zero) if record.at_zero is not None else _applied(name, argument, integer)
    if argument.terms[leading_monomial(argument)] > 0:
        return _applied(name, argument, integer)
    return _applied(name, -argument, integer) * (-1 if record.parity == "odd" else 1)


def _applied(name: str, argument: Polynomial, integer: bool) -> Polynomial:
    return polynomial(Function(name, (argument,), integer))
