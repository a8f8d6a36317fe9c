"""Elementwise operators of one operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rewright.ir.errors import TypeMismatch
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, Real
from rewright.ops.elementwise import Domain, Elementwise
from rewright.ops.special import error_function


class Unary(Elementwise):
    """One operand; the result has its type."""

    __slots__ = ()
    arity: ClassVar[int | None] = 1


@dataclass(frozen=True, slots=True)
class Negate(Unary):
    """``-x``."""

    name: ClassVar[str] = "negate"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.negative


@dataclass(frozen=True, slots=True)
class Exponential(Unary):
    """e to the power x."""

    name: ClassVar[str] = "exponential"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.exp


@dataclass(frozen=True, slots=True)
class ExponentialMinusOne(Unary):
    """``exp(x) - 1``."""

    name: ClassVar[str] = "exponential_minus_one"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.expm1


@dataclass(frozen=True, slots=True)
class Log(Unary):
    """The natural logarithm."""

    name: ClassVar[str] = "log"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.log


@dataclass(frozen=True, slots=True)
class LogPlusOne(Unary):
    """``log(1 + x)``."""

    name: ClassVar[str] = "log_plus_one"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.log1p


@dataclass(frozen=True, slots=True)
class Sqrt(Unary):
    """The nonnegative square root."""

    name: ClassVar[str] = "sqrt"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.sqrt


@dataclass(frozen=True, slots=True)
class Rsqrt(Unary):
    """``1 / sqrt(x)``."""

    name: ClassVar[str] = "rsqrt"
    domain: ClassVar[Domain] = "float"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return real(1) / np.sqrt(operands[0])


@dataclass(frozen=True, slots=True)
class Tanh(Unary):
    """The hyperbolic tangent."""

    name: ClassVar[str] = "tanh"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.tanh


@dataclass(frozen=True, slots=True)
class Logistic(Unary):
    """``1 / (1 + exp(-x))``."""

    name: ClassVar[str] = "logistic"
    domain: ClassVar[Domain] = "float"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return real(1) / (real(1) + np.exp(-operands[0]))


@dataclass(frozen=True, slots=True)
class Sine(Unary):
    """The sine."""

    name: ClassVar[str] = "sine"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.sin


@dataclass(frozen=True, slots=True)
class Cosine(Unary):
    """The cosine."""

    name: ClassVar[str] = "cosine"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.cos


@dataclass(frozen=True, slots=True)
class Abs(Unary):
    """The absolute value."""

    name: ClassVar[str] = "abs"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.abs


@dataclass(frozen=True, slots=True)
class Sign(Unary):
    """-1, 0 or 1."""

    name: ClassVar[str] = "sign"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.sign


@dataclass(frozen=True, slots=True)
class Floor(Unary):
    """The largest integer that is not above x."""

    name: ClassVar[str] = "floor"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.floor


@dataclass(frozen=True, slots=True)
class Ceil(Unary):
    """The smallest integer that is not below x."""

    name: ClassVar[str] = "ceil"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.ceil


@dataclass(frozen=True, slots=True)
class RoundNearestEven(Unary):
    """The nearest integer, halves to the even one."""

    name: ClassVar[str] = "round_nearest_even"
    domain: ClassVar[Domain] = "float"
    ufunc: ClassVar[np.ufunc] = np.rint


@dataclass(frozen=True, slots=True)
class Erf(Unary):
    """The error function."""

    name: ClassVar[str] = "erf"
    domain: ClassVar[Domain] = "float"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return error_function(operands[0])


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
