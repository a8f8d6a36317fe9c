"""Tensors that are nought but for what is written at the places of a choice, written or added.

The places that a choice or a sort gives are different ones in every row, so that no element is written twice: writing
into noughts is adding to them. The engine knows sums. Programs that weigh experts in several ways get them all as sums.
Where ones, or truth values, are written, what is chosen by them instead of nought is multiplied by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.analysis.values import facts_where_defined
from rewright.equiv.building import rebuilt
from rewright.equiv.fillings import splat
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType
from rewright.ops.facts import Facts


def placed_alike(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with what is written into noughts at different places as sums.

    They are returned as they are where all of them write in the same ways.
    """
    found = [_written(graph) for graph in graphs]
    ways = [_ways(graph) for graph in graphs]
    if not any(found) or all(own == ways[0] for own in ways):
        return tuple(graphs)
    every = facts_where_defined(graphs)
    return tuple(_added(graph, places, known) for graph, places, known in zip(graphs, found, every, strict=True))


def _ways(graph: Graph) -> set[object]:
    """How a program writes at places, and what it does with that."""
    found = {(node.op, splat(graph, node.operands[2])) for node in graph.nodes if isinstance(node.op, ops.Scatter)}
    written = {p for p, node in enumerate(graph.nodes) if isinstance(node.op, ops.Scatter)}
    readers = {type(node.op) for node in graph.nodes if written.intersection(node.operands)}
    return {*found, *readers}


def _added(graph: Graph, places: frozenset[int], known: Sequence[Facts]) -> Graph:
    new: dict[int, int] = {}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        new.update(zip(node.operands, operands, strict=True))
        if position in places and isinstance(node.op, ops.Scatter) and node.type.dtype.is_float:
            return builder.add(replace(node.op, kind="sum"), *operands)
        if not node.type.dtype.is_float:
            return None
        if isinstance(node.op, ops.Convert) and node.operands[0] in places:
            return _marks(builder, graph, node.operands[0], new, node.type.dtype)
        if isinstance(node.op, ops.Select):
            return _Writer(builder, graph, places, new, known).selected(node)
        return (
            _Writer(builder, graph, places, new, known).multiplied(node) if isinstance(node.op, ops.Multiply) else None
        )

    return rebuilt(graph, make) if places else graph


@dataclass(frozen=True)
class _Writer:
    """What is chosen by marks, or multiplied by them, is written at the places of the marks."""

    builder: GraphBuilder
    graph: Graph
    places: frozenset[int]
    new: Mapping[int, int]
    known: Sequence[Facts]

    def selected(self, node: Node) -> int | None:
        """A choice by marks between what is real and nought, as what is written at them; None where it is none."""
        found = _mark(self.graph, node.operands[0], self.places)
        if found is None:
            return None
        mark, holds = found
        chosen, other = node.operands[1:] if holds else node.operands[:0:-1]
        is_real = splat(self.graph, other) == 0 and self.known[chosen].is_finite and mark in self.new
        return self._at_marks(mark, chosen) if is_real else None

    def multiplied(self, node: Node) -> int | None:
        """What is real times marks as what is written at them; None for any other product."""
        nodes = self.graph.nodes
        for mark, other in (node.operands, node.operands[::-1]):
            source = nodes[mark].operands[0] if isinstance(nodes[mark].op, ops.Convert) else mark
            is_real = self.known[other].is_finite and source in self.new
            is_marked = source in self.places and other not in self.places
            if is_real and is_marked and splat(self.graph, nodes[source].operands[2]) == 1:
                return self._at_marks(source, other)
        return None

    def _at_marks(self, mark: int, chosen: int) -> int | None:
        """Noughts, with the elements of a tensor where marks are; None where these are not along its last axis."""
        node, kind = self.graph.nodes[mark], self.graph.nodes[chosen].type
        op, last = node.op, kind.rank - 1
        assert isinstance(op, ops.Scatter)
        rows = tuple(range(last))
        batched = op.input_batching_dims == op.scatter_indices_batching_dims == rows
        if not batched or op.scatter_dims_to_operand_dims != (last,) or node.type.shape != kind.shape:
            return None
        own = (last,), rows, rows, (last,), op.index_vector_dim, tuple(1 for _ in kind.shape)
        indices = self.new[node.operands[1]]
        read = self.builder.add(ops.Gather((), *own), self.new[chosen], indices)
        nought = self.builder.add(ops.Constant(kind, (0.0,)))
        return self.builder.add(replace(op, kind="sum"), nought, indices, read)


