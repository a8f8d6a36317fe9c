"""Operators that compute every element of the result from the elements at the same index of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, Real, TensorOperator, array_dtype, check_count, check_same_dtype
from rewright.ops.facts import Facts, fits, join, maximum, minimum, whole_limit
from rewright.ops.facts_functions import comparison, converted, integral
from rewright.terms.index import Index
from rewright.terms.scalar import Apply, Read, Scalar

Domain = Literal["float", "number", "logical", "any"]
_DOMAIN_NAMES = {"float": "floats", "number": "numbers", "logical": "booleans or integers", "any": "values"}


class Elementwise(TensorOperator):
    """All operands have one shape; nothing is broadcast implicitly."""

    __slots__ = ()
    domain: ClassVar[Domain] = "any"
    """Which dtypes the operands may have."""
    ufunc: ClassVar[np.ufunc]
    """The numpy function that computes it, where one does."""

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        first = self.check_operands(operands)
        check_same_dtype(self.name, operands)
        self.check_domain(first.dtype)
        return first

    def check_operands(self, operands: Sequence[TensorType]) -> TensorType:
        """The first operand's type; raises TypeMismatch where count or shapes are wrong."""
        check_count(self.name, operands, self.arity)
        first = operands[0]
        for other in operands[1:]:
            if other.shape != first.shape:
                raise TypeMismatch(
                    f"{self.name} needs operands of one shape and got {first} and {other}; broadcast one to the other"
                )
        return first

    def check_domain(self, dtype: DType) -> None:
        """Raise TypeMismatch where the operator is not defined on a dtype."""
        if not _allows(self.domain, dtype):
            raise TypeMismatch(f"{self.name} is defined on {_DOMAIN_NAMES[self.domain]} and got {dtype.value}")

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return self.ufunc(*operands)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Apply(self.function(operands[0].dtype), tuple(Read(k, index) for k in range(len(operands))))

    def function(self, dtype: DType) -> str:
        """The name of the scalar function on operands of a dtype."""
        return self.name

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        """The operands in which it is strictly increasing where the others are what is known of them; none by default.

        For floats, over the reals and both infinities: larger elements give larger ones, equal ones equal ones.
        """
        return ()


class Homogeneous(Elementwise):
    """All operands, and a result that is a number, count one thing: so many times as many give so many times as many.

    Of conversions this holds where the type holds the numbers.
    """

    __slots__ = ()


class Linear(Homogeneous):
    """A sum of results is the result of the sums."""

    __slots__ = ()


def _allows(domain: Domain, dtype: DType) -> bool:
    if domain == "any":
        return True
    if domain == "float":
        return dtype.is_float
    if domain == "number":
        return dtype is not DType.BOOL
    return not dtype.is_float


Direction = Literal["EQ", "NE", "LT", "LE", "GT", "GE"]
COMPARISONS: dict[str, np.ufunc] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Compare(Homogeneous):
    """A boolean for every pair of elements."""

    direction: Direction
    name: ClassVar[str] = "compare"
    arity: ClassVar[int | None] = 2

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        first = self.check_operands(operands)
        check_same_dtype(self.name, operands)
        if self.direction not in COMPARISONS:
            raise TypeMismatch(f"compare has no direction {self.direction!r}; use one of {', '.join(COMPARISONS)}")
        return TensorType(first.shape, DType.BOOL)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return COMPARISONS[self.direction](operands[0], operands[1])

    def function(self, dtype: DType) -> str:
        return f"compare_{self.direction}"

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return comparison(self.direction, operands[0], operands[1])

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        first, second = operands
        meets = (first.plus_infinity and second.plus_infinity) or (first.minus_infinity and second.minus_infinity)
        return "it compares no infinities of one sign" if meets else ""


@dataclass(frozen=True, slots=True)
class Select(Elementwise):
    """``on_true`` where the predicate holds, else ``on_false``; operands (predicate, on_true, on_false)."""

    name: ClassVar[str] = "select"
    arity: ClassVar[int | None] = 3

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        self.check_operands(operands)
        if operands[0].dtype is not DType.BOOL:
            raise TypeMismatch(f"select needs a boolean predicate and got {operands[0]}; compare it first")
        check_same_dtype(self.name, operands[1:])
        return operands[1]

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return np.where(operands[0], operands[1], operands[2])

    def moves(self, count: int) -> tuple[int, ...]:
        return (1, 2)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        predicate, on_true, on_false = operands
        if predicate.low == predicate.high:
            return on_true if predicate.low else on_false
        return join(on_true, on_false)


@dataclass(frozen=True, slots=True)
class Clamp(Homogeneous):
    """``min(max(x, low), high)``; operands (low, x, high)."""

    name: ClassVar[str] = "clamp"
    arity: ClassVar[int | None] = 3
    domain: ClassVar[Domain] = "number"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        low, value, high = operands
        return np.minimum(np.maximum(value, low), high)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        low, value, high = operands
        return minimum(maximum(value, low), high)


@dataclass(frozen=True, slots=True)
class Convert(Linear):
    """The same value in another dtype; floats become integers by truncation, and booleans by ``x != 0``.

    An integer that another integer dtype does not hold wraps around. A float becomes an integer only where that dtype
    holds its integral part: elsewhere, and for NaN and infinities, the result is not defined, as in PyTorch (execution
    gives some number). XLA, which defines it, is read as a choice around a conversion that is always defined.
    Between float dtypes no rounding happens: that casts preserve values is an assumption that verdicts name.
    """

    dtype: DType
    name: ClassVar[str] = "convert"
    arity: ClassVar[int | None] = 1

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        return TensorType(self.check_operands(operands).shape, self.dtype)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return operands[0].astype(array_dtype(self.dtype, real))

    def function(self, dtype: DType) -> str:
        return f"convert_{self.dtype.value}"

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return converted(operands[0], types[0].dtype, self.dtype)

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        (known,) = operands
        if known.exact and known.whole and self.dtype.is_float and not fits(known, self.dtype):
            return f"the whole numbers that it rounds to {self.dtype.value} are at most {whole_limit(self.dtype):,}"
        is_number = self.dtype.is_float or self.dtype is DType.BOOL
        if is_number or fits(integral(known, math.trunc), self.dtype):
            return ""
        return f"its argument fits {self.dtype.value}"
