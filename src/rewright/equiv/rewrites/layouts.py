"""Views that are taken off a node, and put around what takes its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewright import ops
from rewright.ir.graph import GraphBuilder, Node
from rewright.ir.operator import Operator


def views_behind(nodes: Callable[[int], Node], position: int) -> tuple[int, list[Operator]]:
    """What is behind the views that end at a node, and these, from the node inwards."""
    layouts: list[Operator] = []
    while isinstance(nodes(position).op, ops.View):
        layouts.append(nodes(position).op)
        (position,) = nodes(position).operands
    return position, layouts


def lay_out(builder: GraphBuilder, position: int, layouts: Sequence[Operator]) -> int:
    """Append the views of another node, which are given from the outermost inwards."""
    for layout in reversed(layouts):
        position = builder.add(layout, position)
    return position