def _mark(graph: Graph, position: int, places: frozenset[int]) -> tuple[int, bool] | None:
    """The marks that truth values are made of, and whether they are true where there is one."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.Not):
        inner = _mark(graph, node.operands[0], places)
        return None if inner is None else (inner[0], not inner[1])
    if position in places:
        return position, True
    if not isinstance(node.op, ops.Compare) or node.operands[0] not in places:
        return None
    number, mark = splat(graph, node.operands[1]), graph.nodes[node.operands[0]]
    if not mark.type.dtype.is_float or splat(graph, mark.operands[2]) != 1:
        return None
    tells: dict[tuple[str, float], bool] = {("EQ", 0): False, ("NE", 0): True, ("GT", 0): True, ("EQ", 1): True}
    holds = None if number is None else tells.get((node.op.direction, number))
    return None if holds is None else (node.operands[0], holds)


def _marks(builder: GraphBuilder, graph: Graph, position: int, new: dict[int, int], dtype: DType) -> int:
    """Ones where something was written, and noughts elsewhere, as floats."""
    node = graph.nodes[position]
    assert isinstance(node.op, ops.Scatter)
    written = graph.nodes[node.operands[2]].type
    nought = builder.add(ops.Constant(replace(node.type, dtype=dtype), (0.0,)))
    ones = builder.add(ops.Constant(replace(written, dtype=dtype), (1.0,)))
    return builder.add(replace(node.op, kind="sum"), nought, new[node.operands[1]], ones)


def _written(graph: Graph) -> frozenset[int]:
    """Nodes that write into noughts, never twice at one place."""
    return frozenset(
        position
        for position, node in enumerate(graph.nodes)
        if isinstance(node.op, ops.Scatter)
        and node.op.kind == "replace"
        and (node.type.dtype.is_float or (node.type.dtype is DType.BOOL and splat(graph, node.operands[2]) == 1))
        and splat(graph, node.operands[0]) == 0
        and _never_twice(graph, node.op, node.operands[1])
    )


def _never_twice(graph: Graph, op: ops.Scatter, position: int) -> bool:
    """Whether no two vectors of indices are one.

    They are not where they differ along an axis that is shared with what is written into, or that one of their numbers
    counts; and where they differ along one axis more, of which another number is the place that a choice gave.
    """
    rank, vector = graph.nodes[position].type.rank, op.index_vector_dim
    numbers = [found for p in _components(graph, position, vector) if (found := _numbering(graph, p)) is not None]
    counted = {*op.scatter_indices_batching_dims, *(n.axis for n in numbers if not n.is_choice)}
    rest = set(range(rank)) - {vector} - counted
    return not op.update_window_dims and (not rest or any(rest == {n.axis} for n in numbers if n.is_choice))


def _components(graph: Graph, position: int, vector: int) -> tuple[int, ...]:
    """The numbers that vectors of indices are made of, as far as they are apart."""
    node = graph.nodes[position]
    if vector == node.type.rank or node.type.shape[vector] == 1:
        return (position,)
    if isinstance(node.op, ops.Concatenate) and node.op.dimension == vector:
        return tuple(p for p in node.operands if graph.nodes[p].type.shape[vector] == 1)
    return ()


@dataclass(frozen=True)
class _Numbering:
    """An axis along which no two elements of a tensor are equal, all else being the same."""

    axis: int
    is_choice: bool
    """Whether the elements are places that a choice or a sort gave; else they are the index along the axis."""


def _numbering(graph: Graph, position: int) -> _Numbering | None:
    node = graph.nodes[position]
    if isinstance(node.op, ops.Iota):
        return _Numbering(node.op.dimension, is_choice=False)
    if isinstance(node.op, ops.TopK):
        return _Numbering(node.type.rank - 1, is_choice=True) if node.op.result == "indices" else None
    if isinstance(node.op, ops.Sort):
        return _Numbering(node.op.dimension, is_choice=True) if node.op.result == "indices" else None
    if isinstance(node.op, ops.Convert) and node.type.dtype in (DType.I32, DType.I64):
        return _numbering(graph, node.operands[0])
    if isinstance(node.op, ops.Select):
        return _numbering(graph, node.operands[2]) if _asks_for_below(graph, node) else None
    if isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
        return _spread(node, graph.nodes[node.operands[0]].type.shape, _numbering(graph, node.operands[0]))
    return None


def _asks_for_below(graph: Graph, node: Node) -> bool:
    """Whether a select takes something else where its other operand is below nought, which a place never is."""
    test = graph.nodes[node.operands[0]]
    is_below = isinstance(test.op, ops.Compare) and test.op.direction == "LT"
    return is_below and test.operands[0] == node.operands[2] and splat(graph, test.operands[1]) == 0


def _spread(node: Node, source: Shape, inner: _Numbering | None) -> _Numbering | None:
    """The numbering of what is repeated along other axes, or gets axes of size one at its end."""
    if inner is None:
        return None
    if isinstance(node.op, ops.BroadcastInDim):
        axis = node.op.dimensions[inner.axis]
        return replace(inner, axis=axis) if node.type.shape[axis] == source[inner.axis] else None
    return inner if node.type.shape in (source, (*source, 1)) else None
