"""What only moves elements: what a node lays out, and what it takes its elements from."""

from __future__ import annotations

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


def moved_operands(node: Node) -> tuple[int, ...]:
    """The operands that a node takes its elements from; none where it computes."""
    op = node.op
    return tuple(node.operands[k] for k in op.moves(len(node.operands))) if isinstance(op, ops.TensorOperator) else ()
