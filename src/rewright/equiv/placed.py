"""Tensors that are nought but for what is written at the places of a choice, written or added.

The places that a choice or a sort gives are different ones in every row, so that no element is written twice: writing
into noughts is adding to them. The engine knows sums. Programs that weigh experts in several ways get them all as sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.equiv.building import rebuilt
from rewright.equiv.fillings import splat
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType


def placed_alike(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with what is written into noughts at different places as sums.

    They are returned as they are where all of them write in the same ways.
    """
    found = [_written(graph) for graph in graphs]
    ways = [
        {(node.op, splat(graph, node.operands[2])) for node in graph.nodes if isinstance(node.op, ops.Scatter)}
        for graph in graphs
    ]
    if not any(found) or all(own == ways[0] for own in ways):
        return tuple(graphs)
    return tuple(_added(graph, places) for graph, places in zip(graphs, found, strict=True))


def _added(graph: Graph, places: frozenset[int]) -> Graph:
    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position not in places or not isinstance(node.op, ops.Scatter):
            return None
        return builder.add(replace(node.op, kind="sum"), *operands)

    return rebuilt(graph, make) if places else graph


def _written(graph: Graph) -> frozenset[int]:
    """Nodes that write into noughts, never twice at one place."""
    return frozenset(
        position
        for position, node in enumerate(graph.nodes)
        if isinstance(node.op, ops.Scatter)
        and node.op.kind == "replace"
        and node.type.dtype.is_float
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
