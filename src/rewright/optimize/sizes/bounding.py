"""Places that depend on sizes alone, such as the positions of tokens, brought within the table that they are read from.

At sizes where such a place leaves its table the program is not defined, and runs itself; at all others this is the same
program, and that can be proved without knowing which sizes these are.
"""

from __future__ import annotations

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.rebuilding import rebuild
from rewright.ir.types import TensorType

STATED = "places that depend on sizes alone are in range; at other sizes the program itself runs"


def bound_places(graph: Graph) -> Graph:
    """The program with such places of gathers brought into range, along one axis each."""
    given: set[int] = set()
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Input) or any(p in given for p in node.operands):
            given.add(position)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        op = node.op
        if not isinstance(op, ops.Gather) or node.operands[1] in given or len(op.start_index_map) != 1:
            return None
        table, places = (builder.type(p) for p in operands)
        (axis,) = op.start_index_map
        size, window = table.shape[axis], op.slice_sizes[axis]
        if places.is_static() or not isinstance(size, int) or not isinstance(window, int):
            return None
        low, high = (
            builder.add(ops.Constant(TensorType(places.shape, places.dtype), (limit,))) for limit in (0, size - window)
        )
        return builder.add(op, operands[0], builder.add(ops.Clamp(), low, operands[1], high))

    return rebuild(graph, make)


__all__ = ["STATED", "bound_places"]
