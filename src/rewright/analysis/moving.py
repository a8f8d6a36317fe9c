"""What only moves elements: what a node lays out, who reads it so, and what it takes its elements from."""

from __future__ import annotations

from collections.abc import Iterator

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator

LAYING_OUT: tuple[type[Operator], ...] = (ops.View, ops.Convert)
"""A view shows the elements of one tensor at other places, a conversion in another type."""


def laid_out(graph: Graph, position: int) -> int:
    """What is behind all the views and conversions that end at a node."""
    while isinstance(graph.nodes[position].op, LAYING_OUT):
        (position,) = graph.nodes[position].operands
    return position


def readers_behind(
    graph: Graph, position: int, through: tuple[type[Operator], ...] = LAYING_OUT, soon: int | None = None
) -> Iterator[int]:
    """The nodes that read a node, directly or behind operators of some kinds, among the next ``soon`` nodes."""
    reached = {position}
    for reader, node in enumerate(graph.nodes[position + 1 : None if soon is None else position + soon], position + 1):
        if not reached.isdisjoint(node.operands):
            yield reader
            if isinstance(node.op, through):
                reached.add(reader)


def moved_operands(node: Node) -> tuple[int, ...]:
    """The operands that a node takes its elements from; none where it computes."""
    op = node.op
    return tuple(node.operands[k] for k in op.moves(len(node.operands))) if isinstance(op, ops.TensorOperator) else ()
