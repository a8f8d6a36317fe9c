"""The number system of exact fractions with the two infinities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rewright.interp.arithmetic import EXACT, Floats, Value, convert
from rewright.ir.errors import RewrightError
from rewright.ops.functions import FUNCTIONS


@dataclass(frozen=True)
class Rationals:
    """Exact fractions and the two infinities; ``nan`` where infinities cancel.

    Roots are exact where they are rational, and so is e^0. Any other value of a transcendental function is no
    fraction, and raises RewrightError.
    """

    def literal(self, value: float | int | bool) -> Value:
        """The fraction that a float is exactly."""
        return _exact(value)

    def apply(self, function: str, arguments: Sequence[Value]) -> Value:
        """The exact value; raises RewrightError where there is none."""
        if function.startswith("convert_"):
            return convert(function.removeprefix("convert_"), arguments[0], Fraction)
        found = EXACT.get(function)
        return _exact(found(*arguments) if found else self._real(function, arguments))

    def _real(self, function: str, arguments: Sequence[Value]) -> Value:
        if any(isinstance(argument, float) for argument in arguments):
            return Floats().apply(function, [float(argument) for argument in arguments])
        if function == "divide":
            left, right = arguments
            return left / right if right else Floats().apply(function, (float(left), 0.0))
        exact = _exact_value(function, arguments)
        if exact is not None:
            return exact
        shown = ", ".join(str(argument) for argument in arguments)
        raise RewrightError(f"{function}({shown}) is no fraction; evaluate in floats")


def _exact(value: Value) -> Value:
    """Finite floats as fractions: those that are written, and zero as a number divided by infinity."""
    return Fraction(value) if isinstance(value, float) and math.isfinite(value) else value


def _exact_value(function: str, arguments: Sequence[Fraction]) -> Value | None:
    """A root, a power or a transcendental function where it is rational or infinite."""
    value = arguments[0]
    if function == "power":
        exponent = arguments[1]
        if exponent.denominator != 1:
            return None
        return value**exponent if value or exponent >= 0 else math.inf
    curve = FUNCTIONS[function].curve
    if value == 0 and curve is not None and curve.at_zero is not None:
        return _exact(curve.at_zero)
    if value <= 0 and function in ("log", "rsqrt", "sqrt"):
        return Floats().apply(function, (float(value),))
    if curve is not None and value == curve.root:
        return Fraction(0)
    if function in ("sqrt", "rsqrt"):
        root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
        if root * root == value:
            return root if function == "sqrt" else 1 / root
    return None
