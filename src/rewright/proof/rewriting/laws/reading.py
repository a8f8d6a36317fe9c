"""What laws read off a program: numbers, places on an axis, and rows of equal elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.facts import Facts, fits
from rewright.proof.rewriting.parts import splat

LONG = (DType.I32, DType.I64, DType.U32, DType.U64)
"""Integers that wrap nowhere where a program is defined."""


def number(graph: Graph, known: Sequence[Facts], position: int) -> float | None:
    """The number that all elements of a node are; None where they are not one, or a cast made another of it.

    300 is 44 as a byte, and 0.5 is no integer: the facts of the node then do not contain it.
    """
    found = splat(graph, position)
    return found if found is not None and not math.isnan(found) and known[position].contains(found) else None


def evenness(graph: Graph) -> list[bool]:
    """For every node whether all elements along its last axis certainly are one: of a row's sum, laid out as the row.

    Such are numbers, what is repeated along that axis, and what is computed of such element by element.
    """
    found: list[bool] = []
    for node in graph.nodes:
        found.append(_is_even(graph, node, found))
    return found


def _is_even(graph: Graph, node: Node, before: Sequence[bool]) -> bool:
    last = node.type.rank - 1
    if last < 0 or node.type.shape[last] == 1:
        return True
    if isinstance(node.op, ops.Constant):
        return len(node.op.values) == 1
    if isinstance(node.op, ops.BroadcastInDim):
        (operand,) = node.operands
        shape, dimensions = graph.nodes[operand].type.shape, node.op.dimensions
        if last not in dimensions or shape[dimensions.index(last)] == 1:
            return True
        return dimensions.index(last) == len(shape) - 1 and before[operand]
    return isinstance(node.op, ops.Elementwise) and all(before[p] for p in node.operands)


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


def places_on(graph: Graph, known: Sequence[Facts], position: int) -> Dim | None:
    """The length of the axis that all elements of a tensor are places on, as a choice gave them; None for others."""
    while True:
        position = core(graph, known, position)
        node = graph.nodes[position]
        if isinstance(node.op, ops.TopK | ops.Sort) and node.op.result == "indices":
            shape = graph.nodes[node.operands[0]].type.shape
            return shape[node.op.dimension if isinstance(node.op, ops.Sort) else len(shape) - 1]
        if not moves_one(node):
            return None
        position = node.operands[0]


def moves_one(node: Node) -> bool:
    """Whether every element is one of the first operand's, and comes from no other rank."""
    if not isinstance(node.op, ops.TensorOperator) or isinstance(node.op, ops.Collective):
        return False
    return node.op.moves(len(node.operands)) == (0,)
