"""Slices at starts that are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rewright.ir.dims import Dim, Shape
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import TensorType
from rewright.ops.base import Array, Demand, Real, TensorOperator, check_demands, check_same_dtype, replace_size, static
from rewright.ops.sizes import Attributes, Axes, Sizes, same_each
from rewright.terms.index import Index, element
from rewright.terms.scalar import Apply, Condition, Fixed, Number, Read, Scalar, all_of, at_least, choose, less_than


class Update(TensorOperator):
    """Operand 0 with other elements at some places that are computed, no more than there are updates."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DynamicSlice(TensorOperator):
    """A block of the given sizes; operands (x, one scalar start per axis).

    As in StableHLO a start is moved so that the block lies inside: ``clamp(0, start, size - block)``.
    """

    sizes: tuple[Dim, ...]
    name: ClassVar[str] = "dynamic_slice"
    noun: ClassVar[str] = "slice"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        operand = check_starts(self.name, operands, 1)
        if len(self.sizes) != operand.rank:
            raise TypeMismatch(f"dynamic_slice of {operand} needs {operand.rank} sizes and has {self.sizes}")
        check_demands(self, operands)
        return operand.with_shape(self.sizes)

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        found = [Demand("sizes of at least 0", 0, size) for size in self.sizes]
        pairs = zip(self.sizes, operands[0].shape, strict=True)
        return (*found, *(Demand("a block within the operand", size, available) for size, available in pairs))

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        for own, source in zip(result, operands[0], strict=True):
            sizes.part(own, source)
        return {"sizes": tuple(map(sizes.whole, result))}

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        sizes = static(self.name, self.sizes)
        return operands[0][_block(operands[0], sizes, operands[1:])]

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        starts = moved_starts(1, operands[0].shape, self.sizes)
        return Read(0, tuple(i + start for i, start in zip(index, starts, strict=True)))

    def resize(self, operands: Sequence[TensorType], axis: int, size: Dim) -> DynamicSlice:
        return DynamicSlice(replace_size(self.sizes, axis, size))

    def moves(self, count: int) -> tuple[int, ...]:
        return (0,)

    def indexed(self, count: int) -> tuple[tuple[int, int], ...]:
        return tuple((k, k - 1) for k in range(1, count))


@dataclass(frozen=True, slots=True)
class DynamicUpdateSlice(Update):
    """x with a block replaced; operands (x, update, one scalar start per axis), starts moved as in dynamic_slice."""

    name: ClassVar[str] = "dynamic_update_slice"
    noun: ClassVar[str] = "write to a slice"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        operand = check_starts(self.name, operands, 2)
        update = operands[1]
        check_same_dtype(self.name, operands[:2])
        if update.rank != operand.rank:
            raise TypeMismatch(f"dynamic_update_slice of {operand} needs an update of its rank and got {update}")
        check_demands(self, operands)
        return operand

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        pairs = zip(operands[1].shape, operands[0].shape, strict=True)
        return tuple(Demand("an update within the operand", size, available) for size, available in pairs)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        same_each(sizes, operands[0], result)
        for part, source in zip(operands[1], operands[0], strict=True):
            sizes.part(part, source)
        return {}

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        result = operands[0].copy()
        result[_block(operands[0], operands[1].shape, operands[2:])] = operands[1]
        return result

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        operand, update = operands[:2]
        starts = moved_starts(2, operand.shape, update.shape)
        places = tuple(i - start for i, start in zip(index, starts, strict=True))
        inside: list[Condition] = []
        for place, size, available in zip(places, update.shape, operand.shape, strict=True):
            if size != available:
                inside += [at_least(place, 0), less_than(place, size)]
        return choose(all_of(inside), Read(1, places), Read(0, index))

    def moves(self, count: int) -> tuple[int, ...]:
        return (0, 1)

    def indexed(self, count: int) -> tuple[tuple[int, int], ...]:
        return tuple((k, k - 2) for k in range(2, count))


def check_starts(name: str, operands: Sequence[TensorType], tensors: int) -> TensorType:
    """The first operand; raises TypeMismatch unless an integer scalar follows for each of its axes."""
    if not operands or len(operands) != tensors + operands[0].rank:
        expected = tensors + (operands[0].rank if operands else 0)
        raise TypeMismatch(f"{name} takes {expected} operands (a start for every axis) and got {len(operands)}")
    for start in operands[tensors:]:
        if start.rank or not start.dtype.is_integer:
            raise TypeMismatch(f"{name} needs integer scalars as starts and got {start}")
    return operands[0]


def _block(operand: Array, sizes: Sequence[int], starts: Sequence[Array]) -> tuple[slice, ...]:
    found: list[slice] = []
    for size, available, start in zip(sizes, operand.shape, starts, strict=True):
        first = min(max(int(start), 0), available - size)
        found.append(slice(first, first + size))
    return tuple(found)


def moved_starts(first: int, available: Shape, sizes: Shape) -> list[Index]:
    """The starts, operands from number ``first`` on, moved so that blocks of the given sizes lie inside."""
    found: list[Index] = []
    for axis, (size, room) in enumerate(zip(sizes, available, strict=True)):
        if size == room:
            found.append(Index(0))
            continue
        limits = (Fixed(0), Read(first + axis, ()), Number(Index(room - size)))
        found.append(element(Apply("clamp", limits)))
    return found
