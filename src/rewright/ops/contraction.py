"""Matrix products in their general form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rewright.ir.dims import product
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import (
    Array,
    Following,
    Real,
    TensorOperator,
    binder,
    check_axes,
    check_count,
    check_exact,
    check_same_dtype,
    fold_over,
)
from rewright.ops.facts import Facts, multiply, repeated_sum
from rewright.ops.sizes import Attributes, Axes, Sizes, same_each
from rewright.terms.index import Index
from rewright.terms.scalar import Apply, Read, Scalar


@dataclass(frozen=True, slots=True)
class DotGeneral(TensorOperator):
    """Sum of products over the contracting axes, for every index of the batch axes.

    Result axes: batch axes in the order of ``lhs_batch``, free axes of the left operand, free axes of the right.
    """

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    name: ClassVar[str] = "dot_general"
    noun: ClassVar[str] = "matrix product"
    accumulates: ClassVar[bool] = True
    needs: ClassVar[str] = "it multiplies no zero by an infinity"
    arity: ClassVar[int | None] = 2

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 2)
        left, right = operands
        dtype = check_same_dtype(self.name, operands)
        check_exact(self.name, dtype)
        if dtype is DType.BOOL:
            raise TypeMismatch("dot_general is defined on numbers and got i1; convert to an integer first")
        check_axes(self.name, "left axis", self.lhs_batch + self.lhs_contracting, left.rank)
        check_axes(self.name, "right axis", self.rhs_batch + self.rhs_contracting, right.rank)
        self._check_pairs("batch", self.lhs_batch, self.rhs_batch, left, right)
        self._check_pairs("contracting", self.lhs_contracting, self.rhs_contracting, left, right)
        lhs_free, rhs_free = self.free_axes(left.rank, right.rank)
        shape = (
            *(left.shape[axis] for axis in self.lhs_batch),
            *(left.shape[axis] for axis in lhs_free),
            *(right.shape[axis] for axis in rhs_free),
        )
        return left.with_shape(shape)

    def _check_pairs(
        self, what: str, lefts: tuple[int, ...], rights: tuple[int, ...], left: TensorType, right: TensorType
    ) -> None:
        if len(lefts) != len(rights):
            raise TypeMismatch(f"dot_general names {len(lefts)} left and {len(rights)} right {what} axes; pair them")
        for mine, other in zip(lefts, rights, strict=True):
            if left.shape[mine] != right.shape[other]:
                raise TypeMismatch(
                    f"dot_general {what} axes differ: left axis {mine} has size {left.shape[mine]}, "
                    f"right axis {other} has size {right.shape[other]}"
                )

    def free_axes(self, lhs_rank: int, rhs_rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Axes of each operand that are neither batch nor contracted, in order."""
        lefts = tuple(a for a in range(lhs_rank) if a not in self.lhs_batch and a not in self.lhs_contracting)
        rights = tuple(a for a in range(rhs_rank) if a not in self.rhs_batch and a not in self.rhs_contracting)
        return lefts, rights

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        left, right = operands
        paired = zip(self.lhs_batch + self.lhs_contracting, self.rhs_batch + self.rhs_contracting, strict=True)
        for a, b in paired:
            sizes.same(left[a], right[b])
        free = self.free_axes(len(left), len(right))
        kept = [*(left[a] for a in (*self.lhs_batch, *free[0])), *(right[b] for b in free[1])]
        same_each(sizes, kept, result)
        return {}

    def follows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        left, right = operands
        frees, count = self.free_axes(left.rank, right.rank), len(self.lhs_batch)
        rows = {axis: k for k, axis in enumerate((*self.lhs_batch, *frees[0]))}
        columns = dict(zip((*self.rhs_batch, *frees[1]), (*range(count), *range(len(rows), result.rank)), strict=True))
        return tuple(map(rows.get, range(left.rank))), tuple(map(columns.get, range(right.rank)))

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        left, right = operands
        lhs_free, rhs_free = self.free_axes(left.ndim, right.ndim)
        batch = [left.shape[axis] for axis in self.lhs_batch]
        rows = [left.shape[axis] for axis in lhs_free]
        columns = [right.shape[axis] for axis in rhs_free]
        inner = math.prod(left.shape[axis] for axis in self.lhs_contracting)
        count = math.prod(batch)
        first = left.transpose(self.lhs_batch + lhs_free + self.lhs_contracting)
        second = right.transpose(self.rhs_batch + self.rhs_contracting + rhs_free)
        result = np.matmul(
            first.reshape(count, math.prod(rows), inner), second.reshape(count, inner, math.prod(columns))
        )
        return result.reshape([*batch, *rows, *columns])

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        left, right = operands
        lhs_free, rhs_free = self.free_axes(left.rank, right.rank)
        inner = [binder(number) for number in range(len(self.lhs_contracting))]
        rows = len(self.lhs_batch) + len(lhs_free)
        lhs = dict(zip(self.lhs_batch + lhs_free + self.lhs_contracting, [*index[:rows], *inner], strict=True))
        columns = [*index[: len(self.rhs_batch)], *index[rows:], *inner]
        rhs = dict(zip(self.rhs_batch + rhs_free + self.rhs_contracting, columns, strict=True))
        factors = (
            Read(0, tuple(lhs[axis] for axis in range(left.rank))),
            Read(1, tuple(rhs[axis] for axis in range(right.rank))),
        )
        sizes = [left.shape[axis] for axis in self.lhs_contracting]
        return fold_over("sum", left.dtype, list(zip(inner, sizes, strict=True)), Apply("multiply", factors))

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        count = product(types[0].shape[axis] for axis in self.lhs_contracting)
        return repeated_sum(multiply(operands[0], operands[1]), count)
