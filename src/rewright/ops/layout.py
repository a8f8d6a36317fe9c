"""Operators that move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rewright.ir.dims import Dim, Shape, at_most, ceil_quotient, divide, is_nonnegative, product
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import TensorType
from rewright.ops.base import (
    Array,
    Demand,
    Following,
    Real,
    TensorOperator,
    check_axes,
    check_count,
    check_demands,
    check_same_dtype,
    check_sizes,
    replace_size,
    static,
)
from rewright.ops.digits import reshaped_index
from rewright.ops.sizes import Attributes, Axes, Sizes, same_each, same_shape
from rewright.terms.index import Index, quotient, remainder
from rewright.terms.scalar import Condition, IsZero, Read, Scalar, all_of, at_least, choose, less_than


class Layout(TensorOperator):
    """Every element of the result is an element of an operand; attributes alone say which. Nothing is computed."""

    __slots__ = ()

    def moves(self, count: int) -> tuple[int, ...]:
        return tuple(range(count))


class View(Layout):
    """A layout of one operand."""

    __slots__ = ()
    arity: ClassVar[int | None] = 1


class Lossless(View):
    """A view in which every element of the operand occurs, unless the result is empty."""

    __slots__ = ()


class Rearrangement(Lossless):
    """A view in which every element of the operand occurs once."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class BroadcastInDim(Lossless):
    """Repeat along new axes: operand axis k becomes result axis ``dimensions[k]``; size 1 stretches."""

    shape: Shape
    dimensions: tuple[int, ...]
    name: ClassVar[str] = "broadcast_in_dim"
    noun: ClassVar[str] = "broadcast"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        check_sizes(self.name, self.shape)
        operand = operands[0]
        if len(self.dimensions) != operand.rank:
            raise TypeMismatch(
                f"broadcast_in_dim of {operand} needs {operand.rank} dimensions and has {self.dimensions}"
            )
        check_axes(self.name, "dimension", self.dimensions, len(self.shape))
        for axis, size in zip(self.dimensions, operand.shape, strict=True):
            if size not in (1, self.shape[axis]):
                raise TypeMismatch(
                    f"broadcast_in_dim cannot stretch size {size} to {self.shape[axis]} at result axis {axis}; "
                    "only size 1 stretches"
                )
        return operand.with_shape(self.shape)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        for source, axis in zip(operands[0], self.dimensions, strict=True):
            if sizes.value(source) == self.shape[axis]:
                sizes.same(source, result[axis])
        return {"shape": tuple(map(sizes.whole, result))}

    def follows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        sizes = zip(self.dimensions, operands[0].shape, strict=True)
        return (tuple(d if size == self.shape[d] else None for d, size in sizes),)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        shape = static(self.name, self.shape)
        placed = [1] * len(shape)
        for axis, size in zip(self.dimensions, operands[0].shape, strict=True):
            placed[axis] = size
        order = sorted(range(operands[0].ndim), key=self.dimensions.__getitem__)
        return np.broadcast_to(operands[0].transpose(order).reshape(placed), shape)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        sizes = zip(self.dimensions, operands[0].shape, strict=True)
        return Read(0, tuple(index[d] if size == self.shape[d] else Index(0) for d, size in sizes))

    def resize(self, operands: Sequence[TensorType], axis: int, size: Dim) -> BroadcastInDim:
        return BroadcastInDim(replace_size(self.shape, axis, size), self.dimensions)


@dataclass(frozen=True, slots=True)
class Reshape(Rearrangement):
    """The same elements in row-major order under another shape."""

    shape: Shape
    name: ClassVar[str] = "reshape"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        check_sizes(self.name, self.shape)
        if product(self.shape) != operands[0].size():
            raise TypeMismatch(
                f"reshape of {operands[0]} ({operands[0].size()} elements) to {list(self.shape)} "
                f"({product(self.shape)} elements); the numbers of elements must agree"
            )
        return operands[0].with_shape(self.shape)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        sizes.regroup(operands[0], result)
        return {"shape": tuple(map(sizes.whole, result))}

    def follows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        before, after = (_places(shape) for shape in (operands[0].shape, self.shape))
        return (tuple(after.index(place) if place in after else None for place in before),)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return operands[0].reshape(static(self.name, self.shape))

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Read(0, reshaped_index(operands[0].shape, self.shape, index))

    def resize(self, operands: Sequence[TensorType], axis: int, size: Dim) -> Reshape:
        return Reshape(replace_size(self.shape, axis, size))


def _places(shape: Shape) -> list[tuple[Dim, Dim, int]]:
    """By axis how many elements are in front of it and along it, and how many axes of which this holds are before."""
    ends = [(product(shape[:axis]), size) for axis, size in enumerate(shape)]
    return [(*end, ends[:axis].count(end)) for axis, end in enumerate(ends)]


