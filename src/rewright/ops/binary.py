"""Elementwise operators of two operands of one dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rewright.ir.types import DType
from rewright.ops.base import Array, Real
from rewright.ops.elementwise import Domain, Elementwise


class Binary(Elementwise):
    """Two operands; the result has their type."""

    __slots__ = ()
    arity: ClassVar[int | None] = 2


@dataclass(frozen=True, slots=True)
class Add(Binary):
    """``x + y``."""

    name: ClassVar[str] = "add"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.add


@dataclass(frozen=True, slots=True)
class Subtract(Binary):
    """``x - y``."""

    name: ClassVar[str] = "subtract"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.subtract


@dataclass(frozen=True, slots=True)
class Multiply(Binary):
    """``x * y``."""

    name: ClassVar[str] = "multiply"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.multiply


@dataclass(frozen=True, slots=True)
class Divide(Binary):
    """``x / y``; integers are divided towards zero."""

    name: ClassVar[str] = "divide"
    domain: ClassVar[Domain] = "number"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        left, right = operands
        if left.dtype.kind == "f":
            return left / right
        quotient = left // right
        return quotient + ((quotient * right != left) & ((left < 0) != (right < 0)))

    def function(self, dtype: DType) -> str:
        return "divide" if dtype.is_float else "divide_integer"


@dataclass(frozen=True, slots=True)
class Remainder(Binary):
    """What is left of x after dividing by y towards zero; it has the sign of x."""

    name: ClassVar[str] = "remainder"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.fmod


@dataclass(frozen=True, slots=True)
class Power(Binary):
    """x to the power y; an integer to a negative power is truncated towards zero."""

    name: ClassVar[str] = "power"
    domain: ClassVar[Domain] = "number"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        base, exponent = operands
        if base.dtype.kind == "f":
            return np.power(base, exponent)
        positive = np.power(base, np.maximum(exponent, 0))
        sign = np.where(exponent % 2 == 0, 1, base)
        negative = np.where(np.abs(base) == 1, sign, 0)
        return np.where(exponent < 0, negative, positive).astype(base.dtype)

    def function(self, dtype: DType) -> str:
        return "power" if dtype.is_float else "power_integer"


@dataclass(frozen=True, slots=True)
class Maximum(Binary):
    """The larger one; NaN where either is NaN."""

    name: ClassVar[str] = "maximum"
    domain: ClassVar[Domain] = "any"
    ufunc: ClassVar[np.ufunc] = np.maximum


@dataclass(frozen=True, slots=True)
class Minimum(Binary):
    """The smaller one; NaN where either is NaN."""

    name: ClassVar[str] = "minimum"
    domain: ClassVar[Domain] = "any"
    ufunc: ClassVar[np.ufunc] = np.minimum


@dataclass(frozen=True, slots=True)
class And(Binary):
    """Conjunction: logical for booleans, bitwise for integers."""

    name: ClassVar[str] = "and"
    domain: ClassVar[Domain] = "logical"
    ufunc: ClassVar[np.ufunc] = np.bitwise_and


@dataclass(frozen=True, slots=True)
class Or(Binary):
    """Disjunction: logical for booleans, bitwise for integers."""

    name: ClassVar[str] = "or"
    domain: ClassVar[Domain] = "logical"
    ufunc: ClassVar[np.ufunc] = np.bitwise_or


@dataclass(frozen=True, slots=True)
class Xor(Binary):
    """Exclusive or: logical for booleans, bitwise for integers."""

    name: ClassVar[str] = "xor"
    domain: ClassVar[Domain] = "logical"
    ufunc: ClassVar[np.ufunc] = np.bitwise_xor
