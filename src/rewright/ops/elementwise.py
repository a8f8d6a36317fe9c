"""Operators that compute every element of the result from the elements at the same index of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import (
    Array,
    Following,
    Real,
    TensorOperator,
    array_dtype,
    check_count,
    check_exact,
    check_same_dtype,
)
from rewright.ops.counts import Counts
from rewright.ops.facts import Facts, fits, of_dtype, whole_limit
from rewright.ops.functions.intervals import convert_facts, integral
from rewright.ops.functions.record import Dtypes, ScalarFunction
from rewright.ops.sizes import Attributes, Axes, Sizes, same_shape
from rewright.terms.index import Index
from rewright.terms.scalar import Apply, Read, Scalar

_DTYPE_NAMES = {"float": "floats", "number": "numbers", "logical": "booleans or integers", "any": "values"}


class Elementwise(TensorOperator):
    """All operands have one shape; nothing is broadcast implicitly.

    A class names the record of its scalar function, which says all else. Where the dtype decides which function it is,
    the class overrides ``record``.
    """

    __slots__ = ()
    scalar: ClassVar[ScalarFunction | None] = None
    """None where there is no record of it, as for conversions."""
    integer: ClassVar[ScalarFunction | None] = None
    """The function of integers and truth values, where that is another one."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        scalar = cls.scalar
        if scalar is not None:
            cls.name, cls.arity, cls.needs = scalar.name, scalar.operands.count, scalar.domain.needs
            cls.noun = (scalar.code.torch or scalar.name).removeprefix("bitwise_")

    def record(self, dtype: DType) -> ScalarFunction | None:
        """The scalar function on operands of a dtype; None where there is no record of it, as for conversions."""
        return self.scalar if self.integer is None or dtype.is_float else self.integer

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        first = self.check_operands(operands)
        check_same_dtype(self.name, operands)
        self.check_domain(first.dtype)
        if not isinstance(self, Limiting):
            check_exact(self.name, first.dtype)
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
        allowed = "any" if self.scalar is None else self.scalar.operands.dtypes
        if not _allows(allowed, dtype):
            raise TypeMismatch(f"{self.name} is defined on {_DTYPE_NAMES[allowed]} and got {dtype.value}")

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        return same_shape(sizes, operands, result)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        if len(operands) > 1 and not self.moves(len(operands)):
            counts.mix(result, operands)
        else:
            super().relate_counts(counts, operands, result)

    def follows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        return (tuple(range(result.rank)),) * len(operands)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        record = self.scalar if self.integer is None or operands[0].dtype.kind == "f" else self.integer
        assert record is not None, "what has no record is computed by its class"
        return record.values.numpy(*operands)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        record = self.record(types[0].dtype)
        return of_dtype(result.dtype) if record is None else record.facts(operands, result.dtype)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Apply(self.function(operands[0].dtype), tuple(Read(k, index) for k in range(len(operands))))

    def function(self, dtype: DType) -> str:
        """The name of the scalar function on operands of a dtype."""
        record = self.record(dtype)
        return self.name if record is None else record.name

    def grows_with(self, operands: Sequence[Facts]) -> tuple[int, ...]:
        """The operands in which it is strictly increasing where the others are what is known of them.

        For floats, over the reals and both infinities: larger elements give larger ones, equal ones equal ones.
        """
        record = self.record(DType.F64)
        return (0,) if record is not None and record.is_increasing else ()

    falls_with: ClassVar[tuple[int, ...]] = ()
    """The operands in which it is strictly decreasing, whatever real numbers the others are."""


class Homogeneous(Elementwise):
    """All operands, and a result that is a number, count one thing: so many times as many give so many times as many.

    Of conversions this holds where the type holds the numbers.
    """

    __slots__ = ()

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.same([result, *operands])


class Limiting(Homogeneous):
    """One of its operands, by their order: it is no smaller where one of them is larger."""

    __slots__ = ()


class Linear(Homogeneous):
    """A sum of results is the result of the sums."""

    __slots__ = ()


def _allows(domain: Dtypes, dtype: DType) -> bool:
    if domain == "any":
        return True
    if domain == "float":
        return dtype.is_float
    if domain == "number":
        return dtype is not DType.BOOL
    return not dtype.is_float


@dataclass(frozen=True, slots=True)
class Convert(Linear):
    """The same value in another dtype; floats become integers by truncation, and booleans by ``x != 0``.

    An integer that another integer dtype does not hold wraps around. A float becomes an integer only where that dtype
    holds its integral part: elsewhere, and for NaN and infinities, the result is not defined, as in PyTorch (execution
    gives some number). XLA, which defines it, is read as a choice around a conversion that is always defined.
    Between float dtypes no rounding happens: that casts preserve values is an assumption that verdicts name. Casts to
    floats of 8 bits round, and are other operators (``ROUNDING``).
    """

    dtype: DType
    name: ClassVar[str] = "convert"
    noun: ClassVar[str] = "cast"
    arity: ClassVar[int | None] = 1

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        first = self.check_operands(operands)
        if self.dtype.is_byte_float and first.dtype is not self.dtype:
            raise TypeMismatch(f"a cast to {self.dtype.value} rounds; use the operator that rounds to it")
        return TensorType(first.shape, self.dtype)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return operands[0].astype(array_dtype(self.dtype, real))

    def function(self, dtype: DType) -> str:
        return f"convert_{self.dtype.value}"

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return convert_facts(operands[0], types[0].dtype, self.dtype)

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        (known,) = operands
        if known.exact and known.whole and self.dtype.is_float and not fits(known, self.dtype):
            return f"the whole numbers that it rounds to {self.dtype.value} are at most {whole_limit(self.dtype):,}"
        is_number = self.dtype.is_float or self.dtype is DType.BOOL
        if is_number or fits(integral(known, math.trunc), self.dtype):
            return ""
        return f"its argument fits {self.dtype.value}"
