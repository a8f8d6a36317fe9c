"""A mean of squares less the square of the mean, which over the reals is never below zero.

By the inequality of Cauchy and Schwarz the square of a sum of n elements is no more than n times the sum of their
squares. So ``a * sum(x * x) - (b * sum(x)) ** 2`` is not below zero where ``n * b * b`` is no more than ``a``.
Where an element is infinite the difference is NaN. Rounding may take it below zero, so a machine's may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator


@dataclass(frozen=True)
class _Sum:
    """A positive number times the sum of a tensor over some axes, and how that is laid out."""

    factor: Fraction
    source: int
    axes: tuple[int, ...]
    layout: tuple[Operator, ...]


def is_variance(graph: Graph, node: Node) -> bool:
    """Whether a difference is a multiple of a sum of squares less the square of a sum of the same elements."""
    root = _square(graph, node.operands[1])
    total = None if root is None else _sum(graph, root)
    squares = None if total is None else _sum(graph, node.operands[0])
    if squares is None or total is None or _square(graph, squares.source) != total.source:
        return False
    shape = graph.nodes[total.source].type.shape
    sizes = [size for axis in total.axes if isinstance(size := shape[axis], int)]
    if squares.axes != total.axes or squares.layout != total.layout or len(sizes) != len(total.axes):
        return False
    return total.factor**2 * math.prod(sizes) <= squares.factor


def _square(graph: Graph, position: int) -> int | None:
    """What a tensor is the square of, element by element."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.Multiply) and node.operands[0] == node.operands[1]:
        return node.operands[0]
    if isinstance(node.op, ops.Power) and _number(graph, node.operands[1]) == 2:
        return node.operands[0]
    return None


def _sum(graph: Graph, position: int) -> _Sum | None:
    """What a tensor is a multiple of the sum of."""
    factor, layout = Fraction(1), list[Operator]()
    while True:
        node = graph.nodes[position]
        if not node.type.dtype.is_float:
            return None
        if isinstance(node.op, ops.Reduce):
            is_sum = node.op.kind == "sum" and factor > 0
            return _Sum(factor, node.operands[0], tuple(sorted(node.op.dimensions)), tuple(layout)) if is_sum else None
        if isinstance(node.op, ops.Multiply | ops.Divide):
            number = _number(graph, node.operands[1])
            if not number:
                return None
            factor = factor / number if isinstance(node.op, ops.Divide) else factor * number
        elif isinstance(node.op, ops.View):
            layout.append(node.op)
        elif not isinstance(node.op, ops.Convert):
            return None
        position = node.operands[0]


def _number(graph: Graph, position: int) -> Fraction | None:
    """The real number that all elements of a tensor of floats are; None where they are none."""
    value = splat(graph, position)
    return None if value is None or not math.isfinite(value) else Fraction(value)
