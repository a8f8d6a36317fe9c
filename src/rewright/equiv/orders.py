"""Steps of quantisation that exchange places, exactly and over all real numbers.

The largest of a row and of its negative is the largest absolute value. Rounding keeps the order and leaves whole
numbers alone, so that it may come before or after a clamp to whole numbers, or a maximum with one. Each has one form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rewright import ops
from rewright.equiv.building import rebuilt
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator

_ROUNDING = (ops.RoundNearestEven, ops.Floor, ops.Ceil)
_LAYOUT = (ops.BroadcastInDim, ops.Reshape)


@dataclass(frozen=True)
class _Extreme:
    """The largest of a tensor, or of its negative, along some axes, and how that is laid out, from outside."""

    source: int
    axes: tuple[int, ...]
    layout: tuple[Operator, ...]
    of_negative: bool
    of_absolute: bool
    """Whether the absolute value is taken of the largest, or of the least, element."""


def in_order(graph: Graph) -> Graph:
    """The program with absolute values below maxima, and clamps to whole numbers behind what rounds."""
    return rebuilt(graph, _made) if any(_is_one(graph, node) for node in graph.nodes) else graph


def _is_one(graph: Graph, node: Node) -> bool:
    if isinstance(node.op, ops.Maximum) and node.type.dtype.is_float:
        return all(graph.nodes[p].op != node.op for p in node.operands)
    return isinstance(node.op, _ROUNDING)


def _made(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
    if isinstance(node.op, ops.Maximum) and node.type.dtype.is_float:
        return _absolute(builder, *operands)
    return _behind(builder, node.op, operands[0]) if isinstance(node.op, _ROUNDING) else None


def _behind(builder: GraphBuilder, op: Operator, position: int) -> int | None:
    """What rounds in front of clamps, maxima and minima with whole numbers; None where there are none."""
    node = builder.node(position)
    if not isinstance(node.op, ops.Clamp | ops.Maximum | ops.Minimum):
        return None
    ends = [_number(builder, p) for p in node.operands]
    free = [k for k in range(len(ends)) if k == 1] if isinstance(node.op, ops.Clamp) else [0, 1]
    for k in free:
        if all(end is not None and end == round(end) for n, end in enumerate(ends) if n != k):
            inner = _behind(builder, op, node.operands[k])
            rounded = builder.add(op, node.operands[k]) if inner is None else inner
            return builder.add(node.op, *(rounded if n == k else p for n, p in enumerate(node.operands)))
    return None


def _number(builder: GraphBuilder, position: int) -> float | None:
    """The number that all elements of a node are; None where they are not one, or infinite."""
    node = builder.node(position)
    while isinstance(node.op, _LAYOUT):
        node = builder.node(node.operands[0])
    values = node.op.values if isinstance(node.op, ops.Constant) else ()
    return float(values[0]) if len(values) == 1 and math.isfinite(values[0]) else None


def _absolute(builder: GraphBuilder, left: int, right: int) -> int | None:
    """The largest absolute value, where two tensors are the largest element and that of the negative."""
    one, other = _extreme(builder, left), _extreme(builder, right)
    if one is None or other is None:
        return None
    if (one.source, one.axes, one.layout, one.of_absolute) != (
        other.source,
        other.axes,
        other.layout,
        other.of_absolute,
    ):
        return None
    shape = builder.type(one.source).shape
    if one.of_negative == other.of_negative or any(shape[axis] == 0 for axis in one.axes):
        return None
    place = builder.add(ops.Reduce("maximum", one.axes), builder.add(ops.Abs(), one.source))
    for layout in reversed(one.layout):
        place = builder.add(layout, place)
    return place


def _extreme(builder: GraphBuilder, position: int) -> _Extreme | None:
    layout: list[Operator] = []
    negated = absolute = False
    node = builder.node(position)
    while isinstance(node.op, (*_LAYOUT, ops.Negate, ops.Abs)):
        if isinstance(node.op, ops.Abs):
            if negated:
                return None
            absolute = True
        elif isinstance(node.op, ops.Negate):
            negated = not negated
        else:
            layout.append(node.op)
        node = builder.node(node.operands[0])
    if not isinstance(node.op, ops.Reduce) or node.op.kind not in ("maximum", "minimum"):
        return None
    source, inner = node.operands[0], builder.node(node.operands[0])
    turned = isinstance(inner.op, ops.Negate)
    source = inner.operands[0] if turned else source
    is_least = node.op.kind == "minimum"
    if not absolute and negated != is_least:
        return None  # the least element of a tensor, or of its negative
    axes = tuple(sorted(node.op.dimensions))
    return _Extreme(source, axes, tuple(layout), turned != is_least, absolute)
