"""Elementwise operators of one operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rewright.ir.errors import TypeMismatch
from rewright.ir.types import DType, TensorType
from rewright.ops.elementwise import Elementwise, Homogeneous, Linear
from rewright.ops.facts import Facts
from rewright.ops.functions import logic, powers, rounding, special, transcendental
from rewright.ops.functions.record import ScalarFunction


class Unary(Elementwise):
    """One operand; the result has its type."""

    __slots__ = ()


class Trigonometric(Unary):
    """A coordinate of the point of the unit circle at an angle."""

    __slots__ = ()


class RoundingToWhole(Unary):
    """A whole number next to x, or x where it is whole; of a larger x it is no smaller."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Negate(Unary, Linear):
    """``-x``."""

    scalar = rounding.NEGATE
    falls_with = (0,)


@dataclass(frozen=True, slots=True)
class Exponential(Unary):
    """e to the power x."""

    scalar = transcendental.EXPONENTIAL


@dataclass(frozen=True, slots=True)
class ExponentialMinusOne(Unary):
    """``exp(x) - 1``."""

    scalar = transcendental.EXPONENTIAL_MINUS_ONE


@dataclass(frozen=True, slots=True)
class Log(Unary):
    """The natural logarithm."""

    scalar = transcendental.LOG


@dataclass(frozen=True, slots=True)
class LogPlusOne(Unary):
    """``log(1 + x)``."""

    scalar = transcendental.LOG_PLUS_ONE


@dataclass(frozen=True, slots=True)
class Sqrt(Unary):
    """The nonnegative square root."""

    scalar = powers.SQRT


@dataclass(frozen=True, slots=True)
class Rsqrt(Unary):
    """``1 / sqrt(x)``."""

    scalar = powers.RSQRT


@dataclass(frozen=True, slots=True)
class Tanh(Unary):
    """The hyperbolic tangent."""

    scalar = transcendental.TANH


@dataclass(frozen=True, slots=True)
class Logistic(Unary):
    """``1 / (1 + exp(-x))``."""

    scalar = transcendental.LOGISTIC


@dataclass(frozen=True, slots=True)
class Sine(Trigonometric):
    """The sine."""

    scalar = transcendental.SINE


@dataclass(frozen=True, slots=True)
class Cosine(Trigonometric):
    """The cosine."""

    scalar = transcendental.COSINE


@dataclass(frozen=True, slots=True)
class Abs(Unary, Homogeneous):
    """The absolute value."""

    scalar = rounding.ABS


@dataclass(frozen=True, slots=True)
class Sign(Unary):
    """-1, 0 or 1."""

    scalar = rounding.SIGN


@dataclass(frozen=True, slots=True)
class Floor(RoundingToWhole):
    """The largest integer that is not above x."""

    scalar = rounding.FLOOR


@dataclass(frozen=True, slots=True)
class Ceil(RoundingToWhole):
    """The smallest integer that is not below x."""

    scalar = rounding.CEIL


@dataclass(frozen=True, slots=True)
class RoundNearestEven(RoundingToWhole):
    """The nearest integer, halves to the even one."""

    scalar = rounding.ROUND_NEAREST_EVEN


class RoundingToByte(Unary):
    """The nearest number of a float type of 8 bits, which is the type of the result; the even one of two."""

    __slots__ = ()
    target: ClassVar[DType]

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        first = self.check_operands(operands)
        self.check_domain(first.dtype)
        return TensorType(first.shape, self.target)


@dataclass(frozen=True, slots=True)
class RoundToE4M3(RoundingToByte):
    """To a float with 4 bits of exponent; 448 in the place of larger numbers, as in PyTorch 2.13 (NaN before)."""

    scalar = rounding.ROUND_TO_F8E4M3FN
    target = DType.F8E4M3FN


@dataclass(frozen=True, slots=True)
class RoundToE5M2(RoundingToByte):
    """To a float with 5 bits of exponent; infinities in the place of numbers above 57,344."""

    scalar = rounding.ROUND_TO_F8E5M2
    target = DType.F8E5M2


ROUNDING: Mapping[DType, Unary] = {DType.F8E4M3FN: RoundToE4M3(), DType.F8E5M2: RoundToE5M2()}
"""The casts to types for which conversions are not defined, since they round."""


@dataclass(frozen=True, slots=True)
class Erf(Unary):
    """The error function."""

    scalar = special.ERF


@dataclass(frozen=True, slots=True)
class Not(Unary):
    """Negation: logical for booleans, of every bit for integers."""

    scalar = logic.NOT

    def check_domain(self, dtype: DType) -> None:
        super(Not, self).check_domain(dtype)
        if dtype.is_unsigned and dtype is not DType.U8:
            raise TypeMismatch(f"not is not defined on {dtype.value}; subtract from its largest value")

    def record(self, dtype: DType) -> ScalarFunction:
        return logic.NOT_UNSIGNED if dtype is DType.U8 else logic.NOT


@dataclass(frozen=True, slots=True)
class IsFinite(Unary):
    """Whether x is neither infinite nor NaN."""

    scalar = rounding.IS_FINITE

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        first = self.check_operands(operands)
        self.check_domain(first.dtype)
        return TensorType(first.shape, DType.BOOL)

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        return self.needs if operands[0].may_be_infinite else ""


@dataclass(frozen=True, slots=True)
class Erfc(Unary):
    """One less the error function."""

    scalar = special.ERFC


@dataclass(frozen=True, slots=True)
class ErfcScaled(Unary):
    """``exp(x^2) erfc(x)``."""

    scalar = special.ERFC_SCALED


@dataclass(frozen=True, slots=True)
class ErfInverse(Unary):
    """The number that x is the error function of; infinite at -1 and 1."""

    scalar = special.ERF_INVERSE


@dataclass(frozen=True, slots=True)
class LogGamma(Unary):
    """The logarithm of the size of the gamma function."""

    scalar = special.LOG_GAMMA


@dataclass(frozen=True, slots=True)
class Digamma(Unary):
    """The derivative of the logarithm of the gamma function."""

    scalar = special.DIGAMMA


@dataclass(frozen=True, slots=True)
class BesselI0e(Unary):
    """``exp(-|x|)`` times the modified Bessel function of order 0."""

    scalar = special.BESSEL_I0E


@dataclass(frozen=True, slots=True)
class BesselI1e(Unary):
    """``exp(-|x|)`` times the modified Bessel function of order 1."""

    scalar = special.BESSEL_I1E
