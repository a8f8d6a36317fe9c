"""Sorting along an axis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rewright.ir.dims import Dim
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import (
    Array,
    Demand,
    Real,
    TensorOperator,
    check_axes,
    check_count,
    check_demands,
    fold_over,
    static,
)
from rewright.ops.counts import Counts
from rewright.ops.facts import INF, Facts, facts_between
from rewright.ops.sizes import Attributes, Axes, Sizes, same_each, same_shape
from rewright.terms.index import Index, Variable, as_index, element, variable
from rewright.terms.scalar import (
    Absent,
    Apply,
    Choose,
    Fixed,
    Fold,
    IsZero,
    Number,
    Read,
    Scalar,
    all_of,
    choose,
    less_than,
)

SortResult = Literal["values", "indices"]


class Ordering(TensorOperator):
    """The elements of rows of one operand in the order of their values, or the places that they had."""

    __slots__ = ()
    arity: ClassVar[int | None] = 1
    result: SortResult

    @property
    @abstractmethod
    def axis(self) -> int:
        """The axis that elements are ordered along; -1 is the last one."""

    def along(self, rank: int) -> int:
        """The axis of rows, counted from the first one."""
        return self.axis % rank

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        super().relate_counts(counts, operands, result)
        if self.result == "indices":
            counts.number(result, operands[0], self.axis)

    def moves(self, count: int) -> tuple[int, ...]:
        return (0,) if self.result == "values" else ()

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        if self.result == "values":
            return operands[0]
        size = types[0].shape[self.axis]
        return facts_between(0, size - 1 if isinstance(size, int) else INF, whole=True)

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        if operands[0].nan:
            return "none of its operands is NaN"
        chooses = self.result == "indices" and operands[0].may_be_infinite
        return "no two of the elements that it orders are infinite" if chooses else ""


@dataclass(frozen=True, slots=True)
class Sort(Ordering):
    """A stable sort along an axis: the values, or the 64-bit indices that they had."""

    dimension: int
    descending: bool
    result: SortResult
    name: ClassVar[str] = "sort"

    @property
    def axis(self) -> int:
        return self.dimension

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        check_axes(self.name, "dimension", (self.dimension,), operands[0].rank)
        return _result_type(self.name, operands[0], self.result)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        return same_shape(sizes, operands, result)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return sort_along(operands[0], self.dimension, self.descending, self.result)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return ranked(operands[0], index, self.dimension, self.descending, self.result)


@dataclass(frozen=True, slots=True)
class TopK(Ordering):
    """The k largest elements along the last axis, largest first; of equal ones the first comes first."""

    k: Dim
    result: SortResult
    name: ClassVar[str] = "top_k"

    @property
    def axis(self) -> int:
        return -1

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        operand = operands[0]
        if not operand.rank:
            raise TypeMismatch(f"top_k needs an axis and got {operand}")
        check_demands(self, operands)
        return _result_type(self.name, operand.with_shape((*operand.shape[:-1], self.k)), self.result)

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        last = operands[0].shape[-1]
        return Demand("k of at least 0", 0, self.k), Demand("k within the last axis", self.k, last)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        same_each(sizes, operands[0][:-1], result[:-1])
        sizes.chosen(result[-1], operands[0][-1])
        return {"k": sizes.whole(result[-1])}

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        (count,) = static(self.name, (self.k,))
        return sort_along(operands[0], operands[0].ndim - 1, True, self.result)[..., :count]

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        if not is_ranked(self, operands[0]):
            return largest(operands[0], index[:-1], self.result)
        return ranked(operands[0], index, result.rank - 1, True, self.result)


def _result_type(name: str, values: TensorType, result: str) -> TensorType:
    if result not in ("values", "indices"):
        raise TypeMismatch(f"{name} has no result {result!r}; use values or indices")
    return values if result == "values" else TensorType(values.shape, DType.I64)


def sort_along(operand: Array, axis: int, descending: bool, result: SortResult) -> Array:
    """A stable sort of an array: values or indices. NaN counts as the largest value."""
    if descending:
        # Sorting the reversed axis and reversing the answer keeps equal elements in their order.
        last = operand.shape[axis] - 1
        order = last - np.flip(np.argsort(np.flip(operand, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(operand, axis=axis, kind="stable")
    return order if result == "indices" else np.take_along_axis(operand, order, axis)


def is_ranked(op: TopK, operand: TensorType) -> bool:
    """Whether elements are chosen by their rank; the first one is a maximum, and its place the first that has it."""
    return op.k != 1 or operand.dtype is DType.BOOL


def largest(operand: TensorType, row: tuple[Index, ...], result: str) -> Scalar:
    """The first of a stable sort, largest first: the maximum m of a row, or the least place at which the row is m.

    No element is larger than the first one, so that it is m, and no equal one is before it. NaN counts as the largest:
    where there is one, m is NaN, which no element equals, and the elements that do not equal themselves are those that
    are sought. The others count as the last place, which is less than no other one, so that the place is in the row.
    """
    own, other, size = variable("k0"), variable("k1"), operand.shape[-1]
    whole = fold_over("maximum", operand.dtype, [(other, size)], Read(0, (*row, other)))
    if result == "values":
        return whole
    here = Read(0, (*row, own))
    found: Scalar = Apply("compare_EQ", (here, whole))
    if operand.dtype.is_float:
        found = Apply("or", (found, Apply("compare_NE", (here, here))))
    last = as_index(size) - 1
    place = Apply("select", (found, Number(own), Number(last)))
    return fold_over("minimum", DType.I64, [(own, size)], place)


def ranked(operand: TensorType, index: tuple[Index, ...], axis: int, descending: bool, result: str) -> Scalar:
    """The element whose rank is the index along the axis.

    The rank of an element is the number of those that come before it: smaller ones (larger, if descending), and
    equal ones at smaller positions, which makes it a stable sort.
    """
    own, other = variable("k0"), variable("k1")
    size = operand.shape[axis]

    def at(place: Index) -> tuple[Index, ...]:
        return (*index[:axis], place, *index[axis + 1 :])

    values = (Read(0, at(other)), Read(0, at(own)))
    strictly = Apply("compare_GT" if descending else "compare_LT", values)
    earlier = Choose(less_than(other, own), Apply("compare_EQ", values), Fixed(False))
    before = Apply("convert_i64", (Apply("or", (strictly, earlier)),))
    rank = element(Fold("sum", Variable("k1"), size, before, Fixed(0)))
    chosen: Scalar = Read(0, at(own)) if result == "values" else Number(own)
    found = choose(all_of([IsZero(rank - index[axis])]), chosen, Absent())
    return Fold("last", Variable("k0"), size, found, Absent())
