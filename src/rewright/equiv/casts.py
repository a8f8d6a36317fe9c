"""Whole numbers that are cast to integers and back, as codes of quantised tensors are: such casts leave them alone.

A cast to an integer cuts off the fraction. What was rounded, or counted, has none. Whether an integer type holds the
number is another question, which programs are asked as they are written.
"""

from __future__ import annotations

import math

from rewright import ops
from rewright.equiv.building import converted, rebuilt
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType

_WHOLE = (ops.Floor, ops.Ceil, ops.RoundNearestEven, ops.Sign)
_KEEPING = (
    ops.Abs,
    ops.Add,
    ops.BroadcastInDim,
    ops.Clamp,
    ops.Concatenate,
    ops.Convert,
    ops.Maximum,
    ops.Minimum,
    ops.Multiply,
    ops.Negate,
    ops.Pad,
    ops.Reshape,
    ops.Reverse,
    ops.Slice,
    ops.Subtract,
    ops.Transpose,
)
"""What these make of whole numbers is whole."""


def without_casts(graph: Graph) -> Graph:
    """The program without casts of whole numbers to a type between the one that they have and the one that they get."""
    whole = _whole(graph)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if not isinstance(node.op, ops.Convert) or node.type.dtype is DType.BOOL or not whole[node.operands[0]]:
            return None
        inner = builder.node(operands[0])
        is_number = isinstance(inner.op, ops.Convert) and inner.type.dtype is not DType.BOOL
        return converted(builder, inner.operands[0], node.type) if is_number else None

    return rebuilt(graph, make)


def _whole(graph: Graph) -> list[bool]:
    """For every node whether all its elements are whole numbers before any cast cuts off a fraction."""
    found: list[bool] = []
    for node in graph.nodes:
        before = [found[p] for p in node.operands]
        if isinstance(node.op, ops.Constant):
            found.append(all(math.isfinite(v) and v == int(v) for v in node.op.values))
        elif isinstance(node.op, _KEEPING):
            found.append(all(before))
        else:
            found.append(not node.type.dtype.is_float or isinstance(node.op, _WHOLE))
    return found
