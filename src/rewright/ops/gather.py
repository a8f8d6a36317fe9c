"""Reading blocks at indices from data, as StableHLO's ``gather``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import TensorType
from rewright.ops.base import (
    Array,
    Demand,
    Real,
    TensorOperator,
    check_ascending,
    check_axes,
    check_count,
    check_demands,
    replace_size,
    static,
)
from rewright.ops.sizes import Attributes, Axes, Sizes, same_each
from rewright.terms.index import Index, element
from rewright.terms.scalar import Read, Scalar


@dataclass(frozen=True, slots=True)
class Gather(TensorOperator):
    """Blocks of size ``slice_sizes`` of the operand, one for each index vector; operands (operand, indices).

    Fields as in the StableHLO specification. An index out of range is an error of the program: nothing is clamped.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...]
    start_indices_batching_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[Dim, ...]
    name: ClassVar[str] = "gather"
    noun: ClassVar[str] = "look-up"
    arity: ClassVar[int | None] = 2

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 2)
        operand, indices = operands
        check_indices(self.name, indices, self.index_vector_dim, len(self.start_index_map))
        dropped = self.collapsed_slice_dims + self.operand_batching_dims
        check_axes(self.name, "collapsed or batching axis", dropped, operand.rank)
        check_axes(self.name, "start_index_map axis", self.start_index_map + self.operand_batching_dims, operand.rank)
        check_batching(self.name, operand, indices, self.operand_batching_dims, self.start_indices_batching_dims)
        if len(self.slice_sizes) != operand.rank:
            raise TypeMismatch(f"gather from {operand} needs {operand.rank} slice sizes and has {self.slice_sizes}")
        check_demands(self, operands)
        for axis, size in enumerate(self.slice_sizes):
            if axis in dropped and size != 1:
                raise TypeMismatch(f"gather drops axis {axis}, so its slice size must be 1 and not {size}")
        batch = drop_axis(indices.shape, self.index_vector_dim)
        offsets = tuple(size for axis, size in enumerate(self.slice_sizes) if axis not in dropped)
        rank = len(batch) + len(offsets)
        if len(self.offset_dims) != len(offsets):
            raise TypeMismatch(f"gather keeps {len(offsets)} slice axes and has offset_dims {self.offset_dims}")
        check_axes(self.name, "offset_dims entry", self.offset_dims, rank)
        check_ascending(self.name, "offset_dims", self.offset_dims)
        return operand.with_shape(merge(rank, self.offset_dims, offsets, batch))

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        found: list[Demand] = []
        for axis, size in enumerate(self.slice_sizes):
            found.append(Demand("slice sizes of at least 0", 0, size))
            found.append(Demand(f"a slice within axis {axis}", size, operands[0].shape[axis]))
        return tuple(found)

    def window_axes(self, rank: int) -> tuple[int, ...]:
        """Operand axes that are kept in the result, in order."""
        dropped = self.collapsed_slice_dims + self.operand_batching_dims
        return tuple(axis for axis in range(rank) if axis not in dropped)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        source, indices = operands
        places = iter([own for axis, own in enumerate(result) if axis in self.offset_dims])
        slices = list[Any](self.slice_sizes)
        for axis in self.window_axes(len(source)):
            own = next(places)
            sizes.chosen(own, source[axis])
            slices[axis] = sizes.whole(own)
        relate_indices(
            sizes,
            [own for axis, own in enumerate(result) if axis not in self.offset_dims],
            (source, self.operand_batching_dims),
            (indices, self.start_indices_batching_dims, self.index_vector_dim),
        )
        return {"slice_sizes": tuple(slices)}

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        operand, indices = operands
        batch_shape = drop_axis(indices.shape, self.index_vector_dim)
        sizes = static(self.name, self.slice_sizes)
        kept = self.window_axes(operand.ndim)
        rank = len(batch_shape) + len(kept)
        shape = static(self.name, merge(rank, self.offset_dims, tuple(sizes[axis] for axis in kept), batch_shape))
        full = full_indices(
            operand.ndim,
            shape,
            index_columns(indices, self.index_vector_dim),
            batch_axes=tuple(a for a in range(rank) if a not in self.offset_dims),
            window=dict(zip(kept, self.offset_dims, strict=True)),
            start_map=self.start_index_map,
            batching=batching_positions(
                self.operand_batching_dims, self.start_indices_batching_dims, self.index_vector_dim
            ),
        )
        for axis, index in enumerate(full):
            if index.size and 0 not in shape and (index.min() < 0 or index.max() >= operand.shape[axis]):
                raise RewrightError(
                    f"gather reads index {int(index.min())} to {int(index.max())} of axis {axis} "
                    f"of size {operand.shape[axis]}; the indices given are out of range"
                )
        if 0 in shape:
            return np.zeros(shape, operand.dtype)
        return np.broadcast_to(operand[tuple(full)], shape)

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        batch = tuple(i for axis, i in enumerate(index) if axis not in self.offset_dims)
        window = dict(zip(self.window_axes(operands[0].rank), (index[d] for d in self.offset_dims), strict=True))
        starts = start_indices(1, self.start_index_map, batch, operands[1].rank, self.index_vector_dim)
        batching = batching_positions(
            self.operand_batching_dims, self.start_indices_batching_dims, self.index_vector_dim
        )
        places: list[Index] = []
        for axis, size in enumerate(operands[0].shape):
            place = window.get(axis, Index(0))
            # The only start at which a whole axis fits is zero; another one is an error of the program.
            if axis in starts and self.slice_sizes[axis] != size:
                place = place + starts[axis]
            if axis in batching:
                place = place + batch[batching[axis]]
            places.append(place)
        return Read(0, tuple(places))

    def resize(self, operands: Sequence[TensorType], axis: int, size: Dim) -> Gather:
        if axis not in self.offset_dims:
            return self
        kept = self.window_axes(operands[0].rank)[self.offset_dims.index(axis)]
        return dataclasses.replace(self, slice_sizes=replace_size(self.slice_sizes, kept, size))

    def moves(self, count: int) -> tuple[int, ...]:
        return (0,)

    def indexed(self, count: int) -> tuple[tuple[int, int], ...]:
        return tuple((1, axis) for axis in self.start_index_map)


