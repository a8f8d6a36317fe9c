"""Results whose axes are put together at the end, as the heads of attention are: they are views of what is stored.

So a kernel has the heads of a group, which read the same keys, as its rows, and not as a part of one axis.
"""

from __future__ import annotations

from collections.abc import Collection

from rewright import ops
from rewright.ir.graph import Graph
from rewright.optimize.planning.costs import elements


def flat_results(graph: Graph, library: Collection[int]) -> list[int]:
    """The results of products that are returned with axes put together, where what these are views of is computed.

    ``library`` are the nodes that a library computes.
    """
    outputs = set(graph.outputs.values())
    found: list[int] = []
    for position in sorted(outputs):
        base, are_joined = position, False
        while _is_flat(graph, base):
            are_joined |= isinstance(graph.nodes[base].op, ops.Reshape)
            base = graph.nodes[base].operands[0]
        if are_joined and base not in outputs and base not in library and _multiplies(graph, base, library):
            found.append(position)
    return found


def _is_flat(graph: Graph, position: int) -> bool:
    """Whether a tensor has the elements of its operand in their order."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.BroadcastInDim):
        return elements(graph, position) == elements(graph, node.operands[0])
    return isinstance(node.op, ops.Reshape)


def _multiplies(graph: Graph, root: int, library: Collection[int]) -> bool:
    """Whether a tensor is made of a product by functions of its elements alone."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        position = stack.pop()
        node = graph.nodes[position]
        if isinstance(node.op, ops.DotGeneral):
            return True
        if position not in seen and isinstance(node.op, ops.Elementwise) and position not in library:
            stack.extend(node.operands)
        seen.add(position)
    return False
