"""What laws read off a program: numbers, and places on an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rewright import ops
from rewright.analysis.evenness import follows, splat
from rewright.analysis.moving import moved_operands
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import Facts, fits

LONG = (DType.I32, DType.I64, DType.U32, DType.U64)
"""Integers that wrap nowhere where a program is defined."""


def number(graph: Graph, known: Sequence[Facts], position: int) -> float | None:
    """The number that all elements of a node are; None where they are not one, or a cast made another of it.

    300 is 44 as a byte, and 0.5 is no integer: the facts of the node then do not contain it.
    """
    found = splat(graph, position)
    return found if found is not None and not math.isnan(found) and known[position].contains(found) else None


def core(graph: Graph, known: Sequence[Facts], position: int) -> int:
    """What has the same numbers where these are places: without casts, tests for places below zero, and a last axis.

    Casts to short integers count as none only where these hold all numbers.
    """
    while True:
        node = graph.nodes[position]
        if isinstance(node.op, ops.Convert) and keeps_places(graph, known, position):
            position = node.operands[0]
        elif isinstance(node.op, ops.Select) and asks_for_below(graph, known, node):
            position = node.operands[2]
        elif isinstance(node.op, ops.Reshape) and node.type.shape == (*graph.nodes[node.operands[0]].type.shape, 1):
            position = node.operands[0]
        else:
            return position


def keeps_places(graph: Graph, known: Sequence[Facts], position: int) -> bool:
    """Whether a cast of integers that are not negative keeps them, wherever the program is defined."""
    (operand,) = graph.nodes[position].operands
    target = graph.nodes[position].type.dtype
    return (
        graph.nodes[operand].type.dtype.is_integer
        and not target.is_float
        and (target in LONG or fits(known[operand], target))
    )


def asks_for_below(graph: Graph, known: Sequence[Facts], node: Node) -> bool:
    """Whether a select takes something else where its last operand is below zero, which a place never is."""
    test = graph.nodes[node.operands[0]]
    is_below = isinstance(test.op, ops.Compare) and test.op.direction == "LT"
    return is_below and test.operands[0] == node.operands[2] and number(graph, known, test.operands[1]) == 0


def plain(graph: Graph, known: Sequence[Facts], position: int) -> int:
    """What is behind casts that keep whole numbers."""
    node = graph.nodes[position]
    while isinstance(node.op, ops.Convert):
        (source,) = node.operands
        target = node.type.dtype
        if not (known[source].whole and known[source].is_finite and (target.is_float or fits(known[source], target))):
            break
        position, node = source, graph.nodes[source]
    return position


def along(graph: Graph, known: Sequence[Facts], position: int, axis: int) -> int | None:
    """The list of whole numbers that a tensor has along an axis, whatever its other coordinates."""
    while True:
        position = plain(graph, known, position)
        node = graph.nodes[position]
        if node.type.rank == 1:
            return position
        inner = followed(graph, node, axis) if isinstance(node.op, ops.View) else None
        if inner is None:
            return None
        (source,) = node.operands
        if any(size != 1 for k, size in enumerate(graph.nodes[source].type.shape) if k != inner):
            return None
        position, axis = source, inner


def followed(graph: Graph, node: Node, axis: int) -> int | None:
    """The axis of a view's operand that one of its axes follows."""
    found = follows(graph, node)
    return None if found is None or axis not in found[0] else found[0].index(axis)


def places_on(graph: Graph, known: Sequence[Facts], position: int) -> Dim | None:
    """The length of the axis that all elements of a tensor are places on, as a choice gave them; None for others."""
    while True:
        position = core(graph, known, position)
        node = graph.nodes[position]
        if isinstance(node.op, ops.Ordering) and node.op.result == "indices":
            shape = graph.nodes[node.operands[0]].type.shape
            return shape[node.op.along(len(shape))]
        moved = moved_operands(node)
        if isinstance(node.op, ops.Collective) or not moved or moved != node.operands[:1]:
            return None
        (position,) = moved


def reads_whole_rows(op: ops.Gather, kind: TensorType) -> bool:
    """Whether rows of a tensor of this type are read, one behind the other, each as a whole."""
    rows = op.start_index_map == op.collapsed_slice_dims == (0,) and not op.operand_batching_dims
    return rows and op.offset_dims == tuple(range(1, kind.rank)) and op.slice_sizes[1:] == kind.shape[1:]


def writes_whole_rows(op: ops.Scatter, kind: TensorType) -> bool:
    """Whether rows of a tensor of this type are written, each as a whole."""
    rows = op.inserted_window_dims == op.scatter_dims_to_operand_dims == (0,) and not op.input_batching_dims
    return rows and op.update_window_dims == tuple(range(1, kind.rank))


def is_list(kind: TensorType, vector_dim: int) -> bool:
    """Whether indices of this type are one number each, one behind the other."""
    return kind.rank == vector_dim == 1 or (kind.rank == 2 and kind.shape[1] == vector_dim == 1)


def writes_rows(op: ops.Scatter, rank: int) -> bool:
    """Whether elements of every row are written at places along the last axis that are its own."""
    rows, last = tuple(range(rank - 1)), (rank - 1,)
    is_batched = op.input_batching_dims == op.scatter_indices_batching_dims == rows
    return is_batched and op.scatter_dims_to_operand_dims == op.inserted_window_dims == last
