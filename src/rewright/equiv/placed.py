"""Tensors that are nought but for what is written at the places of a choice, written or added.

The places that a choice or a sort gives are different ones in every row, so that no element is written twice: writing
into noughts is adding to them. The engine knows sums. Programs that weigh experts in several ways get them all as sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewright import ops
from rewright.equiv.building import rebuilt
from rewright.equiv.fillings import splat
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
        and _writes_rows(graph, node.op, node)
    )


def _writes_rows(graph: Graph, op: ops.Scatter, node: Node) -> bool:
    """Whether each row of indices, along the axis of a choice, says where in a row of its own updates go."""
    indices, axis = graph.nodes[node.operands[1]], _axis_of_choice(graph, node.operands[1])
    if axis is None or op.update_window_dims or len(op.scatter_dims_to_operand_dims) != 1:
        return False
    if op.index_vector_dim not in (indices.type.rank, indices.type.rank - 1) or axis == op.index_vector_dim:
        return False
    rows = {a for a in range(indices.type.rank) if a not in (axis, op.index_vector_dim)}
    return rows == set(op.scatter_indices_batching_dims)


def _axis_of_choice(graph: Graph, position: int) -> int | None:
    """The axis along which a tensor holds places that a choice or a sort gave, no two of them equal."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.TopK):
        return node.type.rank - 1 if node.op.result == "indices" else None
    if isinstance(node.op, ops.Sort):
        return node.op.dimension if node.op.result == "indices" else None
    if isinstance(node.op, ops.Convert) and node.type.dtype in (DType.I32, DType.I64):
        return _axis_of_choice(graph, node.operands[0])
    if isinstance(node.op, ops.Reshape):
        source = graph.nodes[node.operands[0]].type.shape
        if node.type.shape in ((*source, 1), source):
            return _axis_of_choice(graph, node.operands[0])
    return None
