"""The number system of 50-digit decimals: every function of the vocabulary but the special ones, rounded far below any
difference.

A value that is not defined (a division by zero, infinities that cancel, the root of a negative number) raises
NotDefined, so that no NaN is ever compared. One that is not known to so many digits raises NotKnown, which says
nothing about whether it is defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow

from rewright.interp.arithmetic import EXACT, ORDERED, SPECIAL, Value, convert
from rewright.ir.errors import NotDefined, NotKnown, RewrightError
from rewright.terms.records import RECORDS

DIGITS = 50
_CONTEXT = Context(prec=DIGITS, Emin=-(10**9), Emax=10**9, traps=[InvalidOperation, DivisionByZero, Overflow])
_SERIES = Context(prec=DIGITS + 15, Emin=-(10**9), Emax=10**9, traps=[InvalidOperation, DivisionByZero, Overflow])
_EQUAL = Decimal(10) ** -40
_MOST_TERMS = 2000
_PERIODIC, _ERROR_FUNCTION, _SATURATED = 30, 5, 12
"""Arguments up to which series are summed, and from which on the error function is one to all digits."""


def close(left: Value, right: Value, digits: int = 35) -> bool:
    """Whether two elements agree to so many digits, relative to the larger one or to one."""
    if not isinstance(left, Decimal) or not isinstance(right, Decimal):
        return bool(left == right)
    if left.is_infinite() or right.is_infinite():
        return left == right
    scale = max(Decimal(1), left.copy_abs(), right.copy_abs())
    gap = _CONTEXT.subtract(left, right).copy_abs()
    return gap <= _CONTEXT.multiply(scale, Decimal(10) ** -digits)


@dataclass(frozen=True)
class Decimals:
    """Real numbers to 50 digits, with the two infinities."""

    def literal(self, value: float | int | bool) -> Value:
        """The decimal that a float is exactly; raises RewrightError for NaN."""
        if not isinstance(value, float):
            return value
        if math.isnan(value):
            raise RewrightError("the constant NaN is no number; use a number")
        return Decimal(value)

    def apply(self, function: str, arguments: Sequence[Value]) -> Value:
        """The value to 50 digits; raises NotDefined where there is none, and NotKnown where that is not known."""
        try:
            return self._apply(function, arguments)
        except (InvalidOperation, DivisionByZero, ZeroDivisionError, ValueError, OverflowError):
            shown = ", ".join(f"{a:.6g}" if isinstance(a, Decimal) else str(a) for a in arguments)
            raise NotDefined(f"{function}({shown}) is not defined; evaluate at other values") from None
        except Overflow:
            raise NotKnown(f"{function} is too large; evaluate at other values") from None

    def _apply(self, function: str, arguments: Sequence[Value]) -> Value:
        if function.startswith("convert_"):
            return convert(function.removeprefix("convert_"), arguments[0], Decimal)
        if function.startswith("?"):
            return _uninterpreted(function, arguments)
        if function in _COMPARISONS:
            return _COMPARISONS[function](_order(arguments[0], arguments[1]))
        if function in RECORDS and _is_infinite(arguments[0]):
            return _at_infinity(function, arguments[0])
        if any(_is_a_jump(function, argument) for argument in arguments):
            raise NotKnown(f"{function} at what rounding may have moved from a jump of it; evaluate at other values")
        own = _FUNCTIONS.get(function)
        if own is not None and isinstance(arguments[0], Decimal):
            return own(*arguments)
        found = EXACT.get(function) or ORDERED.get(function)
        if function in SPECIAL:
            raise NotKnown(f"{function} is not known to {DIGITS} digits; compare programs with it in floats")
        if found is None:
            raise NotKnown(f"{function} is no function of numbers")
        return found(*arguments)


def _is_infinite(value: Value) -> bool:
    return isinstance(value, Decimal) and value.is_infinite()


def _is_a_jump(function: str, argument: Value) -> bool:
    """Whether an argument is within rounding of a place where a function jumps, or ends, and is not that place."""
    if not isinstance(argument, Decimal) or not argument.is_finite() or not _jumps(function):
        return False
    doubled = _SERIES.multiply(argument, Decimal(2)) if function in _AT_HALVES else argument
    gap = _SERIES.subtract(doubled, doubled.to_integral_value() if function not in _AT_ZERO else Decimal(0))
    return bool(gap) and gap.copy_abs() < _EQUAL


def _jumps(function: str) -> bool:
    return function in _AT_HALVES or function in _AT_ZERO or function.startswith(("convert_i", "convert_ui"))


_AT_HALVES = frozenset({"floor", "ceil", "round_nearest_even", "remainder"})
"""Functions that jump at integers or halves."""
_AT_ZERO = frozenset({"sign", "log", "sqrt", "rsqrt", "divide"})
"""Functions that jump, or end, at zero."""


def _at_infinity(function: str, value: Decimal) -> Decimal:
    """The value of a function at an infinity, from its record."""
    found = RECORDS[function].at_infinity(1 if value > 0 else -1)
    if found is None:
        raise NotKnown(f"{function} of {value} is not known; libraries do not agree on it")
    if math.isnan(found):
        raise InvalidOperation
    return Decimal(found)


def _order(left: Value, right: Value) -> int:
    """-1, 0 or 1; numbers that differ by rounding only are equal."""
    if isinstance(left, Decimal) and isinstance(right, Decimal) and left.is_finite() and right.is_finite():
        scale = max(Decimal(1), left.copy_abs(), right.copy_abs())
        if _CONTEXT.subtract(left, right).copy_abs() <= _CONTEXT.multiply(scale, _EQUAL):
            return 0
    return (left > right) - (left < right)


def _uninterpreted(function: str, arguments: Sequence[Value]) -> Value:
    """A smooth function that depends on its name, for pattern variables that stand for any function."""
    total = Decimal(sum(function.encode()) % 7) / 10
    for place, argument in enumerate(arguments):
        total = _CONTEXT.add(total, _CONTEXT.multiply(Decimal(argument), Decimal(17 + 12 * place) / 10))
    return _CONTEXT.add(_sine(total), _CONTEXT.divide(total, Decimal(3)))


def _exponential(value: Decimal) -> Decimal:
    return _CONTEXT.exp(value)


def _logarithm(value: Decimal) -> Decimal:
    if value < 0:
        raise InvalidOperation
    return _CONTEXT.ln(value)


def _divide(left: Decimal, right: Decimal) -> Decimal:
    if not right:
        raise DivisionByZero
    return _CONTEXT.divide(left, right)


def _exponential_minus_one(value: Decimal) -> Decimal:
    return _CONTEXT.subtract(_SERIES.exp(value), Decimal(1))


def _log_plus_one(value: Decimal) -> Decimal:
    return _logarithm(_SERIES.add(value, Decimal(1)))


def _rsqrt(value: Decimal) -> Decimal:
    return _CONTEXT.divide(Decimal(1), _CONTEXT.sqrt(value))


def _logistic(value: Decimal) -> Decimal:
    return _CONTEXT.divide(Decimal(1), _CONTEXT.add(Decimal(1), _exponential(value.copy_negate())))


def _tanh(value: Decimal) -> Decimal:
    grown = _SERIES.exp(_SERIES.multiply(Decimal(2), value))
    return _CONTEXT.divide(_SERIES.subtract(grown, Decimal(1)), _SERIES.add(grown, Decimal(1)))


def _series(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """The sum of terms each of which is the one before times a ratio."""
    total, term = first, first
    for step in range(1, _MOST_TERMS):
        term = _SERIES.multiply(term, ratio(step))
        total = _SERIES.add(total, term)
        if term.copy_abs() < Decimal(10) ** -(DIGITS + 10):
            return total
    raise InvalidOperation


def _within(value: Decimal, most: int) -> None:
    """Raise NotKnown beyond what a series gives enough digits for."""
    if value.copy_abs() > most:
        raise NotKnown(f"a series at {value:.6g} does not give {DIGITS} digits; evaluate at other values")


def _sine(value: Decimal) -> Decimal:
    _within(value, _PERIODIC)
    square = _SERIES.multiply(value, value).copy_negate()
    return _CONTEXT.plus(_series(value, lambda n: _SERIES.divide(square, Decimal(2 * n * (2 * n + 1)))))


def _cosine(value: Decimal) -> Decimal:
    _within(value, _PERIODIC)
    square = _SERIES.multiply(value, value).copy_negate()
    return _CONTEXT.plus(_series(Decimal(1), lambda n: _SERIES.divide(square, Decimal(2 * n * (2 * n - 1)))))


def _erf(value: Decimal) -> Decimal:
    if value.copy_abs() > _SATURATED:
        return Decimal(1).copy_sign(value)
    _within(value, _ERROR_FUNCTION)
    square = _SERIES.multiply(value, value).copy_negate()

    def ratio(n: int) -> Decimal:
        return _SERIES.divide(_SERIES.multiply(square, Decimal(2 * n - 1)), Decimal(n * (2 * n + 1)))

    total = _series(value, ratio)
    return _CONTEXT.divide(_SERIES.multiply(Decimal(2), total), _SERIES.sqrt(_pi()))


def _pi() -> Decimal:
    """Machin's formula: 16 arctan(1/5) - 4 arctan(1/239)."""

    def arctan_of_inverse(n: int) -> Decimal:
        power, total = _SERIES.divide(Decimal(1), Decimal(n)), Decimal(0)
        for k in range(DIGITS * 2):
            part = _SERIES.divide(power, Decimal(2 * k + 1))
            total = _SERIES.add(total, part if k % 2 == 0 else part.copy_negate())
            power = _SERIES.divide(power, Decimal(n * n))
        return total

    first = _SERIES.multiply(Decimal(16), arctan_of_inverse(5))
    return _SERIES.subtract(first, _SERIES.multiply(Decimal(4), arctan_of_inverse(239)))


