"""Scalar functions on Python numbers, and the number system of IEEE floats.

Integers and truth values are Python's own in every number system; what differs is what a float element is:
Python's floats here, fractions in :mod:`rewright.interp.rationals`, fifty digits in :mod:`rewright.interp.decimals`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rewright import ops
from rewright.ir.errors import RewrightError

Value = Any
Function = Callable[..., Value]


def is_special(value: Value) -> bool:
    """Whether a value is infinite or not a number."""
    return isinstance(value, float) and not math.isfinite(value)


def convert(dtype: str, value: Value, real: Callable[[Value], Value]) -> Value:
    """A value in another dtype: ``real`` makes a float element of an integer; floats are truncated to integers."""
    if dtype == "i1":
        return value != 0
    if dtype.startswith(("i", "ui")):
        return int(value)
    return real(value) if isinstance(value, int) else value


def _truncating_quotient(left: int, right: int) -> int:
    if not right:
        raise RewrightError(f"{left} divided by zero is no integer; evaluate at other values")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _integer_power(base: int, exponent: int) -> int:
    if exponent > 512:  # too long to write out, and longer than any dtype: the last 64 bits say all
        return pow(base, exponent, 1 << 64)
    if exponent >= 0:
        return base**exponent
    return base ** (-exponent) if abs(base) == 1 else 0


def _logical_not(value: int) -> int:
    return (not value) if isinstance(value, bool) else ~value


def _not_unsigned(value: int) -> int:
    return 255 - value


def _and(left: int, right: int) -> int:
    return left & right


def _or(left: int, right: int) -> int:
    return left | right


def _xor(left: int, right: int) -> int:
    return left ^ right


def _select(predicate: bool, on_true: Value, on_false: Value) -> Value:
    return on_true if predicate else on_false


EXACT: dict[str, Function] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negate": operator.neg,
    "divide_integer": _truncating_quotient,
    "power_integer": _integer_power,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _logical_not,
    "not_unsigned": _not_unsigned,
    "select": _select,
    "compare_EQ": operator.eq,
    "compare_NE": operator.ne,
}
"""Functions that are exact in every ring."""


def _maximum(left: Value, right: Value) -> Value:
    return left if left != left or left >= right else right


def _minimum(left: Value, right: Value) -> Value:
    return left if left != left or left <= right else right


def _clamp(low: Value, value: Value, high: Value) -> Value:
    return _minimum(_maximum(value, low), high)


def _remainder(left: Value, right: Value) -> Value:
    if isinstance(left, int):
        return left - right * _truncating_quotient(left, right)
    if isinstance(left, Fraction) and isinstance(right, Fraction) and right:
        return left - right * math.trunc(left / right)
    return math.nan if not right or is_special(left) else math.fmod(left, right)


def _sign(value: Value) -> Value:
    return value if value != value or value == 0 else type(value)(1 if value > 0 else -1)


def _is_finite(value: Value) -> bool:
    return not is_special(value)


def _floor(value: Value) -> Value:
    return value if is_special(value) else type(value)(math.floor(value))


def _ceil(value: Value) -> Value:
    return value if is_special(value) else type(value)(math.ceil(value))


def _round(value: Value) -> Value:
    return value if is_special(value) else type(value)(round(value))


ORDERED: dict[str, Function] = {
    "compare_LT": operator.lt,
    "compare_LE": operator.le,
    "compare_GT": operator.gt,
    "compare_GE": operator.ge,
    "maximum": _maximum,
    "minimum": _minimum,
    "clamp": _clamp,
    "remainder": _remainder,
    "abs": abs,
    "sign": _sign,
    "is_finite": _is_finite,
    "floor": _floor,
    "ceil": _ceil,
    "round_nearest_even": _round,
}
"""Functions that need an order as well."""


def is_exact(function: str) -> bool:
    """Whether fractions have fractions as values of a function in every number system: no division, root or limit."""
    return function in EXACT or function in ORDERED or function.startswith("convert_")


def divide(left: float, right: float) -> float:
    """The IEEE quotient."""
    if right:
        return left / right
    return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1.0, right)


def _log(value: float) -> float:
    return math.log(value) if value else -math.inf


def _log_plus_one(value: float) -> float:
    return math.log1p(value) if value != -1 else -math.inf


def _rsqrt(value: float) -> float:
    return divide(1.0, math.sqrt(value))


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else math.exp(value)


def _scalar(op: ops.TensorOperator) -> Function:
    def of(*values: float) -> float:
        return float(op.execute([np.asarray(float(v)) for v in values]))

    return of


SPECIAL: dict[str, Function] = {
    op.name: _scalar(op)
    for op in (
        *(ops.Atan2(), ops.BesselI0e(), ops.BesselI1e(), ops.Digamma(), ops.ErfcScaled(), ops.ErfInverse()),
        *(ops.LogGamma(), ops.Zeta()),
    )
}
"""Functions that Python's own library does not have, or not as PyTorch has them; not known to more than 16 digits."""
REAL: dict[str, Function] = {
    "divide": divide,
    "power": math.pow,
    "exponential": math.exp,
    "exponential_minus_one": math.expm1,
    "log": _log,
    "log_plus_one": _log_plus_one,
    "sqrt": math.sqrt,
    "rsqrt": _rsqrt,
    "tanh": math.tanh,
    "logistic": _logistic,
    "sine": math.sin,
    "cosine": math.cos,
    "erf": math.erf,
    "erfc": math.erfc,
}
"""Functions whose values are real numbers in general."""


@dataclass(frozen=True)
class Floats:
    """IEEE double precision, one element at a time."""

    def literal(self, value: float | int | bool) -> Value:
        """Python's own number."""
        return value

    def apply(self, function: str, arguments: Sequence[Value]) -> Value:
        """The value as numpy computes it, up to the last bits of transcendental functions."""
        if function.startswith("convert_"):
            return self._convert(function.removeprefix("convert_"), arguments[0])
        if function in _BY_ZERO and isinstance(arguments[1], int) and not arguments[1]:
            return _BY_ZERO[function](arguments[0])
        try:
            return (EXACT.get(function) or ORDERED.get(function) or REAL.get(function) or SPECIAL[function])(*arguments)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    def _convert(self, dtype: str, value: Value) -> Value:
        """What is no number, or has no end, becomes zero as an integer, though nothing says so."""
        undefined = is_special(value) and dtype.startswith(("i", "ui")) and dtype != "i1"
        return 0 if undefined else convert(dtype, value, float)


def _all_bits(left: int) -> int:
    return -1


def _itself(left: int) -> int:
    return left


_BY_ZERO: dict[str, Function] = {"divide_integer": _all_bits, "remainder": _itself}
"""What a machine makes of an integer and zero; minus one stands for the number that has all bits set."""
