"""Maxima with nought of what is never below nought, which are no maxima over the reals.

A variance in one pass, the mean of squares less the square of the mean, may come out below nought where it is rounded;
so programs take nought then. Over the reals it never is, by the inequality of Cauchy and Schwarz: over n elements the
square of the sum is no more than n times the sum of squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rewright import ops
from rewright.analysis.values import facts_where_defined
from rewright.equiv.building import pruned, rebuilt
from rewright.equiv.fillings import splat
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ops.facts import Facts

_LAYOUT = (ops.BroadcastInDim, ops.Reshape, ops.Transpose)
_ROUNDED = Fraction(1, 10**12)
"""The inverse of a count is the double nearest to it."""


def without_floors(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs without maxima with nought of what is never below it."""
    return tuple(_lowered(graph, known) for graph, known in zip(graphs, facts_where_defined(graphs), strict=True))


def _lowered(graph: Graph, known: Sequence[Facts]) -> Graph:
    kept = {
        position: k
        for position, node in enumerate(graph.nodes)
        if isinstance(node.op, ops.Maximum) and node.type.dtype.is_float
        for k in (0, 1)
        if splat(graph, node.operands[1 - k]) == 0
        and (_is_never_below(known[node.operands[k]]) or _is_variance(graph, node.operands[k]))
    }

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        return operands[kept[position]] if position in kept else None

    return pruned(rebuilt(graph, make)) if kept else graph


def _is_never_below(known: Facts) -> bool:
    return known.is_nonnegative and not known.nan


@dataclass(frozen=True)
class _Sum:
    """A number times the sum of a tensor, or of its squares, over some axes, and how that is laid out."""

    factor: Fraction
    source: int
    axes: tuple[int, ...]
    layout: tuple[Operator, ...]


def _is_variance(graph: Graph, position: int) -> bool:
    """Whether a tensor is a mean of squares less the square of the mean, of the same elements."""
    node = graph.nodes[position]
    if not isinstance(node.op, ops.Subtract):
        return False
    squares = _sum(graph, node.operands[0])
    root = _squared(graph, node.operands[1])
    total = None if root is None else _sum(graph, root)
    if squares is None or total is None or _squared(graph, squares.source) != total.source:
        return False
    shape = graph.nodes[total.source].type.shape
    count = 1
    for axis in total.axes:
        size = shape[axis]
        if not isinstance(size, int):
            return False
        count *= size
    is_bounded = total.factor**2 * count <= squares.factor * (1 + _ROUNDED)
    return squares.axes == total.axes and squares.layout == total.layout and is_bounded


def _squared(graph: Graph, position: int) -> int | None:
    """What a tensor is the square of, element by element."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.Multiply) and node.operands[0] == node.operands[1]:
        return node.operands[0]
    if isinstance(node.op, ops.Power) and splat(graph, node.operands[1]) == 2:
        return node.operands[0]
    return None


def _sum(graph: Graph, position: int) -> _Sum | None:
    """What a tensor is a multiple of the sum of."""
    factor, layout = Fraction(1), list[Operator]()
    while True:
        node = graph.nodes[position]
        if isinstance(node.op, ops.Reduce):
            if node.op.kind != "sum" or factor <= 0:
                return None
            return _Sum(factor, node.operands[0], tuple(sorted(node.op.dimensions)), tuple(layout))
        if isinstance(node.op, ops.Multiply | ops.Divide):
            number = splat(graph, node.operands[1])
            if not number:
                return None
            factor = factor / Fraction(number) if isinstance(node.op, ops.Divide) else factor * Fraction(number)
        elif isinstance(node.op, _LAYOUT):
            layout.append(node.op)
        elif not (isinstance(node.op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype.is_float):
            return None
        position = node.operands[0]
