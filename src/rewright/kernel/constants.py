"""The numbers that are written in programs: rounded as PyTorch and kernels have them, and as what was written."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.rebuilding import rebuild
from rewright.ops import Constant, Divide, DType, Exponential, Pad, Select, splat
from rewright.ops.reference import building as rb

_DIGITS = {DType.F32: 6, DType.F64: 12}
"""How many digits a number has that somebody wrote; one that was computed has more."""


_FILLING = -1e6
"""Masks fill in numbers below this one in place of minus infinity."""


def with_rounded_constants(graph: Graph) -> Graph:
    """The graph with its numbers as PyTorch and kernels have them: in 32 bits, beside floats of at most so many."""
    nodes = [replace(node, op=_rounded(node.op)) if isinstance(node.op, Constant) else node for node in graph.nodes]
    return replace(graph, nodes=tuple(nodes))


def _rounded(op: Constant) -> Constant:
    if op.tensor.dtype not in (DType.F32, DType.F16, DType.BF16):
        return op
    with np.errstate(over="ignore"):
        values = tuple(float(value) for value in np.asarray(op.values, np.float64).astype(np.float32))
    return replace(op, values=values)


def with_infinities(graph: Graph) -> Graph | None:
    """The graph with minus infinity in place of large negative numbers that masks fill in.

    None where it has none, and where an output may be such a number: only exponentials take it away.
    """
    is_other = False

    def make(builder: GraphBuilder, _position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        nonlocal is_other
        own = list(operands)
        for place in range(1, len(own)) if isinstance(node.op, (Select, Pad)) else ():
            if _is_filling(builder.node(own[place]).op):
                own[place], is_other = rb.splat_like(builder, -math.inf, own[place]), True
        return builder.add(node.op, *own) if tuple(own) != operands else None

    found = rebuild(graph, make)
    return found if is_other and not _shows_infinity(found) else None


def _shows_infinity(graph: Graph) -> bool:
    """Whether a filling of minus infinity reaches an output other than by an exponential."""
    reached: set[int] = set()
    for position, node in enumerate(graph.nodes):
        filled = node.operands[1:] if isinstance(node.op, (Select, Pad)) else ()
        is_filled = any(splat(graph.nodes[p].op) == -math.inf for p in filled)
        if not isinstance(node.op, Exponential) and (is_filled or reached & set(node.operands)):
            reached.add(position)
    return bool(reached & set(graph.outputs.values()))


def _is_filling(op: object) -> bool:
    value = splat(op) if isinstance(op, Constant) and op.tensor.dtype.is_float else None
    return value is not None and -math.inf < value <= _FILLING


def with_decimals(graph: Graph) -> Graph | None:
    """The graph with ``1 / 10`` in place of the float that is nearest to 0.1; None where it has no such number."""
    b = GraphBuilder(graph.name)
    places: dict[int, int] = {}
    is_other = False
    for old, node in enumerate(graph.nodes):
        b.span = node.span
        parts = _decimal(node.op) if isinstance(node.op, Constant) else None
        if parts is not None:
            top, bottom = (rb.splat(b, float(part), node.type.shape, node.type.dtype) for part in parts)
            places[old] = b.add(Divide(), top, bottom)
            is_other = True
        else:
            places[old] = b.add(node.op, *(places[p] for p in node.operands))
    for name, position in graph.outputs.items():
        b.output(name, places[position])
    return b.build() if is_other else None


def _decimal(op: Constant) -> tuple[int, int] | None:
    """Two numbers whose quotient was written or meant: a short decimal, or ``1 / n``; None for what is exact."""
    value = splat(op)
    most = _DIGITS.get(op.tensor.dtype)
    if most is None or not isinstance(value, float) or not np.isfinite(value):
        return None
    text = str(np.float32(value)) if op.tensor.dtype is DType.F32 else repr(value)
    sign, digits, exponent = Decimal(text).as_tuple()
    if not isinstance(exponent, int) or not -20 <= exponent < 0 or len(digits) > most:
        return _inverse(value, op.tensor.dtype)
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return None if Fraction(value) == Fraction(number, 10**-exponent) else (number, 10**-exponent)


def _inverse(value: float, dtype: DType) -> tuple[int, int] | None:
    """One and n for the float that is nearest to ``1 / n``."""
    count = round(1 / value) if abs(value) > 1e-6 else 0
    if not count:
        return None
    nearest = np.float32(1 / count) if dtype is DType.F32 else 1 / count
    return (1, count) if nearest == value and Fraction(value) != Fraction(1, count) else None