def _power(base: Decimal, exponent: Decimal) -> Decimal:
    """A power as libraries have it: anything to the power zero is one."""
    if not exponent or base == 1:
        return Decimal(1)
    if not base and exponent < 0:
        raise DivisionByZero
    if base < 0 and (exponent.is_infinite() or (base.is_infinite() and exponent != exponent.to_integral_value())):
        raise NotKnown("a power of a number below zero at infinity is not known; libraries do not agree on it")
    return _CONTEXT.power(base, exponent)


def _remainder(left: Decimal, right: Decimal) -> Decimal:
    return _CONTEXT.remainder(left, right)


def _sqrt(value: Decimal) -> Decimal:
    return _CONTEXT.sqrt(value)


def _erfc(value: Decimal) -> Decimal:
    return _CONTEXT.subtract(Decimal(1), _erf(value))


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "add": _CONTEXT.add,
    "subtract": _CONTEXT.subtract,
    "multiply": _CONTEXT.multiply,
    "divide": _divide,
    "negate": Decimal.copy_negate,
    "abs": Decimal.copy_abs,
    "remainder": _remainder,
    "power": _power,
    "exponential": _exponential,
    "exponential_minus_one": _exponential_minus_one,
    "log": _logarithm,
    "log_plus_one": _log_plus_one,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "logistic": _logistic,
    "tanh": _tanh,
    "sine": _sine,
    "cosine": _cosine,
    "erf": _erf,
    "erfc": _erfc,
    "is_finite": Decimal.is_finite,
}
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "compare_EQ": lambda order: order == 0,
    "compare_NE": lambda order: order != 0,
    "compare_LT": lambda order: order < 0,
    "compare_LE": lambda order: order <= 0,
    "compare_GT": lambda order: order > 0,
    "compare_GE": lambda order: order >= 0,
}
