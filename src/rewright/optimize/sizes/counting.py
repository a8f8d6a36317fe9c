"""Counting: a size that is a symbol is the sum of so many ones, and that is a number where the size is one."""

from __future__ import annotations

from rewright import ops
from rewright.ir.dims import Dim, is_nonnegative, product, symbol
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.leaf import splat

_MOST = {DType.F64: 1 << 53, DType.F32: 1 << 53, DType.I64: 1 << 63, DType.I32: 1 << 31}
"""Smaller numbers are what they are in these dtypes; floats are rounded where they are used."""


def fold_counts(graph: Graph) -> Graph:
    """The same nodes in the same places, where sums of equal whole numbers are numbers, spread or not.

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


def _count(builder: GraphBuilder, node: Node) -> float | int | None:
    """The whole number that all elements of a node are, where it adds such numbers, or spreads one."""
    found = [_whole(builder.node(p).op) for p in node.operands]
    values = [value for value in found if value is not None]
    if len(values) < len(found) or node.type.dtype not in _MOST:
        return None
    total, most = 0, _MOST[node.type.dtype]
    if isinstance(node.op, ops.View):
        (total,) = values
    elif isinstance(node.op, ops.Add):
        total = sum(values)
    elif isinstance(node.op, ops.Reduce) and node.op.kind == "sum":
        shape = builder.type(node.operands[0]).shape
        count = product(shape[axis] for axis in node.op.dimensions)
        total = values[0] * count if isinstance(count, int) else most
    else:
        return None
    if not -most < total < most:
        return None
    return float(total) if node.type.dtype.is_float else total


def _whole(op: object) -> int | None:
    """The whole number that all elements of a constant are; not zero, of which there are two."""
    value = splat(op)
    is_whole = value is not None and not isinstance(value, bool) and value != 0 and float(value).is_integer()
    return int(value) if value is not None and is_whole else None


def add_count(builder: GraphBuilder, value: Dim, dtype: DType) -> int:
    """Add a size as a scalar: of a symbol so many ones."""
    if isinstance(value, int):
        return builder.add(ops.Constant(TensorType((), dtype), (value,)))
    parts = [_add_ones(builder, count * product(map(symbol, names)), dtype) for names, count in value.terms]
    total = parts[0]
    for part in parts[1:]:
        total = builder.add(ops.Add(), total, part)
    return total


def _add_ones(builder: GraphBuilder, value: Dim, dtype: DType) -> int:
    """Add a size, or one less than nothing, as so many ones, or minus ones."""
    sign = -1 if is_nonnegative(value) is False else 1
    ones = builder.add(ops.Constant(TensorType((value * sign,), dtype), (sign,)))
    return builder.add(ops.Reduce("sum", (0,)), ones)


__all__ = ["add_count", "fold_counts"]
