"""Sums of ones as numbers: how a program counts elements where sizes are symbols, and where they are numbers."""

from __future__ import annotations

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.leaf import splat

_MOST = 1 << 31
"""Smaller numbers are what they are in 32 bits and in 64."""


def fold_counts(graph: Graph) -> Graph:
    """The same nodes in the same places, where the sum of so many ones is their number, spread or not.

    A program that divides by the number of its rows has a sum of ones where this is a symbol, and a constant where it
    is a number. With numbers for the symbols the one is the other.
    """
    builder = GraphBuilder(graph.name)
    for node in graph.nodes:
        builder.span = node.span
        count = _count(builder, node)
        if isinstance(node.op, ops.Input):
            builder.input(node.op.label, node.op)
        elif count is None:
            builder.add(node.op, *node.operands, span=node.span)
        else:
            builder.add(ops.Constant(node.type, (count,)), span=node.span)
    for name, position in graph.outputs.items():
        builder.output(name, position)
    found = builder.build()
    return Graph(found.nodes, found.inputs, found.outputs, graph.name, graph.metadata)


def _count(builder: GraphBuilder, node: Node) -> float | int | bool | None:
    """The number that all elements of a node are, where it counts or spreads one."""
    value = splat(builder.node(node.operands[0]).op) if len(node.operands) == 1 else None
    if value is None or isinstance(value, bool):
        return None
    if isinstance(node.op, (ops.BroadcastInDim, ops.Reshape)):
        return value
    if isinstance(node.op, ops.Reduce) and node.op.kind == "sum" and value == 1:
        return _ones(builder.type(node.operands[0]), node)
    return None


def _ones(given: TensorType, node: Node) -> float | int | None:
    """The sum of ones, where it is a number that the dtype has."""
    assert isinstance(node.op, ops.Reduce)
    count = 1
    for axis in node.op.dimensions:
        size = given.shape[axis]
        if not isinstance(size, int):
            return None
        count *= size
    if node.type.dtype.is_float:
        return float(count)
    return count if node.type.dtype in (DType.I32, DType.I64) and 0 < count < _MOST else None


__all__ = ["fold_counts"]
