"""A program, and what is known of its nodes: who reads them, between what they lie, and which are truth values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from rewright import ops
from rewright.analysis.ends import Bound, ends
from rewright.analysis.evenness import splat
from rewright.analysis.moving import moved_operands
from rewright.ir.graph import Graph, Node


class Program:
    """A program, and what is known of its nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    @cached_property
    def users(self) -> Sequence[Sequence[int]]:
        """By node the nodes that read it."""
        return self.graph.users()

    @cached_property
    def truths(self) -> Mapping[int, tuple[int, bool]]:
        """See :func:`truth_values`."""
        return truth_values(self.graph)

    @cached_property
    def bounds(self) -> Sequence[Bound | None]:
        """Between what the elements of each node lie."""
        return ends(self.graph)

    @cached_property
    def at_zero(self) -> Sequence[Bound | None]:
        """Bounds where all floats that the program is given are zero."""
        return ends(self.graph, at_zero=True)

    @cached_property
    def closed(self) -> Sequence[bool]:
        """Whether no float that the program is given, and no integer that may be any, goes into a node."""
        found: list[bool] = []
        for node, bound in zip(self.graph.nodes, self.bounds, strict=True):
            is_given = isinstance(node.op, ops.Input)
            found.append(bound is not None or (not is_given and all(found[p] for p in node.operands)))
        return found


def passes_on(node: Node, position: int) -> bool:
    """Whether the elements of an operand may be elements of the result, as they are or in another type."""
    return isinstance(node.op, ops.Convert) or position in moved_operands(node)


def truth_values(graph: Graph) -> dict[int, tuple[int, bool]]:
    """Float nodes that are one where a condition holds, or where it does not, and zero elsewhere."""
    found: dict[int, tuple[int, bool]] = {}
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype.value == "i1":
            found[position] = node.operands[0], True
        elif isinstance(node.op, ops.Convert) and node.operands[0] in found:
            found[position] = found[node.operands[0]]
        elif isinstance(node.op, ops.Subtract) and node.operands[1] in found and splat(graph, node.operands[0]) == 1:
            condition, holds = found[node.operands[1]]
            found[position] = condition, not holds
    return found
