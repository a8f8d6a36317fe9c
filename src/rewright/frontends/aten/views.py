"""Tensors as views of storages, so that in-place operators are seen by every alias.

A tensor is a storage and the chain of view steps that leads to it. Reading it applies the steps to what the storage
holds now; writing it goes back through them, so that the storage, and with it every other view, has the new elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType
from rewright.ops.reference import building as rb
from rewright.ops.reference import indexing


class ViewStep(Protocol):
    """One aliasing operator."""

    def read(self, b: GraphBuilder, base: int) -> int:
        """The view of a base."""
        ...

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        """The base with the elements of the view replaced by ``value``, which has the view's shape."""
        ...


@dataclass(frozen=True, slots=True)
class ReshapeStep:
    """Another shape for the same elements."""

    shape: Shape

    def read(self, b: GraphBuilder, base: int) -> int:
        return rb.reshape(b, base, self.shape)

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        return rb.reshape(b, value, b.type(base).shape)


@dataclass(frozen=True, slots=True)
class UnsqueezeStep:
    """A new axis of size one.

    It is a broadcast and not a reshape: an axis of size one that a reshape splits off may be one rank's share of a
    longer one (its only attention head, say), and a new axis never is.
    """

    shape: Shape
    axis: int

    def read(self, b: GraphBuilder, base: int) -> int:
        kept = tuple(axis for axis in range(len(self.shape)) if axis != self.axis)
        return b.add(ops.BroadcastInDim(self.shape, kept), base)

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        return rb.reshape(b, value, b.type(base).shape)


@dataclass(frozen=True, slots=True)
class TransposeStep:
    """Axes in another order."""

    permutation: tuple[int, ...]

    def read(self, b: GraphBuilder, base: int) -> int:
        return rb.transpose(b, base, self.permutation)

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        return rb.transpose(b, value, inverse(self.permutation))


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    return tuple(sorted(range(len(permutation)), key=lambda axis: permutation[axis]))


@dataclass(frozen=True, slots=True)
class SliceStep:
    """Some elements along one axis."""

    axis: int
    start: Dim
    limit: Dim
    stride: int = 1

    def read(self, b: GraphBuilder, base: int) -> int:
        return rb.slice_axis(b, base, self.axis, self.start, self.limit, self.stride)

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        size = b.type(base).shape[self.axis]
        if b.type(base).shape == b.type(value).shape:
            return value
        if b.type(value).shape[self.axis] == 0:
            return base
        filler = ops.splat(b.node(base).op)
        if filler is not None:
            return self._spread(b, value, b.type(base).shape, filler)
        if self.stride != 1:
            return self._write_strided(b, base, value)
        before = rb.slice_axis(b, base, self.axis, 0, self.start)
        after = rb.slice_axis(b, base, self.axis, self.limit, size)
        return rb.concatenate(b, [before, value, after], self.axis)

    def _write_strided(self, b: GraphBuilder, base: int, value: int) -> int:
        """Put the elements ``stride`` apart, and take them where the index says so."""
        kind = b.type(base)
        spread = self._spread(b, value, kind.shape, 0)
        covered = self._spread(b, rb.splat(b, True, b.type(value).shape, DType.BOOL), kind.shape, False)
        return rb.select(b, covered, spread, base)

    def _spread(self, b: GraphBuilder, value: int, shape: Shape, around: rb.Scalar) -> int:
        """The elements put where the slice has them, with a constant around and between."""
        kind = b.type(value)
        count = kind.shape[self.axis]
        low: list[Dim] = [0] * kind.rank
        high: list[Dim] = [0] * kind.rank
        interior = [0] * kind.rank
        low[self.axis], interior[self.axis] = self.start, self.stride - 1
        high[self.axis] = shape[self.axis] - self.start - ((count - 1) * self.stride + 1)
        filler = rb.splat(b, around, (), kind.dtype)
        return b.add(ops.Pad(tuple(low), tuple(high), tuple(interior)), value, filler)


@dataclass(frozen=True, slots=True)
class BroadcastStep:
    """Elements seen several times; such a view cannot be written."""

    shape: Shape
    dimensions: tuple[int, ...]

    def read(self, b: GraphBuilder, base: int) -> int:
        return b.add(ops.BroadcastInDim(self.shape, self.dimensions), base)

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        raise UnsupportedOperator("an in-place operator writes to an expanded tensor; clone the tensor before")