@dataclass(frozen=True, slots=True)
class Transpose(Rearrangement):
    """Result axis d is operand axis ``permutation[d]``."""

    permutation: tuple[int, ...]
    name: ClassVar[str] = "transpose"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        operand = operands[0]
        if sorted(self.permutation) != list(range(operand.rank)):
            raise TypeMismatch(f"transpose by {self.permutation} is no permutation of the {operand.rank} axes")
        return operand.with_shape(tuple(operand.shape[axis] for axis in self.permutation))

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        same_each(sizes, [operands[0][axis] for axis in self.permutation], result)
        return {}

    def follows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        return (tuple(map(self.permutation.index, range(result.rank))),)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return operands[0].transpose(self.permutation)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Read(0, tuple(index[self.permutation.index(axis)] for axis in range(result.rank)))


@dataclass(frozen=True, slots=True)
class Slice(View):
    """Elements ``start, start + stride, ...`` below ``limit`` along every axis."""

    start: tuple[Dim, ...]
    limit: tuple[Dim, ...]
    stride: tuple[int, ...]
    name: ClassVar[str] = "slice"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        operand = operands[0]
        if not len(self.start) == len(self.limit) == len(self.stride) == operand.rank:
            raise TypeMismatch(f"slice of {operand} needs a start, limit and stride for each of {operand.rank} axes")
        shape: list[Dim] = []
        check_demands(self, operands)
        for low, high, step in zip(self.start, self.limit, self.stride, strict=True):
            shape.append(_steps(high - low, step))
        return operand.with_shape(tuple(shape))

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        found: list[Demand] = []
        for low, high, step, size in zip(self.start, self.limit, self.stride, operands[0].shape, strict=True):
            found.append(Demand("a start of at least 0", 0, low))
            found.append(Demand("the start not above the limit", low, high))
            found.append(Demand("the limit within the axis", high, size))
            found.append(Demand("a stride of at least 1", 1, step))
        return tuple(found)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        cut = zip(result, operands[0], self.start, self.limit, self.stride, strict=True)
        start, limit = zip(*(sizes.slice(*axis) for axis in cut), strict=True) if result else ((), ())
        return {"start": start, "limit": limit}

    def follows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        axes = enumerate(zip(operands[0].shape, result.shape, self.stride, strict=True))
        return (tuple(axis if size == whole and step == 1 else None for axis, (whole, size, step) in axes),)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        start, limit = static(self.name, self.start), static(self.name, self.limit)
        return operands[0][tuple(slice(*bounds) for bounds in zip(start, limit, self.stride, strict=True))]

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        return Read(0, tuple(i * step + low for i, step, low in zip(index, self.stride, self.start, strict=True)))

    def resize(self, operands: Sequence[TensorType], axis: int, size: Dim) -> Slice:
        return Slice(self.start, replace_size(self.limit, axis, size), self.stride)


def _steps(length: Dim, step: Dim) -> Dim:
    """``ceil(length / step)``; the stride is a size in the patterns of rewrite rules."""
    if step == 1:
        return length
    if isinstance(length, int) or not isinstance(step, int):
        return ceil_quotient(length, step)
    # Only what the constant term lacks to a multiple of the stride can make the division exact.
    constant = dict(length.terms).get((), 0)
    found = divide(length + -constant % step, step) if step > 0 else None
    if found is not None:
        return found
    raise TypeMismatch(f"slice of {length} elements by stride {step} has no size that is a polynomial; use numbers")


