"""Reductions over whole axes and over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rewright.ir.dims import Dim, SizeExpr, at_most, ceil_quotient, divide, product
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import (
    REDUCERS,
    Array,
    Combining,
    Demand,
    Following,
    Real,
    ReductionKind,
    binder,
    check_axes,
    check_count,
    check_demands,
    check_kind,
    fold_over,
    identity_value,
    static,
)
from rewright.ops.counts import Counts
from rewright.ops.facts import Facts, join, of_values
from rewright.ops.functions.intervals import reduce_facts
from rewright.ops.sizes import Attributes, Axes, Sizes, same_each
from rewright.terms.index import Index
from rewright.terms.scalar import Condition, Fixed, Read, Scalar, all_of, at_least, choose, less_than


@dataclass(frozen=True, slots=True)
class Reduce(Combining):
    """Combine all elements along some axes, which disappear; of no element: the identity of the kind."""

    kind: ReductionKind
    dimensions: tuple[int, ...]
    name: ClassVar[str] = "reduce"
    noun: ClassVar[str] = "{0.kind}"
    accumulates: ClassVar[bool] = True
    needs: ClassVar[str] = "it reduces neither an empty axis nor infinities of opposite signs"
    arity: ClassVar[int | None] = 1

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        operand = operands[0]
        check_axes(self.name, "dimension", self.dimensions, operand.rank)
        check_kind(self.name, self.kind, operand.dtype)
        return operand.with_shape(tuple(n for axis, n in enumerate(operand.shape) if axis not in self.dimensions))

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        kept = [source for axis, source in enumerate(operands[0]) if axis not in self.dimensions]
        same_each(sizes, kept, result)
        return {}

    def follows(self, operands: Sequence[TensorType], result: TensorType) -> tuple[Following, ...]:
        kept = [axis for axis in range(operands[0].rank) if axis not in self.dimensions]
        return (tuple(kept.index(axis) if axis in kept else None for axis in range(operands[0].rank)),)

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        return reduce_axes(self.kind, operands[0], self.dimensions)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        operand = operands[0]
        rest = iter(index)
        folded = {axis: binder(number) for number, axis in enumerate(self.dimensions)}
        place = tuple(folded[axis] if axis in folded else next(rest) for axis in range(operand.rank))
        over = [(folded[axis], operand.shape[axis]) for axis in self.dimensions]
        return fold_over(self.kind, operand.dtype, over, Read(0, place))

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        count = product(types[0].shape[axis] for axis in self.dimensions)
        return reduce_facts(self.kind, operands[0], count, result.dtype)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        _count(counts, self.kind, operands[0], self.dimensions, result)


def _count(counts: Counts, kind: str, operand: int, axes: Sequence[int], result: int) -> None:
    """An extreme element counts what all do; how many there are along an axis is another question."""
    if kind in ("maximum", "minimum"):
        counts.same([result, operand])
    elif kind == "sum":
        counts.total(result, operand, axes)


def reduce_axes(kind: str, operand: Array, axes: tuple[int, ...]) -> Array:
    """A reduction of an array over some axes, in the dtype of the array."""
    if not axes:
        return operand
    start = identity_of(kind, operand)
    return np.asarray(REDUCERS[kind].reduce(operand, axis=axes, dtype=operand.dtype, initial=start))


def identity_of(kind: str, operand: Array) -> float | int | bool:
    """The identity of a reduction in the dtype of an array."""
    return identity_value(kind, _DTYPES[operand.dtype.name])


_DTYPES = {
    "float64": DType.F64,
    "float32": DType.F32,
    "int64": DType.I64,
    "int32": DType.I32,
    "int16": DType.I16,
    "int8": DType.I8,
    "uint64": DType.U64,
    "uint32": DType.U32,
    "uint16": DType.U16,
    "uint8": DType.U8,
    "bool": DType.BOOL,
}


@dataclass(frozen=True, slots=True)
class ReduceWindow(Combining):
    """Combine the elements of a sliding window; outside the operand the identity of the kind is read.

    One entry per axis; ``padding`` is (low, high). A cumulative sum is a window as long as the axis with padding
    (length - 1, 0).
    """

    kind: ReductionKind
    window: tuple[Dim, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[Dim, Dim], ...]
    name: ClassVar[str] = "reduce_window"
    noun: ClassVar[str] = "sliding {0.kind}"
    accumulates: ClassVar[bool] = True
    needs: ClassVar[str] = "no window is empty and none holds infinities of opposite signs"
    arity: ClassVar[int | None] = 1

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 1)
        operand = operands[0]
        check_kind(self.name, self.kind, operand.dtype)
        if not len(self.window) == len(self.strides) == len(self.padding) == operand.rank:
            raise TypeMismatch(
                f"reduce_window of {operand} needs window, stride and padding for each of {operand.rank} axes"
            )
        shape = [
            window_count(self.name, size + low + high, window, stride)
            for size, window, stride, (low, high) in zip(
                operand.shape, self.window, self.strides, self.padding, strict=True
            )
        ]
        check_demands(self, operands)
        return operand.with_shape(tuple(shape))

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        found = [Demand("padding of at least 0", 0, side) for pair in self.padding for side in pair]
        for size, window, (low, high) in zip(operands[0].shape, self.window, self.padding, strict=True):
            found += window_demands(size + low + high, window)
        return (*found, *(Demand("strides of at least 1", 1, stride) for stride in self.strides))

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        window, padding = list[Any](self.window), list[Any](self.padding)
        for axis, (own, source) in enumerate(zip(result, operands[0], strict=True)):
            if self.strides[axis] != 1:
                sizes.fix((own, source))
            else:
                window[axis], *added = sizes.slide(own, source, self.window[axis], *self.padding[axis])
                padding[axis] = tuple(added)
        return {"window": tuple(window), "padding": tuple(padding)}

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        operand = operands[0]
        if not operand.ndim:
            return operand
        window = static(self.name, self.window)
        padding = [static(self.name, pair) for pair in self.padding]
        if self.is_cumulative(operand.shape):
            axis = next(a for a, size in enumerate(window) if size != 1)
            return np.asarray(REDUCERS[self.kind].accumulate(operand, axis=axis, dtype=operand.dtype))
        identity = identity_of(self.kind, operand)
        padded = np.pad(operand, padding, constant_values=identity)
        if any(size < width for size, width in zip(padded.shape, window, strict=True)):
            return np.zeros(self._counts(padded.shape, window), operand.dtype)
        views = np.lib.stride_tricks.sliding_window_view(padded, window)
        views = views[tuple(slice(None, None, stride) for stride in self.strides)]
        return reduce_axes(self.kind, views, tuple(range(operand.ndim, 2 * operand.ndim)))

    def _counts(self, padded: Sequence[int], window: Sequence[int]) -> tuple[int, ...]:
        return tuple(
            max(0, (size - width) // stride + 1)
            for size, width, stride in zip(padded, window, self.strides, strict=True)
        )

    def is_cumulative(self, shape: Sequence[Dim]) -> bool:
        """Whether this is a prefix reduction along exactly one axis, from its beginning."""
        moving = [axis for axis, size in enumerate(self.window) if size != 1]
        if len(moving) != 1 or any(stride != 1 for stride in self.strides):
            return False
        size = shape[moving[0]]
        expected = tuple((size - 1, 0) if axis == moving[0] else (0, 0) for axis in range(len(shape)))
        return self.window[moving[0]] == size and size != 0 and self.padding == expected

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        operand = operands[0]
        places: list[Index] = []
        over: list[tuple[Index, Dim]] = []
        inside: list[Condition] = []
        axes = zip(index, operand.shape, self.window, self.strides, self.padding, strict=True)
        for i, size, width, stride, (low, high) in axes:
            place = i * stride - low
            if width != 1:
                over.append((binder(len(over)), width))
                place = place + over[-1][0]
            if low != 0:
                inside.append(at_least(place, 0))
            if high != 0:
                inside.append(less_than(place, size))
            places.append(place)
        outside = Fixed(identity_value(self.kind, operand.dtype))
        body = choose(all_of(inside), Read(0, tuple(places)), outside)
        return fold_over(self.kind, operand.dtype, over, body)

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        count, outside = product(self.window), of_values([identity_value(self.kind, result.dtype)])
        if self.kind in ("maximum", "minimum"):
            is_inside = all(
                pads == (0, 0) or _is_below(pads, n) for pads, n in zip(self.padding, self.window, strict=True)
            )
            is_inside = is_inside and all(at_most(1, n) is True for n in types[0].shape)
            return operands[0] if is_inside else join(operands[0], outside)
        is_padded = any(pads != (0, 0) for pads in self.padding)
        return reduce_facts(self.kind, join(operands[0], outside) if is_padded else operands[0], count, result.dtype)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        moving = [axis for axis, width in enumerate(self.window) if width != 1]
        _count(counts, self.kind, operands[0], moving, result)


def window_demands(size: Dim, window: Dim) -> tuple[Demand, ...]:
    """That a window is not empty and, where sizes are symbols, that it fits: the count is no polynomial else."""
    fits = () if isinstance(size - window, int) else (Demand("windows within the padded axis", window, size),)
    return Demand("windows of at least 1", 1, window), *fits


def window_count(name: str, size: Dim, window: Dim, stride: Dim) -> Dim:
    """How many positions a window has on a padded axis; raises TypeMismatch where that is no polynomial."""
    if at_most(1, stride) is False or at_most(1, window) is False:
        raise TypeMismatch(f"{name} needs windows and strides of at least 1 and got {window} and {stride}")
    room = size - window
    if isinstance(room, int) and isinstance(stride, int):
        return max(0, room // stride + 1)
    if not isinstance(stride, int):
        return ceil_quotient(room + 1, stride)
    # Only what the constant term has beyond a multiple of the stride can make the division exact.
    constant = dict(room.terms).get((), 0) if isinstance(room, SizeExpr) else room
    found = divide(room - constant % stride, stride)
    if found is not None:
        return found + 1
    raise TypeMismatch(f"{name} of {size} elements by stride {stride} has no size that is a polynomial; use numbers")


def _is_below(padding: tuple[Dim, Dim], window: Dim) -> bool:
    """Whether a window that starts in the padding, or ends in it, still has an element of the operand."""
    return all(at_most(side + 1, window) is True for side in padding)
