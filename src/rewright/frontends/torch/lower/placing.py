"""Integers that are known are computed, and what is read or written at known places is slices and concatenations.

In a program that was captured from a run, where tokens go is a constant of the run. Reading rows at constant places
moves data and computes nothing, so that it is written with the operators that move data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rewright import ops
from rewright.ir.operator import Operator
from rewright.ir.types import SourceSpan, TensorType
from rewright.ops.base import Array, TensorOperator
from rewright.ops.reference.simplifying import SimplifyingBuilder, is_small, is_small_integer

MOST_PIECES = 4_096
"""Reads and writes that would come apart into more pieces stay as they are."""

_FOLDED = (ops.Gather, ops.Scatter)
_MOVING = (ops.Reshape, ops.Transpose, ops.Slice, ops.BroadcastInDim, ops.Reverse, ops.Concatenate)


class PlacingBuilder(SimplifyingBuilder):
    """A builder that knows the values of integers that are made of constants alone."""

    def __init__(self, name: str = "graph") -> None:
        super().__init__(name)
        self._origins: dict[int, tuple[int, Array]] = {}

    def add(self, op: Operator, *operands: int, span: SourceSpan | None = None) -> int:
        """Append a node, or what it comes to where indices are known."""
        if span is not None:
            self.span = span
        found = self._empty(op, operands)
        if found is None:
            found = self._compute(op, operands)
        if found is None and isinstance(op, _FOLDED):
            found = self._place(op, operands)
        return super().add(op, *operands, span=span) if found is None else found

    def _empty(self, op: Operator, operands: Sequence[int]) -> int | None:
        """What is computed from tensors without elements, such as the rows of an expert that nobody chose."""
        if not operands or isinstance(op, ops.Collective) or not isinstance(op, TensorOperator):
            return None
        if all(0 not in self.type(operand).shape for operand in operands):
            return None
        kind = op.infer([self.type(operand) for operand in operands])
        adds = isinstance(op, ops.DotGeneral) or (isinstance(op, ops.Reduce) and op.kind == "sum")
        if 0 in kind.shape or adds:
            return super().add_plain(ops.Constant(kind, (0,) if kind.dtype.is_integer else (0.0,)))
        if isinstance(op, ops.Scatter):
            return operands[0]
        kept = [operand for operand in operands if 0 not in self.type(operand).shape]
        if isinstance(op, ops.Concatenate) and len(kept) < len(operands):
            return kept[0] if len(kept) == 1 else self.add(op, *kept)
        return None

    def _compute(self, op: Operator, operands: Sequence[int]) -> int | None:
        """A constant in place of a lookup, a scatter or a sort of constants; other arithmetic is folded already."""
        if not operands or isinstance(op, (ops.Collective, ops.Input)) or not isinstance(op, TensorOperator):
            return None
        kind = op.infer([self.type(operand) for operand in operands])
        if not is_small_integer(kind) or any(self.affine(operand) is not None for operand in operands[:1]):
            return None
        value = self.computed(op, operands)
        if value is None:
            return None
        position = _constant(self, kind, value)
        self.values[position] = value
        return position

    def _place(self, op: ops.Gather | ops.Scatter, operands: Sequence[int]) -> int | None:
        indices = self.known(operands[1])
        if indices is None or not all(is_small(self.type(operand)) for operand in operands):
            return None
        if isinstance(op, ops.Gather):
            return self._read(operands[0], op.execute([_numbers(self.type(operands[0])), indices], np.float64))
        return self._write(op, operands, indices)

    def _write(self, op: ops.Scatter, operands: Sequence[int], indices: Array) -> int | None:
        """A scatter as a sum of reads of its updates, or as reads of both where updates replace."""
        target, _, updates = operands
        layers = _layers(op, self.type(target), indices, self.type(updates))
        if op.kind == "sum":
            parts = [self._read(updates, layer) for layer in layers]
            total = target
            for part in parts:
                if part is None:
                    return None
                total = part if self.uniform(total) == 0 else super().add(ops.Add(), total, part)
            return total
        if op.kind != "replace" or len(layers) != 1 or self.type(target).shape != layers[0].shape:
            return None
        size = _numbers(self.type(target)).size
        both = super().add(ops.Concatenate(0), self._flat(target), self._flat(updates))
        place = np.where(layers[0] < 0, _numbers(self.type(target)), layers[0] + size)
        return self._read(both, place)

    def _flat(self, position: int) -> int:
        return super().add(ops.Reshape((_numbers(self.type(position)).size,)), position)

    def _read(self, source: int, places: Array) -> int | None:
        """A tensor whose elements are those of another one at places in row-major order; zero where a place is -1."""
        root, there = self._origin(source)
        places = np.where(places < 0, -1, there.reshape(-1)[places])
        parts = _Pieces(_numbers(self.type(root))).cut(places)
        return None if parts is None else self._assemble(root, parts)

    def _origin(self, position: int) -> tuple[int, Array]:
        """The tensor that a node only moves elements of, and the place there of each of its elements.

        Where a program flattens first and another one does not, both read from the same tensor.
        """
        if position not in self._origins:
            node = self.node(position)
            found = (position, _numbers(node.type))
            if isinstance(node.op, _MOVING) and all(is_small(self.type(x)) for x in node.operands):
                sources = [self._origin(operand) for operand in node.operands]
                if len({root for root, _ in sources}) == 1:
                    found = (sources[0][0], node.op.execute([there for _, there in sources], np.float64))
            self._origins[position] = found
        return self._origins[position]

    def _assemble(self, source: int, part: _Part) -> int:
        kind = self.type(source)
        if isinstance(part, _Joined):
            return super().add(ops.Concatenate(part.axis), *(self._assemble(source, p) for p in part.parts))
        if part.start is None:
            zero = 0 if kind.dtype.is_integer else 0.0
            return super().add(ops.Constant(TensorType(part.shape, kind.dtype), (zero,)))
        limit = tuple(low + length for low, length in zip(part.start, part.lengths, strict=True))
        window = super().add(ops.Slice(part.start, limit, (1,) * len(limit)), source)
        return super().add(ops.Reshape(part.shape), window)


class _Window:
    """A box of the source, read in order, in another shape; zeros without a start."""

    def __init__(self, shape: tuple[int, ...], start: tuple[int, ...] | None, lengths: tuple[int, ...]) -> None:
        self.shape, self.start, self.lengths = shape, start, lengths


class _Joined:
    """Parts one after the other along an axis."""

    def __init__(self, axis: int, parts: Sequence[_Part]) -> None:
        self.axis, self.parts = axis, parts


_Part = _Window | _Joined


class _Pieces:
    """Cuts places in a tensor into boxes."""

    def __init__(self, numbers: Array) -> None:
        self._numbers, self._count = numbers, 0

    def cut(self, places: Array) -> _Part | None:
        """The boxes that places come to; None where they are too many."""
        window = self._window(places)
        if window is not None:
            self._count += 1
            return window if self._count <= MOST_PIECES else None
        axes = [axis for axis, size in enumerate(places.shape) if size > 1]
        whole = [axis for axis in axes if all(self._window(row) is not None for row in _rows(places, axis))]
        axis = whole[0] if whole else axes[0]
        parts: list[_Part] = []
        for row in _rows(places, axis):
            part = self.cut(row)
            if part is None:
                return None
            parts.append(part)
        return _Joined(axis, parts)

    def _indices(self, place: int) -> list[int]:
        """A place along every axis."""
        found: list[int] = []
        for size in reversed(self._numbers.shape):
            place, index = divmod(place, size)
            found.append(index)
        return found[::-1]

    def _window(self, places: Array) -> _Window | None:
        if places.size == 0 or (places < 0).all():
            return _Window(places.shape, None, ())
        if (places < 0).any():
            return None
        flat = places.reshape(-1)
        first, last = (self._indices(int(place)) for place in (flat[0], flat[-1]))
        lengths = tuple(b - a + 1 for a, b in zip(first, last, strict=True))
        # Of every axis one index or all of them: two programs that cut elsewhere then have equal pieces.
        if any(n not in (1, size) for n, size in zip(lengths, self._numbers.shape, strict=True)):
            return None
        if min(lengths, default=1) < 1 or int(np.prod(lengths, dtype=np.int64)) != flat.size:
            return None
        box = self._numbers[tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))]
        return _Window(places.shape, tuple(first), lengths) if (box.reshape(-1) == flat).all() else None


def _layers(op: ops.Scatter, target: TensorType, indices: Array, updates: TensorType) -> list[Array]:
    """For every element of the target which update it gets, or -1, in layers for elements with several."""
    place: Callable[[Array], Array] = lambda given: _maximum(op, target, indices, given)  # noqa: E731
    left = _numbers(updates)
    found: list[Array] = []
    while (left >= 0).any():
        layer = place(left)
        found.append(layer)
        left = np.where(np.isin(left, layer[layer >= 0]), -1, left)
    return found


def _maximum(op: ops.Scatter, target: TensorType, indices: Array, updates: Array) -> Array:
    shape = tuple(int(str(n)) for n in target.shape)
    dims = (op.update_window_dims, op.inserted_window_dims, op.input_batching_dims)
    more = (op.scatter_indices_batching_dims, op.scatter_dims_to_operand_dims, op.index_vector_dim)
    winner = ops.Scatter("maximum", *dims, *more)
    return winner.execute([np.full(shape, -1, np.int64), indices, updates], np.float64)


def _rows(places: Array, axis: int) -> list[Array]:
    return [places.take([index], axis) for index in range(places.shape[axis])]


def _numbers(kind: TensorType) -> Array:
    shape = tuple(int(str(n)) for n in kind.shape)
    return np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(shape)


def _constant(b: SimplifyingBuilder, kind: TensorType, value: Array) -> int:
    """A constant, broadcast along the axes on which it does not depend."""
    every = range(value.ndim) if value.size else ()
    axes = tuple(axis for axis in every if not (value == value.take([0], axis)).all())
    if not value.size or len(axes) == value.ndim:
        return b.add_plain(ops.Constant(kind, tuple(value.reshape(-1).tolist())))
    if not axes:
        return b.add_plain(ops.Constant(kind, (value.reshape(-1)[0].item(),)))
    part = value[tuple(slice(None) if axis in axes else 0 for axis in every)]
    small = TensorType(part.shape, kind.dtype)
    node = b.add_plain(ops.Constant(small, tuple(part.reshape(-1).tolist())))
    return b.add_plain(ops.BroadcastInDim(kind.shape, axes), node)
