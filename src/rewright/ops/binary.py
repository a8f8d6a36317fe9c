"""Elementwise operators of two operands of one dtype."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, Real
from rewright.ops.elementwise import Domain, Elementwise, Homogeneous, Linear
from rewright.ops.facts import (
    Facts,
    add,
    divide,
    maximum,
    minimum,
    multiply,
    of_dtype,
    power,
    quotient,
    remainder,
    subtract,
)
from rewright.ops.facts_functions import bitwise


class Binary(Elementwise):
    """Two operands; the result has their type."""

    __slots__ = ()
    arity: ClassVar[int | None] = 2


class Monoid(Binary):
    """An associative and commutative function with a neutral element: what reductions are made of."""

    __slots__ = ()


class Extremum(Monoid, Homogeneous):
    """The larger or the smaller one of two operands."""

    __slots__ = ()


class Bitwise(Monoid):
    """A function of truth values, or of the bits of integers one by one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Add(Monoid, Linear):
    """``x + y``."""

    name: ClassVar[str] = "add"
    needs: ClassVar[str] = "it adds no infinities of opposite signs"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.add

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return add(operands[0], operands[1])

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return tuple(k for k in (0, 1) if operands[1 - k].is_finite)


@dataclass(frozen=True, slots=True)
class Subtract(Binary, Linear):
    """``x - y``."""

    name: ClassVar[str] = "subtract"
    needs: ClassVar[str] = "it subtracts no infinities of one sign"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.subtract

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return subtract(operands[0], operands[1])

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return (0,) if operands[1].is_finite else ()


@dataclass(frozen=True, slots=True)
class Multiply(Monoid):
    """``x * y``."""

    name: ClassVar[str] = "multiply"
    needs: ClassVar[str] = "it multiplies no zero by an infinity"
    domain: ClassVar[Domain] = "number"
    ufunc: ClassVar[np.ufunc] = np.multiply

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return multiply(operands[0], operands[1])

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return tuple(k for k in (0, 1) if operands[1 - k].is_finite and operands[1 - k].is_positive)


@dataclass(frozen=True, slots=True)
class Divide(Binary):
    """``x / y``; integers are divided towards zero.

    An integer divided by zero has all bits set, as XLA has it; PyTorch raises there.
    """

    name: ClassVar[str] = "divide"
    needs: ClassVar[str] = "its divisor is not zero"
    domain: ClassVar[Domain] = "number"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        left, right = operands
        if left.dtype.kind == "f":
            return left / right
        quotient = left // right
        quotient += (quotient * right != left) & ((left < 0) != (right < 0))
        return np.where(right == 0, ~np.zeros_like(left), quotient)

    def function(self, dtype: DType) -> str:
        return "divide" if dtype.is_float else "divide_integer"

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        first, second = operands
        return divide(first, second) if result.dtype.is_float else quotient(first, second, result.dtype)

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        return (0,) if operands[1].is_finite and operands[1].is_positive else ()

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        is_zero = operands[1].zero and not result.dtype.is_float
        return self.needs if is_zero else super(Divide, self).condition(operands, result, found)


@dataclass(frozen=True, slots=True)
class Remainder(Binary, Homogeneous):
    """What is left of x after dividing by y towards zero; it has the sign of x.

    Of an integer and zero it is x, as XLA has it; PyTorch raises there.
    """

    name: ClassVar[str] = "remainder"
    needs: ClassVar[str] = "its divisor is not zero"
    domain: ClassVar[Domain] = "number"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        left, right = operands
        rest = np.fmod(left, right)
        return rest if left.dtype.kind == "f" else np.where(right == 0, left, rest)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return remainder(operands[0], operands[1])

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        is_zero = operands[1].zero and not result.dtype.is_float
        return self.needs if is_zero else super(Remainder, self).condition(operands, result, found)


@dataclass(frozen=True, slots=True)
class Power(Binary):
    """x to the power y; an integer to a negative power is truncated towards zero."""

    name: ClassVar[str] = "power"
    needs: ClassVar[str] = "its base is positive"
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

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        if not result.dtype.is_float:
            return of_dtype(result.dtype)
        return power(operands[0], operands[1])


@dataclass(frozen=True, slots=True)
class Maximum(Extremum):
    """The larger one; NaN where either is NaN."""

    name: ClassVar[str] = "maximum"
    domain: ClassVar[Domain] = "any"
    ufunc: ClassVar[np.ufunc] = np.maximum

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return maximum(operands[0], operands[1])


@dataclass(frozen=True, slots=True)
class Minimum(Extremum):
    """The smaller one; NaN where either is NaN."""

    name: ClassVar[str] = "minimum"
    domain: ClassVar[Domain] = "any"
    ufunc: ClassVar[np.ufunc] = np.minimum

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return minimum(operands[0], operands[1])


@dataclass(frozen=True, slots=True)
class And(Bitwise):
    """Conjunction: logical for booleans, bitwise for integers."""

    name: ClassVar[str] = "and"
    domain: ClassVar[Domain] = "logical"
    ufunc: ClassVar[np.ufunc] = np.bitwise_and

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return bitwise("and", operands[0], operands[1], result.dtype)


@dataclass(frozen=True, slots=True)
class Or(Bitwise):
    """Disjunction: logical for booleans, bitwise for integers."""

    name: ClassVar[str] = "or"
    domain: ClassVar[Domain] = "logical"
    ufunc: ClassVar[np.ufunc] = np.bitwise_or

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return bitwise("or", operands[0], operands[1], result.dtype)


@dataclass(frozen=True, slots=True)
class Xor(Bitwise):
    """Exclusive or: logical for booleans, bitwise for integers."""

    name: ClassVar[str] = "xor"
    domain: ClassVar[Domain] = "logical"
    ufunc: ClassVar[np.ufunc] = np.bitwise_xor

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return bitwise("xor", operands[0], operands[1], result.dtype)
