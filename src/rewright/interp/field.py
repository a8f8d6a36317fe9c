"""The number system of integers modulo a prime."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rewright.interp.arithmetic import EXACT, Value, convert
from rewright.interp.rationals import pseudo_random
from rewright.ir.errors import RewrightError


@dataclass(frozen=True, slots=True)
class Residue:
    """An element of the field of integers modulo a prime."""

    value: int
    prime: int

    def __add__(self, other: Residue) -> Residue:
        return Residue((self.value + other.value) % self.prime, self.prime)

    def __sub__(self, other: Residue) -> Residue:
        return Residue((self.value - other.value) % self.prime, self.prime)

    def __mul__(self, other: Residue) -> Residue:
        return Residue(self.value * other.value % self.prime, self.prime)

    def __neg__(self) -> Residue:
        return Residue(-self.value % self.prime, self.prime)

    def inverse(self) -> Residue:
        """The inverse; raises RewrightError for zero."""
        if not self.value:
            raise RewrightError("division by zero in the prime field; evaluate at other values")
        return Residue(pow(self.value, -1, self.prime), self.prime)


_RING = frozenset({"add", "subtract", "multiply", "negate", "select", "compare_EQ", "compare_NE"})
"""Functions that need no order."""


@dataclass(frozen=True)
class PrimeField:
    """Integers modulo a prime: exact for sums, products and quotients, and without an order.

    Two different rational functions of degree d agree at a random point with probability at most d / prime
    (Schwartz 1980, Zippel 1979). Comparisons of floats, infinities and transcendental functions raise RewrightError;
    with ``opaque`` transcendental functions are uninterpreted, as in ``Rationals``.
    """

    prime: int = 2**61 - 1
    opaque: bool = False

    def literal(self, value: float | int | bool) -> Value:
        """The residue of the fraction that a float is exactly; raises RewrightError for infinities."""
        if not isinstance(value, float):
            return value
        if not math.isfinite(value):
            raise RewrightError(f"{value} is not in the prime field; evaluate in rationals")
        return self.residue(Fraction(value))

    def residue(self, value: Fraction | int) -> Residue:
        """The residue of a fraction; raises RewrightError where the prime divides its denominator."""
        numerator, denominator = Fraction(value).as_integer_ratio()
        below = Residue(denominator % self.prime, self.prime)
        return Residue(numerator % self.prime, self.prime) * below.inverse()

    def apply(self, function: str, arguments: Sequence[Value]) -> Value:
        """The exact value; raises RewrightError where the field has none."""
        if function in _RING:
            return EXACT[function](*arguments)
        if not any(isinstance(argument, Residue) for argument in arguments):
            return self._of_integers(function, arguments)
        if function == "divide":
            return arguments[0] * arguments[1].inverse()
        if function.startswith("convert_") and not function.startswith(("convert_i", "convert_ui")):
            return arguments[0]
        if self.opaque and function not in EXACT:
            return self.residue(pseudo_random(function, [argument.value for argument in arguments]))
        raise RewrightError(f"{function} of a residue has no value; evaluate in rationals or floats")

    def _of_integers(self, function: str, arguments: Sequence[Value]) -> Value:
        if function.startswith("convert_"):
            return convert(function.removeprefix("convert_"), arguments[0], self.residue)
        return EXACT[function](*arguments)
