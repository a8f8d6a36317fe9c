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
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, Underflow

from rewright.interp.arithmetic import Value, convert
from rewright.ir.errors import NotDefined, NotKnown, RewrightError
from rewright.ops.functions import FUNCTIONS
from rewright.ops.functions.digits import CONTEXT, DIGITS, SERIES, sine
from rewright.ops.functions.record import Curve, ScalarFunction
from rewright.terms.evaluate import Evaluator

_EQUAL = Decimal(10) ** -40


def close(left: Value, right: Value, digits: int = 35) -> bool:
    """Whether two elements agree to a number of digits, relative to the larger one or to one."""
    if not isinstance(left, Decimal) or not isinstance(right, Decimal):
        return bool(left == right)
    if left.is_infinite() or right.is_infinite():
        return left == right
    scale = max(Decimal(1), left.copy_abs(), right.copy_abs())
    gap = CONTEXT.subtract(left, right).copy_abs()
    return gap <= CONTEXT.multiply(scale, Decimal(10) ** -digits)


@dataclass(frozen=True)
class Decimals:
    """Real numbers to the digits of a context, 50 unless said otherwise, with the two infinities."""

    context: Context = CONTEXT

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
        except Underflow:
            raise NotKnown(f"{function} is too near to zero; evaluate at other values") from None

    def _apply(self, function: str, arguments: Sequence[Value]) -> Value:
        if function.startswith("convert_"):
            return convert(function.removeprefix("convert_"), arguments[0], Decimal)
        if function.startswith("?"):
            return _uninterpreted(function, arguments)
        if function in _COMPARISONS:
            return _COMPARISONS[function](_order(arguments[0], arguments[1]))
        record = FUNCTIONS.get(function)
        if record is None:
            raise NotKnown(f"{function} is no function of numbers")
        if record.curve is not None and _is_infinite(arguments[0]):
            return _at_infinity(function, record.curve, arguments[0])
        if any(_is_a_jump(record, argument) for argument in arguments):
            raise NotKnown(f"{function} at what rounding may have moved from a jump of it; evaluate at other values")
        return self._of_numbers(record, arguments)

    def _of_numbers(self, record: ScalarFunction, arguments: Sequence[Value]) -> Value:
        values = record.values
        if values.digits is not None and isinstance(arguments[0], Decimal):
            return values.digits(self.context, *arguments)
        if values.definition is not None:
            found = Evaluator(Decimals(SERIES), lambda operand, _: arguments[operand]).scalar(values.definition, {})
            return self.context.plus(found)
        if values.exact is not None:
            return values.exact(*arguments)
        raise NotKnown(f"{record.name} is not known to {DIGITS} digits; compare programs with it in floats")


def _is_infinite(value: Value) -> bool:
    return isinstance(value, Decimal) and value.is_infinite()


def _is_a_jump(record: ScalarFunction, argument: Value) -> bool:
    """Whether an argument is within rounding of a place where a function jumps, or ends, and is not that place."""
    jumps = record.values.jumps
    if jumps == "nowhere" or not isinstance(argument, Decimal) or not argument.is_finite():
        return False
    if jumps == "everywhere":
        near = (SERIES.add(argument, gap) for gap in (-_EQUAL, _EQUAL))
        return record.values.exact is None or len(set(map(record.values.exact, near))) > 1
    doubled = SERIES.multiply(argument, Decimal(2)) if jumps == "halves" else argument
    gap = SERIES.subtract(doubled, doubled.to_integral_value() if jumps == "halves" else Decimal(0))
    return bool(gap) and gap.copy_abs() < _EQUAL


def _at_infinity(function: str, curve: Curve, value: Decimal) -> Decimal:
    """The value of a function at an infinity."""
    found = curve.at_infinity(1 if value > 0 else -1)
    if found is None:
        raise NotKnown(f"{function} of {value} is not known; libraries do not agree on it")
    if math.isnan(found):
        raise InvalidOperation
    return Decimal(found)


def _order(left: Value, right: Value) -> int:
    """-1, 0 or 1; numbers that differ by rounding only are equal."""
    if isinstance(left, Decimal) and isinstance(right, Decimal) and left.is_finite() and right.is_finite():
        scale = max(Decimal(1), left.copy_abs(), right.copy_abs())
        if CONTEXT.subtract(left, right).copy_abs() <= CONTEXT.multiply(scale, _EQUAL):
            return 0
    return (left > right) - (left < right)


def _uninterpreted(function: str, arguments: Sequence[Value]) -> Value:
    """A smooth function that depends on its name, for pattern variables that stand for any function."""
    total = Decimal(sum(function.encode()) % 7) / 10
    for place, argument in enumerate(arguments):
        total = CONTEXT.add(total, CONTEXT.multiply(Decimal(argument), Decimal(17 + 12 * place) / 10))
    return CONTEXT.add(sine(CONTEXT, total), CONTEXT.divide(total, Decimal(3)))


_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "compare_EQ": lambda order: order == 0,
    "compare_NE": lambda order: order != 0,
    "compare_LT": lambda order: order < 0,
    "compare_LE": lambda order: order <= 0,
    "compare_GT": lambda order: order > 0,
    "compare_GE": lambda order: order >= 0,
}