@dataclass(frozen=True, slots=True)
class DiagonalStep:
    """A diagonal of two axes as the last axis; ``offset`` is how far it is above the main one."""

    first: int
    second: int
    offset: int = 0

    def _columns(self, b: GraphBuilder, base: int) -> list[int]:
        """Where the diagonal is on both axes."""
        rows, columns = b.type(base).shape[self.first], b.type(base).shape[self.second]
        if not self.offset and rows == columns:
            ramp = rb.iota(b, (rows,), 0)
            return [ramp, ramp]
        if not isinstance(rows, int) or not isinstance(columns, int):
            raise UnsupportedOperator("a diagonal of symbolic sizes that differ; give the sizes numbers")
        down, right = max(-self.offset, 0), max(self.offset, 0)
        ramp = rb.iota(b, (max(min(rows - down, columns - right), 0),), 0)
        return [rb.shift_by(b, ramp, down), rb.shift_by(b, ramp, right)]

    def read(self, b: GraphBuilder, base: int) -> int:
        found = indexing.gather_points(b, base, (self.first, self.second), self._columns(b, base))
        rank = b.type(found).rank
        return rb.transpose(b, found, [*range(1, rank), 0])

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        rank = b.type(value).rank
        moved = rb.transpose(b, value, [rank - 1, *range(rank - 1)])
        axes = (self.first, self.second)
        return indexing.scatter_points(b, base, axes, self._columns(b, base), moved, "replace")


@dataclass(frozen=True, slots=True)
class MemoryStep:
    """Elements at any places of the memory, one after the other, which may be seen several times."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    start: int

    def _places(self, b: GraphBuilder) -> int:
        total = rb.splat(b, self.start, self.shape, DType.I64)
        for axis, step in enumerate(self.stride):
            total = rb.add(b, total, rb.scale_by(b, rb.iota(b, self.shape, axis), step))
        return total

    def read(self, b: GraphBuilder, base: int) -> int:
        flat = rb.reshape(b, base, (b.type(base).size(),))
        return indexing.gather_points(b, flat, (0,), [self._places(b)])

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        flat = rb.reshape(b, base, (b.type(base).size(),))
        written = indexing.scatter_points(b, flat, (0,), [self._places(b)], value, "replace")
        return rb.reshape(b, written, b.type(base).shape)


@dataclass(frozen=True, slots=True)
class WindowStep:
    """Windows along an axis that may overlap, with the places in a window as the last axis; only read."""

    axis: int
    size: int
    step: int

    def read(self, b: GraphBuilder, base: int) -> int:
        length = b.type(base).shape[self.axis]
        assert isinstance(length, int)
        last = (length - self.size) // self.step * self.step + 1
        columns = [rb.slice_axis(b, base, self.axis, k, last + k, self.step) for k in range(self.size)]
        return indexing.stack_last(b, columns)

    def write(self, b: GraphBuilder, base: int, value: int) -> int:
        raise UnsupportedOperator("an in-place operator writes to windows of a tensor; clone the tensor before")


class Storage:
    """What a block of memory holds at this point of the program."""

    __slots__ = ("position", "version")

    def __init__(self, position: int) -> None:
        self.position = position
        self.version = 0


class Tensor:
    """A tensor of the traced program: a storage, or another tensor seen through a view step."""

    __slots__ = ("parent", "seen", "step", "storage")

    def __init__(self, storage: Storage, parent: Tensor | None = None, step: ViewStep | None = None) -> None:
        self.storage = storage
        self.parent = parent
        self.step = step
        self.seen = -1, -1
        """Which version of the storage was read last, and the node that it gave."""

    @staticmethod
    def fresh(position: int) -> Tensor:
        """A tensor with a storage of its own."""
        return Tensor(Storage(position))

    def view(self, step: ViewStep) -> Tensor:
        """An alias seen through one more step."""
        return Tensor(self.storage, self, step)

    def read(self, b: GraphBuilder) -> int:
        """Position of the node that holds the elements now."""
        if self.parent is None or self.step is None:
            return self.storage.position
        if self.seen[0] != self.storage.version:
            self.seen = self.storage.version, self.step.read(b, self.parent.read(b))
        return self.seen[1]

    def write(self, b: GraphBuilder, value: int) -> None:
        """Replace the elements, for every alias; ``value`` has this tensor's shape and dtype."""
        if self.parent is None or self.step is None:
            self.storage.position = value
            self.storage.version += 1
        else:
            self.parent.write(b, self.step.write(b, self.parent.read(b), value))
