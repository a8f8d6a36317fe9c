"""Tensors of two programs that agree on numbers, up to the order and grouping of their axes."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.interp.trial import Trial
from rewright.ir.dims import Shape
from rewright.ir.graph import GraphBuilder
from rewright.ops.base import Array

TOLERANCE = 2e-11
_NEAR = 1e-8
_MOST_AXES = 5
_MOST_LIKELY = 6


@dataclass(frozen=True)
class Layout:
    """``reshape(transpose(reshape(x, first), order), last)``, sizes of ``first`` by the axes of what is made."""

    order: tuple[int, ...]
    split_first: bool
    """Whether ``x`` is first given the sizes of the result, permuted back, and permuted after that."""

    @staticmethod
    def of(axes: int) -> Layout:
        """Axes in their own order."""
        return Layout(tuple(range(axes)), False)

    def build(self, builder: GraphBuilder, position: int, shape: Shape) -> int:
        """Append the operators that give a tensor this layout; raises TypeMismatch where sizes do not fit."""
        if self.split_first:
            back = tuple(self.order.index(a) for a in range(len(self.order)))
            inner = tuple(shape[self.order[k]] for k in range(len(self.order)))
            position = _reshape(builder, position, inner)
            return builder.add(ops.Transpose(back), position) if back != tuple(range(len(back))) else position
        if self.order != tuple(range(len(self.order))):
            position = builder.add(ops.Transpose(self.order), position)
        return _reshape(builder, position, shape)


def _reshape(builder: GraphBuilder, position: int, shape: Shape) -> int:
    return position if builder.type(position).shape == shape else builder.add(ops.Reshape(shape), position)


class Index:
    """Arrays by what does not depend on the order of their elements."""

    def __init__(self, runs: Sequence[Mapping[int, Array]]) -> None:
        self.runs = [dict(run) for run in runs]
        self._by_size: dict[int, list[tuple[float, int]]] = {}
        for position, value in sorted(self.runs[0].items()):
            if value.size > 1:
                self._by_size.setdefault(value.size, []).append((_print(value), position))
        for marks in self._by_size.values():
            marks.sort()

    def find_layouts(self, values: Sequence[Array], limit: int = _MOST_LIKELY) -> Iterator[tuple[int, Layout]]:
        """Positions whose arrays are the given ones but for their layout, equal shapes first.

        Of as many runs as there are arrays.
        """
        first = values[0]
        if first.size < 2:
            return
        mark, is_float = _print(first), first.dtype.kind == "f"
        near = [p for other, p in self._near(first.size, mark) if _is_near(other, mark)]
        near = [p for p in near if (self.runs[0][p].dtype.kind == "f") is is_float]
        near.sort(key=lambda p: (self.runs[0][p].shape != first.shape, p))
        scales = [_scale(value) for value in values] if near else []
        for position in itertools.islice(near, limit):
            own = [run[position] for run in self.runs[: len(values)]]
            for layout in layouts(own[0], first):
                pairs = zip(own, values, scales, strict=True)
                if all(agree(laid_out(a, layout, b.shape), b, scale) for a, b, scale in pairs):
                    yield position, layout
                    break

    def has(self, values: Sequence[Array]) -> bool:
        """Whether there are arrays that are the given ones but for their layout."""
        return next(self.find_layouts(values), None) is not None

    def _near(self, size: int, mark: float) -> list[tuple[float, int]]:
        """The arrays of a size whose print may be near another one."""
        marks = self._by_size.get(size, []) if math.isfinite(mark) else []
        room = 2 * _NEAR * abs(mark) + _NEAR * 1e-29
        return marks[bisect_left(marks, (mark - room, -1)) : bisect_right(marks, (mark + room, math.inf))]


class Numbers:
    """What both programs computed on several draws, node by node."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self.trials = trials
        self.left_index = Index([trial.sequential.values for trial in trials])

    def left(self, position: int) -> list[Array]:
        """What the left program computed at a node, by draw."""
        return [trial.sequential.values[position] for trial in self.trials]

    def right(self, position: int, rank: int = 0) -> list[Array]:
        """What a rank of the right program computed at a node, by draw."""
        return [trial.ranks[rank].values[position] for trial in self.trials]

    def partners(self, position: int) -> Iterator[tuple[int, Layout]]:
        """Nodes of the left program that agree with a node of the right one on every draw, equal layouts first."""
        return self.left_index.find_layouts(self.right(position))


def _print(value: Array) -> float:
    """A number that does not depend on the order of the elements."""
    value = value.astype(np.float64, copy=False)
    finite = value[np.isfinite(value)]
    with np.errstate(over="ignore"):
        return float(np.abs(finite).sum() + (finite * finite).sum() * 0.37 + 1e3 * (value.size - finite.size))


def _is_near(a: float, b: float) -> bool:
    return abs(a - b) <= _NEAR * max(abs(a), abs(b), 1e-30)


def layouts(left: Array, right: Array) -> Iterator[Layout]:
    yield Layout.of(left.ndim)
    for ndim, split in ((left.ndim, False), (right.ndim, True)):
        if 1 < ndim <= _MOST_AXES:
            for order in itertools.permutations(range(ndim)):
                if order != tuple(range(ndim)):
                    yield Layout(order, split)


def laid_out(value: Array, layout: Layout, shape: tuple[int, ...]) -> Array:
    if layout.split_first:
        inner = tuple(shape[a] for a in layout.order)
        return value.reshape(inner).transpose([layout.order.index(a) for a in range(len(shape))])
    return value.transpose(layout.order).reshape(shape)


def agree(a: Array, b: Array, scale: float | None = None) -> bool:
    """Whether arrays of one shape are equal but for rounding, which is seen by the largest element."""
    if b.dtype.kind != "f":
        return a.dtype.kind == b.dtype.kind and bool(np.array_equal(a, b))
    near = TOLERANCE * max(_scale(b) if scale is None else scale, 1e-30)
    # Most that do not agree do not in the first few elements, and looking at all takes far longer.
    for place in (0, b.size // 2, b.size - 1) if b.size else ():
        mine, other = float(a.flat[place]), float(b.flat[place])
        if abs(mine - other) > near + TOLERANCE * abs(other):
            return False
    with np.errstate(invalid="ignore"):
        return bool(np.allclose(a, b, rtol=TOLERANCE, atol=near, equal_nan=True))


def _scale(value: Array) -> float:
    """The largest finite element, or one."""
    finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value[:0]
    return float(np.abs(finite).max()) if finite.size else 1.0
