"""Writing blocks at indices from data, as StableHLO's ``scatter``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rewright.ir.dims import Dim
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import TensorType
from rewright.ops.base import (
    REDUCERS,
    Array,
    Combining,
    Demand,
    Real,
    binder,
    check_ascending,
    check_axes,
    check_count,
    check_demands,
    check_kind,
    identity_value,
)
from rewright.ops.counts import Counts
from rewright.ops.dynamic import Update
from rewright.ops.facts import Facts, add, join, multiply, of_values, repeated_product, repeated_sum
from rewright.ops.gather import (
    batching_positions,
    check_batching,
    check_indices,
    drop_axis,
    full_indices,
    index_columns,
    relate_indices,
    start_indices,
)
from rewright.ops.sizes import Attributes, Axes, Sizes, same_each
from rewright.terms.index import Index
from rewright.terms.scalar import (
    Absent,
    AllOf,
    Apply,
    Condition,
    Fixed,
    Fold,
    IsZero,
    Read,
    Scalar,
    all_of,
    at_least,
    choose,
    less_than,
    otherwise,
)

ScatterKind = Literal["sum", "replace", "maximum", "minimum", "product"]
SCATTER_KINDS: tuple[str, ...] = ("sum", "replace", "maximum", "minimum", "product")


@dataclass(frozen=True, slots=True)
class Scatter(Update, Combining):
    """The input with updates combined into it; operands (input, indices, updates).

    Fields as in the StableHLO specification; elements of updates whose index is out of range are skipped. Updates
    that meet are combined in the order of their index vectors, so ``replace`` keeps the last one.
    """

    kind: ScatterKind
    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    input_batching_dims: tuple[int, ...]
    scatter_indices_batching_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    name: ClassVar[str] = "scatter"
    noun: ClassVar[str] = "write by index"
    accumulates: ClassVar[bool] = True
    arity: ClassVar[int | None] = 3

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 3)
        operand, indices, updates = operands
        self._check_kind(operand, updates)
        check_indices(self.name, indices, self.index_vector_dim, len(self.scatter_dims_to_operand_dims))
        dropped = self.inserted_window_dims + self.input_batching_dims
        check_axes(self.name, "inserted or batching axis", dropped, operand.rank)
        targets = self.scatter_dims_to_operand_dims + self.input_batching_dims
        check_axes(self.name, "scatter_dims_to_operand_dims axis", targets, operand.rank)
        check_batching(self.name, operand, indices, self.input_batching_dims, self.scatter_indices_batching_dims)
        self._check_updates(operand, indices, updates)
        return operand

    def _check_kind(self, operand: TensorType, updates: TensorType) -> None:
        if self.kind not in SCATTER_KINDS:
            raise TypeMismatch(f"scatter has no kind {self.kind!r}; use one of {', '.join(SCATTER_KINDS)}")
        if self.kind != "replace":
            check_kind(self.name, self.kind, operand.dtype)
        if updates.dtype is not operand.dtype:
            raise TypeMismatch(f"scatter into {operand} needs updates of its dtype and got {updates}; convert them")

    def _check_updates(self, operand: TensorType, indices: TensorType, updates: TensorType) -> None:
        kept = self.window_axes(operand.rank)
        check_axes(self.name, "update_window_dims entry", self.update_window_dims, updates.rank)
        check_ascending(self.name, "update_window_dims", self.update_window_dims)
        if len(kept) != len(self.update_window_dims):
            raise TypeMismatch(
                f"scatter into {operand} keeps window axes {kept} and has update_window_dims {self.update_window_dims}"
            )
        check_demands(self, (operand, indices, updates))
        batch = drop_axis(indices.shape, self.index_vector_dim)
        found = tuple(updates.shape[a] for a in self.batch_axes(updates.rank))
        if found != batch:
            raise TypeMismatch(f"scatter has updates {updates} with batch sizes {found}, but the indices give {batch}")

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        operand, _, updates = operands
        pairs = zip(self.window_axes(operand.rank), self.update_window_dims, strict=True)
        return tuple(
            Demand(f"windows within axis {axis}", updates.shape[place], operand.shape[axis]) for axis, place in pairs
        )

    def window_axes(self, rank: int) -> tuple[int, ...]:
        """Input axes that an update window covers, in order."""
        dropped = self.inserted_window_dims + self.input_batching_dims
        return tuple(axis for axis in range(rank) if axis not in dropped)

    def batch_axes(self, update_rank: int) -> tuple[int, ...]:
        """Axes of the updates that count index vectors, in order."""
        return tuple(axis for axis in range(update_rank) if axis not in self.update_window_dims)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        source, indices, updates = operands
        same_each(sizes, source, result)
        window = self.window_axes(len(source))
        for axis, own in zip(window, [updates[axis] for axis in self.update_window_dims], strict=True):
            sizes.chosen(own, source[axis])
        relate_indices(
            sizes,
            [updates[axis] for axis in self.batch_axes(len(updates))],
            (source, self.input_batching_dims),
            (indices, self.scatter_indices_batching_dims, self.index_vector_dim),
        )
        return {}

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        operand, indices, updates = operands
        result = operand.copy()
        full = full_indices(
            operand.ndim,
            updates.shape,
            index_columns(indices, self.index_vector_dim),
            batch_axes=self.batch_axes(updates.ndim),
            window=dict(zip(self.window_axes(operand.ndim), self.update_window_dims, strict=True)),
            start_map=self.scatter_dims_to_operand_dims,
            batching=batching_positions(
                self.input_batching_dims, self.scatter_indices_batching_dims, self.index_vector_dim
            ),
        )
        shape = updates.shape
        inside = np.ones(shape, np.bool_)
        for axis, index in enumerate(full):
            inside &= (index >= 0) & (index < operand.shape[axis])
        # Index vectors outermost, so that updates are applied in their order.
        order = (*self.batch_axes(updates.ndim), *self.update_window_dims)
        inside, updates = inside.transpose(order), updates.transpose(order)
        places = tuple(np.broadcast_to(index, shape).transpose(order)[inside] for index in full)
        if not places:
            return combine_scalar(self.kind, operand, updates)
        if self.kind == "replace":
            result[places] = updates[inside]
        else:
            REDUCERS[self.kind].at(result, places, updates[inside])
        return result

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        operand, indices, updates = operands
        batch_axes = self.batch_axes(updates.rank)
        batching = batching_positions(
            self.input_batching_dims, self.scatter_indices_batching_dims, self.index_vector_dim
        )
        # A batching axis of the input fixes one batch index of the updates; the others are folded over.
        fixed = {position: index[axis] for axis, position in batching.items()}
        batch = tuple(fixed.get(number, binder(number)) for number in range(len(batch_axes)))
        starts = start_indices(1, self.scatter_dims_to_operand_dims, batch, indices.rank, self.index_vector_dim)
        window = dict(zip(self.window_axes(operand.rank), self.update_window_dims, strict=True))
        place: dict[int, Index] = dict(zip(batch_axes, batch, strict=True))
        meets: list[Condition] = []
        for axis, i in enumerate(index):
            offset = i - starts[axis] if axis in starts else i
            if axis not in window:
                meets += [IsZero(offset)] if axis not in batching else []
                continue
            width = updates.shape[window[axis]]
            place[window[axis]] = offset
            if axis in starts or width != operand.shape[axis]:
                meets += [at_least(offset, 0), less_than(offset, width)]
        over = [(batch[n], updates.shape[a]) for n, a in enumerate(batch_axes) if n not in fixed]
        update = Read(2, tuple(place[axis] for axis in range(updates.rank)))
        return _combine(self.kind, operand, Read(0, index), update, all_of(meets), over)

    def indexed(self, count: int) -> tuple[tuple[int, int], ...]:
        return tuple((1, axis) for axis in self.scatter_dims_to_operand_dims)

    def relate_counts(self, counts: Counts, operands: Sequence[int], result: int) -> None:
        counts.same([result, operands[0], operands[2]])
        super(Scatter, self).relate_counts(counts, operands, result)

    def moves(self, count: int) -> tuple[int, ...]:
        return (0, 2) if self.kind in ("replace", "maximum", "minimum") else ()

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        target, _, updates = operands
        if self.kind in ("replace", "maximum", "minimum"):
            return join(target, updates)
        count = types[2].size()
        if self.kind == "sum":
            return add(target, join(repeated_sum(updates, count), of_values([0])))
        return multiply(target, join(repeated_product(updates, count), of_values([1])))


def combine_scalar(kind: str, operand: Array, updates: Array) -> Array:
    """Scatter into a tensor without axes: every update meets the one element."""
    if kind == "replace":
        return np.asarray(updates.reshape(-1)[-1]) if updates.size else operand
    for value in updates.reshape(-1):
        operand = np.asarray(REDUCERS[kind](operand, value))
    return operand


def _combine(
    kind: str, operand: TensorType, old: Scalar, update: Scalar, meets: AllOf, over: list[tuple[Index, Dim]]
) -> Scalar:
    """The old element combined with the updates that meet it."""
    empty = Absent() if kind == "replace" else Fixed(identity_value(kind, operand.dtype))
    value: Scalar = choose(meets, update, empty)
    for place, size in reversed(over):
        name = place.as_variable()
        assert name is not None, "batch axes are folded over by binders"
        value = Fold("last" if kind == "replace" else kind, name, size, value, empty)
    if kind == "replace":
        return otherwise(value, old)
    return Apply("add" if kind == "sum" else "multiply" if kind == "product" else kind, (old, value))
