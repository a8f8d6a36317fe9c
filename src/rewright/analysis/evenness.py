"""Tensors that are one number, as a whole or along some of their axes: read off what operators follow.

>>> Evenness(graph).is_even(position, (1,))  # a sum of rows, laid out as the rows
True
"""

from __future__ import annotations

from collections.abc import Iterable

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.base import Following
from rewright.ops.facts import fits, of_values, whole_limit


def number_of(graph: Graph, position: int) -> int | None:
    """The constant of one number that all elements of a node are; None where they are none."""
    node = graph.nodes[position]
    while isinstance(node.op, ops.View) or _keeps_numbers(graph, node):
        position = node.operands[0]
        node = graph.nodes[position]
    return None if ops.splat(node.op) is None else position


def _keeps_numbers(graph: Graph, node: Node) -> bool:
    """Whether a node is a cast that makes no other number of any number."""
    if not isinstance(node.op, ops.Convert):
        return False
    source = graph.nodes[node.operands[0]].type.dtype
    return node.type.dtype.is_float or source is node.type.dtype or source is DType.BOOL


def splat(graph: Graph, position: int) -> float | None:
    """The number that all elements of a node are; None where they are not one, or no float or its type holds it."""
    source = number_of(graph, position)
    op = None if source is None else graph.nodes[source].op
    if not isinstance(op, ops.Constant):
        return None
    dtype, value = op.tensor.dtype, op.values[0]
    is_held = dtype.is_float or (fits(of_values(op.values), dtype) and abs(value) <= whole_limit(DType.F64))
    return float(value) if is_held else None


def follows(graph: Graph, node: Node) -> tuple[Following, ...] | None:
    """What the axes of the operands of a node follow, by operand; None where nothing is known of it."""
    op, types = node.op, [graph.nodes[p].type for p in node.operands]
    return op.follows(types, node.type) if isinstance(op, ops.TensorOperator) else None


def keeps_rows(graph: Graph, node: Node) -> tuple[Following, ...] | None:
    """What axes go on row by row, by operand; None where nothing is known of it."""
    op, types = node.op, [graph.nodes[p].type for p in node.operands]
    return op.keeps_rows(types, node.type) if isinstance(op, ops.TensorOperator) else None


def follows_whole(graph: Graph, node: Node) -> tuple[Following, ...] | None:
    """What axes follow, by operand; None where one that has several places follows none."""
    found = follows(graph, node)
    for position, own in zip(node.operands, found or (), strict=found is not None):
        if any(to is None and size != 1 for to, size in zip(own, graph.nodes[position].type.shape, strict=True)):
            return None
    return found


class Evenness:
    """Along which axes of a program's nodes all elements certainly are one."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[int, frozenset[int]], bool] = {}

    def is_even(self, position: int, axes: Iterable[int]) -> bool:
        """Whether all elements of a node along some axes are one number, whatever the other coordinates.

        So are numbers, and what is computed at one place of tensors that are, element by element.
        """
        shape = self._graph.nodes[position].type.shape
        wanted = frozenset(axis for axis in axes if shape[axis] != 1)
        key = position, wanted
        if wanted and key not in self._known:
            self._known[key] = self._is_even(position, wanted)
        return not wanted or self._known[key]

    def _is_even(self, position: int, axes: frozenset[int]) -> bool:
        node = self._graph.nodes[position]
        if isinstance(node.op, ops.Constant):
            return not ops.is_table(node.op)
        if isinstance(node.op, ops.Iota):
            return node.op.dimension not in axes
        found = follows_whole(self._graph, node) if node.operands else None
        if found is None:
            return False
        kept = ([axis for axis, to in enumerate(own) if to in axes] for own in found)
        return all(map(self.is_even, node.operands, kept))
