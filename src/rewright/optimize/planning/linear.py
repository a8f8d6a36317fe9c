"""Linear layers: a matrix product and the bias that is added to it, which a library computes in one call."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ops.base import Combining


def linear_layers(graph: Graph, library: Collection[int]) -> dict[int, int]:
    """For sums that a library computes the product that a bias is added to, where nothing else reads that product."""
    users = graph.users()
    found: dict[int, int] = {}
    for position in library:
        parts = addends(graph, position)
        if parts is not None and parts[0] in library and reader_of(graph, users, parts[0]) == position:
            found[position] = parts[0]
    return found


def sum_of(graph: Graph, users: Sequence[Sequence[int]], product: int) -> int | None:
    """The sum of a product and a bias, where nothing is made of it element by element, as an activation would be."""
    position = reader_of(graph, users, product)
    if position is None or (parts := addends(graph, position)) is None or parts[0] != product:
        return None
    stack = list(users[position])
    while stack:
        op = graph.nodes[p := stack.pop()].op
        is_view = isinstance(op, ops.View)
        if isinstance(op, (ops.Elementwise, ops.Layout, Combining)) and not is_view:
            return None
        stack.extend(users[p] if is_view else ())
    return position


def addends(graph: Graph, position: int) -> tuple[int, int] | None:
    """The product and the bias, of one axis, of a sum that is a linear layer."""
    nodes = graph.nodes
    if not isinstance(nodes[position].op, ops.Add) or not nodes[position].type.dtype.is_float:
        return None
    for first, second in (nodes[position].operands, nodes[position].operands[::-1]):
        spread, product = nodes[second], _product_of(graph, first)
        last = nodes[position].type.rank - 1
        if isinstance(spread.op, ops.BroadcastInDim) and spread.op.dimensions == (last,) and product is not None:
            op, sizes = nodes[product].op, nodes[product].type.shape
            plain = isinstance(op, ops.DotGeneral) and not op.lhs_batch and len(op.lhs_contracting) == 1
            width = nodes[spread.operands[0]].type.shape
            if plain and sizes and width == sizes[-1:] == nodes[position].type.shape[-1:]:
                return product, spread.operands[0]
    return None


def _product_of(graph: Graph, position: int) -> int | None:
    """The product that a tensor is, or is with other axes."""
    while isinstance(graph.nodes[position].op, ops.Reshape):
        position = graph.nodes[position].operands[0]
    return position if isinstance(graph.nodes[position].op, ops.DotGeneral) else None


def reader_of(graph: Graph, users: Sequence[Sequence[int]], position: int) -> int | None:
    """The one node that reads a tensor, through reshapes alone; None where several do, or it is returned."""
    returned = set(graph.outputs.values())
    while position not in returned and len(users[position]) == 1:
        (position,) = users[position]
        if not isinstance(graph.nodes[position].op, ops.Reshape):
            return position
    return None
