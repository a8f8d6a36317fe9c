"""Operators without operands: inputs, constants, and the index along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rewright.ir.dims import Dim, at_most
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import (
    Array,
    Real,
    TensorOperator,
    array_dtype,
    check_count,
    check_sizes,
    replace_size,
    static,
    wrap_integer,
)
from rewright.ops.counts import Counts
from rewright.ops.facts import INF, Facts, facts_between, of_values
from rewright.ops.functions.bytes import round_to_byte
from rewright.ops.sizes import Attributes, Axes, Sizes
from rewright.terms.index import Index
from rewright.terms.scalar import Apply, Fixed, Number, Scalar, Table


class Leaf(TensorOperator):
    """Made of no operands: its type is an attribute."""

    __slots__ = ()
    arity: ClassVar[int | None] = 0
    tensor: TensorType

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        return {"tensor": tuple(map(sizes.whole, result))}


@dataclass(frozen=True, slots=True)
class Input(Leaf):
    """A tensor given from outside under a name."""

    label: str
    tensor: TensorType
    name: ClassVar[str] = "input"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 0)
        check_sizes(self.name, self.tensor.shape)
        if "\0" in self.label:  # which the names of a prover's own tensors begin with
            raise TypeMismatch(f"input {self.label!r} has a null character in its name; give it another name")
        return self.tensor

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        raise RewrightError(f"input {self.label!r} has no value; give one under that name")

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Unsupported("an input is given and not computed")


def _are_of(dtype: DType, values: Sequence[float | int | bool]) -> bool:
    """Whether a float type of 8 bits has all of some numbers."""
    numbers = np.array(values, np.float64)
    return np.array_equal(round_to_byte(dtype, numbers), numbers, equal_nan=True)


@dataclass(frozen=True, slots=True)
class Constant(Leaf):
    """Fixed values in row-major order; one value fills the whole tensor (a splat). Integers wrap around."""

    tensor: TensorType
    values: tuple[float | int | bool, ...]
    name: ClassVar[str] = "constant"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 0)
        check_sizes(self.name, self.tensor.shape)
        if len(self.values) != 1 and self.tensor.size() != len(self.values):
            raise TypeMismatch(
                f"constant of type {self.tensor} has {len(self.values)} values; "
                f"give one, or {self.tensor.size()} in row-major order"
            )
        if self.tensor.dtype.is_integer and any(not -(1 << 63) <= value < 1 << 64 for value in self.values):
            raise TypeMismatch(f"constant of type {self.tensor} has a value of more than 64 bits; give a smaller one")
        if self.tensor.dtype.is_byte_float and not _are_of(self.tensor.dtype, self.values):
            raise TypeMismatch(f"constant of type {self.tensor} has a value that the type has not; round it first")
        return self.tensor

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        shape = static(self.name, self.tensor.shape)
        kind = self.tensor.dtype
        dtype = array_dtype(kind, real)
        values = [wrap_integer(kind, int(value)) for value in self.values] if kind.is_integer else self.values
        if len(values) == 1:
            return np.full(shape, values[0], dtype)
        return np.array(values, dtype).reshape(shape)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        if len(self.values) == 1:
            return Fixed(self.values[0])
        place = Index(0)
        step: Dim = 1
        strides: list[Dim] = []
        for size in reversed(result.shape):
            strides.append(step)
            step = step * size
        for axis, stride in zip(index, reversed(strides), strict=True):
            place = place + axis * stride
        return Table(self.values, place)

    def resize(self, operands: Sequence[TensorType], axis: int, size: Dim) -> Constant:
        return Constant(self.tensor.with_shape(replace_size(self.tensor.shape, axis, size)), self.values)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        return of_values(self.values)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.constant(result, self.values)


def splat(op: object) -> float | int | bool | None:
    """The value of a constant whose elements are one; None for a table, and for what is no constant."""
    return op.values[0] if isinstance(op, Constant) and len(op.values) == 1 else None


def is_table(op: object) -> bool:
    """Whether an operator holds values that differ from place to place."""
    return isinstance(op, Constant) and len(op.values) != 1


@dataclass(frozen=True, slots=True)
class Iota(Leaf):
    """The index along one axis: ``result[i] = i[dimension]``."""

    tensor: TensorType
    dimension: int
    name: ClassVar[str] = "iota"
    noun: ClassVar[str] = "arange"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 0)
        check_sizes(self.name, self.tensor.shape)
        if not 0 <= self.dimension < self.tensor.rank:
            raise TypeMismatch(f"iota along axis {self.dimension} of {self.tensor}, which has {self.tensor.rank} axes")
        if self.tensor.dtype is DType.BOOL and at_most(self.tensor.shape[self.dimension], 2) is False:
            raise TypeMismatch(f"iota of type {self.tensor} would need numbers above 1; use an integer dtype")
        return self.tensor

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        shape = static(self.name, self.tensor.shape)
        along = np.arange(shape[self.dimension]).astype(array_dtype(self.tensor.dtype, real))
        rest = len(shape) - self.dimension - 1
        return np.broadcast_to(along.reshape(-1, *(1,) * rest), shape)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Apply(f"convert_{self.tensor.dtype.value}", (Number(index[self.dimension]),))

    def resize(self, operands: Sequence[TensorType], axis: int, size: Dim) -> Iota:
        return Iota(self.tensor.with_shape(replace_size(self.tensor.shape, axis, size)), self.dimension)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        size = result.shape[self.dimension]
        return facts_between(0, size - 1 if isinstance(size, int) else INF, whole=True)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.number(result, result, self.dimension)
