"""Elementwise operators of one operand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rewright.ir.errors import TypeMismatch
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, Real
from rewright.ops.elementwise import Domain, Elementwise, Homogeneous, Linear
from rewright.ops.facts import (
    TRUTH,
    Facts,
    absolute,
    bounded,
    increasing,
    is_no_number,
    negate,
    of_values,
    subtract,
)
from rewright.ops.facts_functions import integral, inverse_root, logarithm, root, sign
from rewright.ops.special import error_function


class Unary(Elementwise):
    """One operand; the result has its type."""

    __slots__ = ()
    arity: ClassVar[int | None] = 1


class RoundingToWhole(Unary):
    """A whole number next to x, or x where it is whole; of a larger x it is no smaller."""

    __slots__ = ()


class Increasing(Unary):
    """A strictly increasing function of all real numbers, with limits at both infinities."""

    __slots__ = ()

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True, slots=True)
class Negate(Unary, Linear):
    """``-x``."""

    name: ClassVar[str] = "negate"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.negative

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return negate(operands[0])


@dataclass(frozen=True, slots=True)
class Exponential(Increasing):
    """e to the power x."""

    name: ClassVar[str] = "exponential"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.exp

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return increasing(operands[0], math.exp, at_minus=0.0, fixes_zero=False)


@dataclass(frozen=True, slots=True)
class ExponentialMinusOne(Increasing):
    """``exp(x) - 1``."""

    name: ClassVar[str] = "exponential_minus_one"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.expm1

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return increasing(operands[0], math.expm1, at_minus=-1.0)


@dataclass(frozen=True, slots=True)
class Log(Unary):
    """The natural logarithm."""

    name: ClassVar[str] = "log"
    needs: ClassVar[str] = "its argument is positive"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.log

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return logarithm(operands[0], 0)


@dataclass(frozen=True, slots=True)
class LogPlusOne(Unary):
    """``log(1 + x)``."""

    name: ClassVar[str] = "log_plus_one"
    needs: ClassVar[str] = "its argument is above -1"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.log1p

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return logarithm(operands[0], 1)


@dataclass(frozen=True, slots=True)
class Sqrt(Unary):
    """The nonnegative square root."""

    name: ClassVar[str] = "sqrt"
    needs: ClassVar[str] = "its argument is not negative"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.sqrt

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return root(operands[0])


@dataclass(frozen=True, slots=True)
class Rsqrt(Unary):
    """``1 / sqrt(x)``."""

    name: ClassVar[str] = "rsqrt"
    needs: ClassVar[str] = "its argument is positive"
    domain: ClassVar[Domain] = "float"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return real(1) / np.sqrt(operands[0])

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return inverse_root(operands[0])


@dataclass(frozen=True, slots=True)
class Tanh(Increasing):
    """The hyperbolic tangent."""

    name: ClassVar[str] = "tanh"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.tanh

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return increasing(operands[0], math.tanh, at_minus=-1.0, at_plus=1.0)


@dataclass(frozen=True, slots=True)
class Logistic(Increasing):
    """``1 / (1 + exp(-x))``."""

    name: ClassVar[str] = "logistic"
    domain: ClassVar[Domain] = "float"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return real(1) / (real(1) + np.exp(-operands[0]))

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return increasing(operands[0], _logistic, at_minus=0.0, at_plus=1.0, fixes_zero=False)


@dataclass(frozen=True, slots=True)
class Sine(Unary):
    """The sine."""

    name: ClassVar[str] = "sine"
    needs: ClassVar[str] = "its argument is not infinite"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.sin

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return bounded(operands[0], -1.0, 1.0, nan_at_infinity=True)


@dataclass(frozen=True, slots=True)
class Cosine(Unary):
    """The cosine."""

    name: ClassVar[str] = "cosine"
    needs: ClassVar[str] = "its argument is not infinite"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.cos

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return bounded(operands[0], -1.0, 1.0, nan_at_infinity=True)


@dataclass(frozen=True, slots=True)
class Abs(Unary, Homogeneous):
    """The absolute value."""

    name: ClassVar[str] = "abs"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.abs

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return absolute(operands[0])


@dataclass(frozen=True, slots=True)
class Sign(Unary):
    """-1, 0 or 1."""

    name: ClassVar[str] = "sign"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.sign

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return sign(operands[0])


@dataclass(frozen=True, slots=True)
class Floor(RoundingToWhole):
    """The largest integer that is not above x."""

    name: ClassVar[str] = "floor"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.floor

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return integral(operands[0], math.floor)


@dataclass(frozen=True, slots=True)
class Ceil(RoundingToWhole):
    """The smallest integer that is not below x."""

    name: ClassVar[str] = "ceil"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.ceil

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return integral(operands[0], math.ceil)


@dataclass(frozen=True, slots=True)
class RoundNearestEven(RoundingToWhole):
    """The nearest integer, halves to the even one."""

    name: ClassVar[str] = "round_nearest_even"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.rint

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return integral(operands[0], round)


@dataclass(frozen=True, slots=True)
class Erf(Increasing):
    """The error function."""

    name: ClassVar[str] = "erf"
    domain: ClassVar[Domain] = "float"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return error_function(operands[0])

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return increasing(operands[0], math.erf, at_minus=-1.0, at_plus=1.0)


@dataclass(frozen=True, slots=True)
class Not(Unary):
    """Negation: logical for booleans, of every bit for integers."""

    name: ClassVar[str] = "not"
    domain: ClassVar[Domain] = "logical"
    ufunc: ClassVar[np.ufunc] = np.invert

    def check_domain(self, dtype: DType) -> None:
        super(Not, self).check_domain(dtype)
        if dtype.is_unsigned and dtype is not DType.U8:
            raise TypeMismatch(f"not is not defined on {dtype.value}; subtract from its largest value")

    def function(self, dtype: DType) -> str:
        return "not_unsigned" if dtype is DType.U8 else "not"

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        first, dtype = operands[0], result.dtype
        if dtype is DType.BOOL:
            return subtract(of_values([1]), first)
        return subtract(of_values([255 if dtype is DType.U8 else -1]), first)


@dataclass(frozen=True, slots=True)
class IsFinite(Unary):
    """Whether x is neither infinite nor NaN."""

    name: ClassVar[str] = "is_finite"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.isfinite

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        first = self.check_operands(operands)
        self.check_domain(first.dtype)
        return TensorType(first.shape, DType.BOOL)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        first = operands[0]
        if first.is_finite:
            return of_values([True])
        return of_values([False]) if is_no_number(first) else TRUTH

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        return "its argument is not infinite" if operands[0].may_be_infinite else ""


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