def drop_axis(items: tuple[Dim, ...], axis: int) -> tuple[Dim, ...]:
    """All entries but one; an axis past the end drops nothing."""
    return items[:axis] + items[axis + 1 :]


def merge(rank: int, places: tuple[int, ...], inside: Sequence[Dim], outside: Sequence[Dim]) -> tuple[Dim, ...]:
    """Put ``inside`` at some places and ``outside`` at the others, each in order."""
    window, batch = iter(inside), iter(outside)
    return tuple(next(window) if axis in places else next(batch) for axis in range(rank))


def check_indices(name: str, indices: TensorType, vector_axis: int, length: int) -> None:
    """Raise TypeMismatch unless the index tensor holds integer vectors of the given length."""
    if not indices.dtype.is_integer:
        raise TypeMismatch(f"{name} needs integer indices and got {indices}")
    if not 0 <= vector_axis <= indices.rank:
        raise TypeMismatch(f"{name} has index_vector_dim {vector_axis}, but the indices {indices} have no such axis")
    found = indices.shape[vector_axis] if vector_axis < indices.rank else 1
    if found != length:
        raise TypeMismatch(f"{name} maps {length} index components, but index vectors of {indices} have {found}")


def check_batching(
    name: str, operand: TensorType, indices: TensorType, operand_axes: Sequence[int], index_axes: Sequence[int]
) -> None:
    """Raise TypeMismatch unless batching axes of operand and indices pair up with equal sizes."""
    if len(operand_axes) != len(index_axes):
        raise TypeMismatch(f"{name} pairs batching axes {tuple(operand_axes)} with {tuple(index_axes)}")
    check_axes(name, "indices batching axis", index_axes, indices.rank)
    for mine, other in zip(operand_axes, index_axes, strict=True):
        if operand.shape[mine] != indices.shape[other]:
            raise TypeMismatch(f"{name} batching axes differ in size: {operand} axis {mine}, {indices} axis {other}")


def relate_indices(
    sizes: Sizes, batch: Axes, source: tuple[Axes, Sequence[int]], indices: tuple[Axes, Sequence[int], int]
) -> None:
    """Say which sizes are one where index vectors, along the last axis named, are read for each element of a batch.

    ``source`` and ``indices`` come with the axes that they have in common.
    """
    operand, shared = source
    vectors, own, vector_axis = indices
    same_each(sizes, [size for axis, size in enumerate(vectors) if axis != vector_axis], batch)
    same_each(sizes, [operand[axis] for axis in shared], [vectors[axis] for axis in own])
    sizes.fix(vectors[vector_axis : vector_axis + 1])


def index_columns(indices: Array, vector_axis: int) -> list[Array]:
    """The components of the index vectors, each of the shape of the batch axes."""
    if vector_axis == indices.ndim:
        return [indices]
    return [indices.take(i, axis=vector_axis) for i in range(indices.shape[vector_axis])]


def batching_positions(operand_axes: Sequence[int], index_axes: Sequence[int], vector_axis: int) -> dict[int, int]:
    """For each batching axis of the operand its position among the batch axes of the indices."""
    return {
        mine: other - (1 if vector_axis < other else 0) for mine, other in zip(operand_axes, index_axes, strict=True)
    }


def full_indices(
    operand_rank: int,
    shape: Sequence[Dim],
    columns: Sequence[Array],
    *,
    batch_axes: Sequence[int],
    window: dict[int, int],
    start_map: Sequence[int],
    batching: dict[int, int],
) -> list[Array]:
    """One index array per operand axis, each broadcastable to ``shape`` (of gather's result or scatter's updates)."""
    sizes = static("gather", tuple(shape))
    rank = len(sizes)

    def along(axis: int) -> Array:
        return np.arange(sizes[axis]).reshape([-1 if a == axis else 1 for a in range(rank)])

    full: list[Array] = []
    for axis in range(operand_rank):
        index: Array = np.zeros((1,) * rank, np.int64)
        if axis in start_map:
            column = columns[start_map.index(axis)]
            spread = [sizes[a] if a in batch_axes else 1 for a in range(rank)]
            index = index + column.astype(np.int64).reshape(spread)
        if axis in batching:
            index = index + along(batch_axes[batching[axis]])
        if axis in window:
            index = index + along(window[axis])
        full.append(index)
    return full


def start_indices(
    operand: int, start_map: Sequence[int], batch: tuple[Index, ...], rank: int, vector_axis: int
) -> dict[int, Index]:
    """For each axis that is indexed from data, the element of the index tensor that says where."""
    found: dict[int, Index] = {}
    for component, axis in enumerate(start_map):
        vector = (Index(component),) if vector_axis < rank else ()
        found[axis] = element(Read(operand, (*batch[:vector_axis], *vector, *batch[vector_axis:])))
    return found