@dataclass(frozen=True, slots=True)
class Pad(Layout):
    """Put ``low`` and ``high`` copies of a scalar around, ``interior`` copies between elements.

    Operands (x, scalar). A negative ``low`` or ``high`` removes elements.
    """

    low: tuple[Dim, ...]
    high: tuple[Dim, ...]
    interior: tuple[int, ...]
    name: ClassVar[str] = "pad"
    arity: ClassVar[int | None] = 2

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 2)
        operand, value = operands
        check_same_dtype(self.name, operands)
        if value.rank:
            raise TypeMismatch(f"pad needs a scalar to pad with and got {value}; reshape it to no axes")
        if not len(self.low) == len(self.high) == len(self.interior) == operand.rank:
            raise TypeMismatch(f"pad of {operand} needs low, high and interior for each of {operand.rank} axes")
        check_demands(self, operands)
        shape: list[Dim] = []
        for low, high, between, size in zip(self.low, self.high, self.interior, operand.shape, strict=True):
            shape.append(low + high + dilate(size, between + 1))
        return operand.with_shape(tuple(shape))

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        found = [Demand("interior padding of at least 0", 0, between) for between in self.interior]
        for low, high, between, size in zip(self.low, self.high, self.interior, operands[0].shape, strict=True):
            found += dilation_demands(size, between + 1)
            found.append(Demand("at least 0 elements left", 0, low + high + dilate(size, between + 1)))
        return tuple(found)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        low, high = list[Any](self.low), list[Any](self.high)
        for axis, (own, source) in enumerate(zip(result, operands[0], strict=True)):
            if self.interior[axis]:
                sizes.fix((own, source))
            else:
                low[axis], high[axis] = sizes.pad(own, source, self.low[axis], self.high[axis])
        return {"low": tuple(low), "high": tuple(high)}

    def keeps_rows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        widths = enumerate(zip(self.low, self.high, self.interior, strict=True))
        return tuple(axis if own == (0, 0, 0) else None for axis, own in widths), ()

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        low, high = static(self.name, self.low), static(self.name, self.high)
        operand, value = operands
        sizes = static(self.name, tuple(dilate(n, t + 1) for n, t in zip(operand.shape, self.interior, strict=True)))
        shape = [a + n + b for a, n, b in zip(low, sizes, high, strict=True)]
        result = np.full(shape, value, operand.dtype)
        to: list[slice] = []
        source: list[slice] = []
        for begin, size, count, between in zip(low, shape, operand.shape, self.interior, strict=True):
            step = between + 1
            first = max(0, -(begin // step)) if begin < 0 else 0
            last = max(first, min(count, -((begin - size) // step)))
            source.append(slice(first, last))
            to.append(slice(begin + first * step, max(begin + (last - 1) * step + 1, 0) if last > first else 0, step))
        if all(s.stop > s.start for s in source):
            result[tuple(to)] = operand[tuple(source)]
        return result

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        places: list[Index] = []
        inside: list[Condition] = []
        axes = zip(index, operands[0].shape, self.low, self.high, self.interior, strict=True)
        for i, size, low, high, between in axes:
            place = i - low
            # An index that a non-positive padding keeps inside needs no test.
            if at_most(low, 0) is not True:
                inside.append(at_least(place, 0))
            if at_most(high, 0) is not True or is_nonnegative(size - 1) is not True:
                inside.append(less_than(place, dilate(size, between + 1)))
            if between:
                inside.append(IsZero(remainder(place, between + 1)))
            places.append(quotient(place, between + 1))
        return choose(all_of(inside), Read(0, tuple(places)), Read(1, ()))


def dilate(size: Dim, step: Dim) -> Dim:
    """The size of an axis whose elements are put ``step`` apart."""
    if step == 1 or size == 0:
        return size
    return (size - 1) * step + 1


def dilation_demands(size: Dim, step: Dim) -> tuple[Demand, ...]:
    """That a symbolic axis is not empty where elements are put apart: the size of an empty one is no polynomial."""
    return () if step == 1 or isinstance(size, int) else (Demand("an axis with an element", 1, size, form=True),)


@dataclass(frozen=True, slots=True)
class Concatenate(Layout):
    """The operands one after the other along an axis."""

    dimension: int
    name: ClassVar[str] = "concatenate"
    noun: ClassVar[str] = "concatenation"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        if not operands:
            raise TypeMismatch("concatenate needs at least one operand")
        check_same_dtype(self.name, operands)
        first, axis = operands[0], self.dimension
        check_axes(self.name, "dimension", (axis,), first.rank)
        total: Dim = 0
        for other in operands:
            if other.shape[:axis] + other.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :]:
                raise TypeMismatch(f"concatenate along axis {axis} needs equal other axes and got {first} and {other}")
            total = total + other.shape[axis]
        return first.with_shape((*first.shape[:axis], total, *first.shape[axis + 1 :]))

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        for axis, own in enumerate(result):
            parts = [operand[axis] for operand in operands]
            if axis == self.dimension:
                sizes.join(own, parts)
            else:
                same_each(sizes, parts, [own] * len(parts))
        return {}

    def keeps_rows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        own = tuple(None if axis == self.dimension else axis for axis in range(result.rank))
        return (own,) * len(operands)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return np.concatenate(operands, axis=self.dimension)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        axis = self.dimension
        offset: Dim = 0
        pieces: list[tuple[Dim, Scalar]] = []
        for number, operand in enumerate(operands):
            place = (*index[:axis], index[axis] - offset, *index[axis + 1 :])
            offset = offset + operand.shape[axis]
            pieces.append((offset, Read(number, place)))

        def among(first: int, last: int) -> Scalar:
            """The element where the index lies in one of some pieces; a balanced tree keeps the depth of many small."""
            if last - first == 1:
                return pieces[first][1]
            middle = (first + last) // 2
            lower = all_of([less_than(index[axis], pieces[middle - 1][0])])
            return choose(lower, among(first, middle), among(middle, last))

        return among(0, len(pieces))


@dataclass(frozen=True, slots=True)
class Reverse(Rearrangement):
    """The elements in opposite order along some axes."""

    dimensions: tuple[int, ...]
    name: ClassVar[str] = "reverse"
    noun: ClassVar[str] = "flip"

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        check_axes(self.name, "dimension", self.dimensions, operands[0].rank)
        return operands[0]

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        return same_shape(sizes, operands, result)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return np.flip(operands[0], self.dimensions)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        flipped = [Index(size - 1) - i for i, size in zip(index, result.shape, strict=True)]
        return Read(0, tuple(flipped[d] if d in self.dimensions else i for d, i in enumerate(index)))
