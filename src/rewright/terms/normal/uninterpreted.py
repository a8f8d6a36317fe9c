"""Functions that are only known to give equal values for equal arguments."""

from __future__ import annotations

from fractions import Fraction

from rewright.ops.functions import FUNCTIONS
from rewright.terms.normal.atoms import ONE, Function, Polynomial, leading_monomial, polynomial


def apply_uninterpreted(name: str, arguments: tuple[Polynomial, ...], integer: bool = False) -> Polynomial:
    """A function of arguments: of one that is even or odd the argument has the sign that sorts first."""
    record = FUNCTIONS.get(name)
    curve = None if record is None else record.curve
    if curve is None or curve.parity == "none":
        return polynomial(Function(name, arguments, integer))
    (argument,) = arguments
    if not argument.terms:
        return _applied(name, argument, integer) if curve.at_zero is None else ONE * Fraction(curve.at_zero)
    if argument.terms[leading_monomial(argument)] > 0:
        return _applied(name, argument, integer)
    return _applied(name, -argument, integer) * (-1 if curve.parity == "odd" else 1)


def _applied(name: str, argument: Polynomial, integer: bool) -> Polynomial:
    return polynomial(Function(name, (argument,), integer))
