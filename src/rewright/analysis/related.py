"""What is known of a node because of how its operands are related to each other: that ``x * x`` is not negative."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from rewright import ops
from rewright.analysis.rows import is_by_own_row, own_row
from rewright.analysis.variances import is_variance
from rewright.ir.dims import at_most
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ops.facts import Facts, join, meet
from rewright.ops.functions.record import Direction


def facts_of_rows(graph: Graph, node: Node, operands: Sequence[Facts], found: Facts, *, casts: bool = True) -> Facts:
    """What is known of a node beyond its transfer function, where its operands are related to each other.

    - ``x * x`` is not negative, nor is a mean of squares less the square of the mean.
    - ``x - max(row of x)`` is at most zero, and ``x / sum(row of x)`` is at most one where x is not negative.
    - a sum of ``exp(x - max(row of x))`` over the row is at least one: the largest element adds ``exp(0)``.

    ``casts``: casts keep numbers, as over the reals; a machine may round the maximum to one below its row, and sums.
    """
    rule = _RULES.get(type(node.op))
    return found if rule is None else rule(graph, node, operands, found, casts)


def looks_around(node: Node) -> bool:
    """Whether :func:`facts_of_rows` may read more of a node than operator, types and the facts of its operands."""
    is_of_others = isinstance(node.op, ops.Multiply) and node.operands[0] != node.operands[1]
    return type(node.op) in _RULES and not is_of_others


def _product(graph: Graph, node: Node, operands: Sequence[Facts], found: Facts, casts: bool) -> Facts:
    if node.operands[0] != node.operands[1]:
        return found
    return meet(found, replace(found, low=0, minus_infinity=False, nan=operands[0].nan))


def _difference(graph: Graph, node: Node, operands: Sequence[Facts], found: Facts, casts: bool) -> Facts:
    if node.operands[0] == node.operands[1] and operands[0].is_finite:
        return replace(found, low=0, high=0, zero=True)
    if is_by_own_row(graph, node, "maximum", casts=casts):
        return meet(found, replace(found, high=0, plus_infinity=False))
    if casts and node.type.dtype.is_float and is_variance(graph, node):
        return meet(found, replace(found, low=0, minus_infinity=False))
    return found


def _quotient(graph: Graph, node: Node, operands: Sequence[Facts], found: Facts, casts: bool) -> Facts:
    if not operands[0].is_nonnegative or not is_by_own_row(graph, node, "sum", casts=casts):
        return found
    return meet(found, replace(found, low=0, high=1, plus_infinity=False, minus_infinity=False))


def _reduction(graph: Graph, node: Node, operands: Sequence[Facts], found: Facts, casts: bool) -> Facts:
    op = node.op
    if not isinstance(op, ops.Reduce) or op.kind != "sum" or not _has_one(graph, op, node.operands[0], casts=casts):
        return found
    return replace(found, low=max(found.low, 1), zero=False)


def _choice(graph: Graph, node: Node, operands: Sequence[Facts], found: Facts, casts: bool) -> Facts:
    """Of ``where(x > c, x, a)``: where x is chosen it is above ``c``; and so for other comparisons."""
    test = graph.nodes[node.operands[0]]
    if not isinstance(test.op, ops.Compare) or test.operands[0] not in node.operands[1:]:
        return found
    value, place = ops.splat(graph.nodes[test.operands[1]].op), node.operands.index(test.operands[0], 1)
    if value is None or math.isnan(value):
        return found
    own = operands[place]
    kept = _where(own, test.op.direction if place == 1 else _OPPOSITE[test.op.direction], value)
    if place == 2 or test.op.direction == "NE":
        kept = replace(kept, nan=own.nan)
    return meet(found, join(operands[3 - place], kept))


_OPPOSITE: dict[Direction, Direction] = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "LE": "GT", "GT": "LE"}


def _where(x: Facts, direction: Direction, value: float) -> Facts:
    """What elements may be of which a comparison with a number holds; no NaN is among them."""
    x, infinite = replace(x, nan=False), math.isinf(value)
    if direction == "NE":
        is_plus, is_minus = infinite and value > 0, infinite and value < 0
        zero, plus, minus = x.zero and value != 0, x.plus_infinity and not is_plus, x.minus_infinity and not is_minus
        return replace(x, zero=zero, plus_infinity=plus, minus_infinity=minus)
    if direction in ("GT", "GE", "EQ"):
        minus = x.minus_infinity and direction != "GT" and value == -math.inf
        x = replace(x, low=max(x.low, value), zero=x.zero and (direction != "GT" or value != 0), minus_infinity=minus)
    if direction in ("LT", "LE", "EQ"):
        plus = x.plus_infinity and direction != "LT" and value == math.inf
        x = replace(x, high=min(x.high, value), zero=x.zero and (direction != "LT" or value != 0), plus_infinity=plus)
    return x


_RULES: dict[type[Operator], Callable[[Graph, Node, Sequence[Facts], Facts, bool], Facts]] = {
    ops.Multiply: _product,
    ops.Subtract: _difference,
    ops.Divide: _quotient,
    ops.Reduce: _reduction,
    ops.Select: _choice,
}
"""What may be known of a node because of how its operands are related, by its operator."""


def _has_one(graph: Graph, op: ops.Reduce, position: int, *, casts: bool) -> bool:
    """Whether exponentials of a row less its largest element are added up along the row; an empty row adds nothing."""
    inner = graph.nodes[position]
    if not isinstance(inner.op, ops.Exponential):
        return False
    node = graph.nodes[inner.operands[0]]
    if not isinstance(node.op, ops.Subtract) or own_row(graph, node, "maximum", casts=casts) != tuple(
        sorted(op.dimensions)
    ):
        return False
    return all(at_most(1, node.type.shape[axis]) is True for axis in op.dimensions)
