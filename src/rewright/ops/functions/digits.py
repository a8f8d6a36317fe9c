"""Values to fifty digits: series and powers on decimals.

A function takes the context that it rounds to and its arguments; it raises the signals of ``decimal`` where there is
no value, and NotKnown where it cannot give enough digits. Series are summed with fifteen digits more.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, Underflow

from rewright.ir.errors import NotKnown

DIGITS = 50
_TRAPS = [InvalidOperation, DivisionByZero, Overflow, Underflow]
"""A number too small for its exponent is not zero: one over it has a value."""
CONTEXT = Context(prec=DIGITS, Emin=-(10**9), Emax=10**9, traps=_TRAPS)
SERIES = Context(prec=DIGITS + 15, Emin=-(10**9), Emax=10**9, traps=_TRAPS)
_MOST_TERMS = 2000
_PERIODIC, _ERROR_FUNCTION, _SATURATED = 30, 5, 12
"""Arguments up to which series are summed, and from which on the error function is one to all digits."""


def divide(context: Context, left: Decimal, right: Decimal) -> Decimal:
    """The quotient; of an infinity by zero there is none."""
    if not right:
        raise DivisionByZero
    return context.divide(left, right)


def power(context: Context, base: Decimal, exponent: Decimal) -> Decimal:
    """A power as libraries have it: anything to the power zero is one."""
    if not exponent or base == 1:
        return Decimal(1)
    if not base and exponent < 0:
        raise DivisionByZero
    if base < 0 and (exponent.is_infinite() or (base.is_infinite() and exponent != exponent.to_integral_value())):
        raise NotKnown("a power of a number below zero at infinity is not known; libraries do not agree on it")
    return context.power(base, exponent)


def sine(context: Context, value: Decimal) -> Decimal:
    """The sine, by its Taylor series."""
    _within(value, _PERIODIC)
    square = SERIES.multiply(value, value).copy_negate()
    return context.plus(_series(value, lambda n: SERIES.divide(square, Decimal(2 * n * (2 * n + 1)))))


def cosine(context: Context, value: Decimal) -> Decimal:
    """The cosine, by its Taylor series."""
    _within(value, _PERIODIC)
    square = SERIES.multiply(value, value).copy_negate()
    return context.plus(_series(Decimal(1), lambda n: SERIES.divide(square, Decimal(2 * n * (2 * n - 1)))))


def error_function(context: Context, value: Decimal) -> Decimal:
    """``2 / sqrt(pi)`` times the integral of ``exp(-t^2)`` from zero on, by its Taylor series."""
    if value.copy_abs() > _SATURATED:
        return Decimal(1).copy_sign(value)
    _within(value, _ERROR_FUNCTION)
    square = SERIES.multiply(value, value).copy_negate()

    def ratio(n: int) -> Decimal:
        return SERIES.divide(SERIES.multiply(square, Decimal(2 * n - 1)), Decimal(n * (2 * n + 1)))

    total = _series(value, ratio)
    return context.divide(SERIES.multiply(Decimal(2), total), SERIES.sqrt(_pi()))


def _series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """The sum of terms each of which is the one before times a ratio."""
    total, term = first, first
    for step in range(1, _MOST_TERMS):
        term = SERIES.multiply(term, ratio(step))
        total = SERIES.add(total, term)
        if term.copy_abs() < Decimal(10) ** -(DIGITS + 10):
            return total
    raise InvalidOperation


def _within(value: Decimal, most: int) -> None:
    """Raise NotKnown beyond what a series gives enough digits for."""
    if value.copy_abs() > most:
        raise NotKnown(f"a series at {value:.6g} does not give {DIGITS} digits; evaluate at other values")


def _pi() -> Decimal:
    """Machin's formula: 16 arctan(1/5) - 4 arctan(1/239)."""

    def arctan_of_inverse(n: int) -> Decimal:
        power, total = SERIES.divide(Decimal(1), Decimal(n)), Decimal(0)
        for k in range(DIGITS * 2):
            part = SERIES.divide(power, Decimal(2 * k + 1))
            total = SERIES.add(total, part if k % 2 == 0 else part.copy_negate())
            power = SERIES.divide(power, Decimal(n * n))
        return total

    first = SERIES.multiply(Decimal(16), arctan_of_inverse(5))
    return SERIES.subtract(first, SERIES.multiply(Decimal(4), arctan_of_inverse(239)))
