"""Between which numbers the elements of a tensor lie that is made of numbers, places and truth values alone.

Nothing is said of what depends on a float that a program is given, or on an integer that may be any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType

Bound = tuple[float, float]
"""The least and the largest number that an element may be."""
_MOVES = (
    ops.BroadcastInDim,
    ops.Reshape,
    ops.Transpose,
    ops.Slice,
    ops.Concatenate,
    ops.Convert,
    ops.Reverse,
    ops.Pad,
    ops.DynamicSlice,
    ops.DynamicUpdateSlice,
)
_GROWING: Mapping[type[Operator], Callable[[float], float]] = {
    ops.Exponential: math.exp,
    ops.Log: math.log,
    ops.Sqrt: math.sqrt,
    ops.Tanh: math.tanh,
}
_COMBINED: Mapping[type[Operator], Callable[[float, float], float]] = {
    ops.Add: lambda a, b: a + b,
    ops.Subtract: lambda a, b: a - b,
    ops.Multiply: lambda a, b: a * b,
    ops.Maximum: max,
    ops.Minimum: min,
}


def bounds(graph: Graph) -> list[Bound | None]:
    """The bounds of every node; None where none are known."""
    found: list[Bound | None] = []
    for node in graph.nodes:
        if node.type.dtype is DType.BOOL:
            found.append((0.0, 1.0))
            continue
        try:
            own = _bound(graph, node, [found[p] for p in node.operands])
            if own is not None and node.type.dtype.is_integer:
                # What is divided or converted loses its fraction.
                own = float(math.floor(own[0])), float(math.ceil(own[1]))
        except (ValueError, OverflowError, ZeroDivisionError):
            own = None
        found.append(own if own is not None and all(map(math.isfinite, own)) else None)
    return found


def _bound(graph: Graph, node: Node, known: Sequence[Bound | None]) -> Bound | None:
    op = node.op
    if isinstance(op, ops.Constant):
        values = [float(v) for v in op.values]
        return min(values), max(values)
    if isinstance(op, ops.Iota):
        size = node.type.shape[op.dimension]
        return (0.0, float(size - 1)) if isinstance(size, int) else None
    given = [bound for bound in known if bound is not None]
    if not given or len(given) < len(known):
        return None
    if isinstance(op, _MOVES):
        return _hull(given)
    if isinstance(op, ops.Select):
        return _hull(given[1:])
    if isinstance(op, ops.Reduce):
        return _reduced(graph, node, op, given[0])
    if isinstance(op, ops.DotGeneral):
        count = _count(graph.nodes[node.operands[0]], op.lhs_contracting)
        return None if count is None else _times(_corners(_COMBINED[ops.Multiply], given), count)
    return _elementwise(op, given)


def _elementwise(op: Operator, given: Sequence[Bound]) -> Bound | None:
    if type(op) in _GROWING:
        low, high = map(_GROWING[type(op)], given[0])
        return low, high
    if isinstance(op, ops.Power):
        return _powers(given[0], given[1])
    if type(op) in _COMBINED:
        return _corners(_COMBINED[type(op)], given)
    if isinstance(op, ops.Divide) and given[1][0] * given[1][1] > 0:
        return _corners(lambda a, b: a / b, given)
    if isinstance(op, ops.Negate):
        return -given[0][1], -given[0][0]
    if isinstance(op, ops.Sine | ops.Cosine | ops.Logistic | ops.Erf):
        return -1.0, 1.0
    if isinstance(op, ops.Abs):
        return 0.0, max(map(abs, given[0]))
    return None


def _powers(base: Bound, exponent: Bound) -> Bound | None:
    """Of a base that may be negative only one power is known, and not a negative one, which has no bound at nought."""
    if base[0] <= 0 and (exponent[0] != exponent[1] or exponent[0] < 0):
        return None
    low, high = _corners(math.pow, (base, exponent))
    return min(low, 0.0), high


def _reduced(graph: Graph, node: Node, op: ops.Reduce, given: Bound) -> Bound | None:
    if op.kind in ("maximum", "minimum"):
        return given
    count = _count(graph.nodes[node.operands[0]], op.dimensions)
    return _times(given, count) if op.kind == "sum" and count is not None else None


def _count(node: Node, axes: Sequence[int]) -> int | None:
    count = 1
    for axis in axes:
        size = node.type.shape[axis]
        if not isinstance(size, int):
            return None
        count *= size
    return count


def _hull(given: Sequence[Bound]) -> Bound:
    return min(low for low, _ in given), max(high for _, high in given)


def _times(bound: Bound, count: int) -> Bound:
    return bound[0] * count, bound[1] * count


def _corners(combine: Callable[[float, float], float], given: Sequence[Bound]) -> Bound:
    first, second = given
    found = [combine(a, b) for a in first for b in second]
    return min(found), max(found)
