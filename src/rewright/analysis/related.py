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
    """Of ``where(x == c, a, x)``: where x is chosen it is not ``c``."""
    test = graph.nodes[node.operands[0]]
    if not isinstance(test.op, ops.Compare) or test.op.direction not in ("EQ", "NE"):
        return found
    value = ops.splat(graph.nodes[test.operands[1]].op)
    place = 2 if test.op.direction == "EQ" else 1
    if value is None or node.operands[place] != test.operands[0]:
        return found
    other, own = operands[3 - place], operands[place]
    if value == 0:
        own = replace(own, zero=False)
    elif math.isinf(value):
        infinity = "plus_infinity" if value > 0 else "minus_infinity"
        own = replace(own, **{infinity: False})
    return meet(found, join(other, own))


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
