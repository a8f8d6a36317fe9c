"""Comparisons, and choices by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rewright.ir.errors import TypeMismatch
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, Real, check_same_dtype
from rewright.ops.counts import Counts
from rewright.ops.elementwise import Elementwise, Homogeneous, Limiting
from rewright.ops.facts import Facts
from rewright.ops.functions import order
from rewright.ops.functions.record import Direction, ScalarFunction


@dataclass(frozen=True, slots=True)
class Compare(Homogeneous):
    """A boolean for every pair of elements."""

    direction: Direction
    name: ClassVar[str] = "compare"
    noun: ClassVar[str] = "comparison"
    arity: ClassVar[int | None] = 2

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        first = self.check_operands(operands)
        check_same_dtype(self.name, operands)
        if self.direction not in order.COMPARISONS:
            raise TypeMismatch(
                f"compare has no direction {self.direction!r}; use one of {', '.join(order.COMPARISONS)}"
            )
        return TensorType(first.shape, DType.BOOL)

    def record(self, dtype: DType) -> ScalarFunction:
        return order.COMPARISONS[self.direction]

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return order.COMPARISONS[self.direction].values.numpy(*operands)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.same(operands)
        if self.direction in ("EQ", "NE"):
            counts.test(operands)

    def condition(self, operands: Sequence[Facts], result: TensorType, found: Facts) -> str:
        first, second = operands
        meets = (first.plus_infinity and second.plus_infinity) or (first.minus_infinity and second.minus_infinity)
        return "it compares no infinities of one sign" if meets else ""


@dataclass(frozen=True, slots=True)
class Select(Elementwise):
    """``on_true`` where the predicate holds, else ``on_false``; operands (predicate, on_true, on_false)."""

    scalar = order.SELECT

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        self.check_operands(operands)
        if operands[0].dtype is not DType.BOOL:
            raise TypeMismatch(f"select needs a boolean predicate and got {operands[0]}; compare it first")
        check_same_dtype(self.name, operands[1:])
        return operands[1]

    def moves(self, count: int) -> tuple[int, ...]:
        return (1, 2)


@dataclass(frozen=True, slots=True)
class Clamp(Limiting):
    """``min(max(x, low), high)``; operands (low, x, high)."""

    scalar = order.CLAMP
