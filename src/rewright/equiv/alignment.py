"""Tensors of two programs that agree on numbers, up to the order and grouping of their axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rewright import ops
from rewright.ir.dims import Shape, divide, product
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.base import Array
from rewright.refine.twin.twin import Trial, Twin

TOLERANCE = 1e-9
_MOST_AXES = 5
_MOST_LIKELY = 6


@dataclass(frozen=True)
class Layout:
    """``reshape(transpose(reshape(x, first), order), last)``, sizes of ``first`` by the axes of what is made."""

    order: tuple[int, ...]
    split_first: bool
    """Whether ``x`` is first given the sizes of the result, permuted back, and permuted after that."""

    def build(self, builder: GraphBuilder, position: int, shape: Shape) -> int:
        """Append the operators that give a tensor this layout; raises TypeMismatch where sizes do not fit."""
        if self.split_first:
            back = tuple(self.order.index(a) for a in range(len(self.order)))
            inner = tuple(shape[self.order[k]] for k in range(len(self.order)))
            position = _reshaped(builder, position, inner)
            return builder.add(ops.Transpose(back), position) if back != tuple(range(len(back))) else position
        if self.order != tuple(range(len(self.order))):
            position = builder.add(ops.Transpose(self.order), position)
        return _reshaped(builder, position, shape)


def _reshaped(builder: GraphBuilder, position: int, shape: Shape) -> int:
    return position if builder.type(position).shape == shape else builder.add(ops.Reshape(shape), position)


class Numbers:
    """What both programs computed on several draws, node by node."""

    def __init__(self, twin: Twin, draws: int = 2) -> None:
        self.trials: list[Trial] = []
        everything = [frozenset(range(len(graph.nodes))) for graph in twin.program.graphs]
        for draw in range(draws):
            trial = twin.run_trial(0, draw, everything, frozenset(range(len(twin.sequential.nodes))))
            if isinstance(trial, Trial):
                self.trials.append(trial)
        self._graph = twin.sequential
        self._index: dict[int, list[tuple[float, int]]] = {}
        if self.trials:
            for position in range(len(twin.sequential.nodes)):
                value = self.left(position)
                if value is not None and value.dtype.kind == "f" and value.size > 1:
                    self._index.setdefault(value.size, []).append((_print(value), position))

    def left(self, position: int, draw: int = 0) -> Array | None:
        """What the left program computed at a node."""
        return self.trials[draw].sequential.values.get(position)

    def right(self, position: int, draw: int = 0, rank: int = 0) -> Array | None:
        """What a rank of the right program computed at a node."""
        return self.trials[draw].ranks[rank].values.get(position)

    def partners(self, position: int) -> Iterator[tuple[int, Layout]]:
        """Nodes of the left program that agree with a node of the right one on every draw, equal layouts first."""
        value = self.right(position)
        if value is None or value.dtype.kind != "f" or value.size < 2:
            return
        mark = _print(value)
        near = [p for other, p in self._index.get(value.size, []) if _is_near(other, mark)]
        near.sort(key=lambda p: (self._shape(p) != value.shape, p))
        for other in itertools.islice(near, _MOST_LIKELY):
            found = self._layout(other, position)
            if found is not None:
                yield other, found

    def _shape(self, position: int) -> tuple[int, ...]:
        value = self.left(position)
        return () if value is None else value.shape

    def _layout(self, left: int, right: int) -> Layout | None:
        pairs = [(self.left(left, k), self.right(right, k)) for k in range(len(self.trials))]
        for layout in _layouts(pairs[0][0], pairs[0][1]):
            if all(a is not None and b is not None and _agree(_laid_out(a, layout, b.shape), b) for a, b in pairs):
                return layout
        return None


def _print(value: Array) -> float:
    """A number that does not depend on the order of the elements."""
    finite = value[np.isfinite(value)]
    return float(np.abs(finite).sum() + (finite * finite).sum() * 0.37 + 1e3 * (value.size - finite.size))


def _is_near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-8 * max(abs(a), abs(b), 1e-30)


def _layouts(left: Array | None, right: Array | None) -> Iterator[Layout]:
    if left is None or right is None:
        return
    yield Layout(tuple(range(left.ndim)), False)
    for ndim, split in ((left.ndim, False), (right.ndim, True)):
        if 1 < ndim <= _MOST_AXES:
            for order in itertools.permutations(range(ndim)):
                if order != tuple(range(ndim)):
                    yield Layout(order, split)


def _laid_out(value: Array, layout: Layout, shape: tuple[int, ...]) -> Array:
    if layout.split_first:
        inner = tuple(shape[a] for a in layout.order)
        return value.reshape(inner).transpose([layout.order.index(a) for a in range(len(shape))])
    return value.transpose(layout.order).reshape(shape)


def _agree(a: Array, b: Array) -> bool:
    finite = b[np.isfinite(b)]
    scale = float(np.abs(finite).max()) if finite.size else 1.0
    with np.errstate(invalid="ignore"):
        return bool(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * max(scale, 1e-30), equal_nan=True))


def fits(layout: Layout, left: Shape, right: Shape) -> bool:
    """Whether a layout that was found at small sizes makes sense at the sizes of the programs."""
    if divide(product(left), product(right)) != 1:
        return False
    builder = GraphBuilder()
    from rewright.ir.types import DType, TensorType

    try:
        place = builder.input("x", ops.Input("x", TensorType(left, DType.F32)))
        return builder.type(layout.build(builder, place, right)).shape == right
    except RewrightError:
        return False


def sources(graph: Graph, positions: Sequence[int]) -> tuple[str, ...]:
    """The distinct source lines of some nodes, in order."""
    return tuple(dict.fromkeys(str(graph.nodes[p].span) for p in positions))
