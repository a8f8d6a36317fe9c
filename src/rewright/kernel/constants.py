"""The numbers that are written in programs: rounded as PyTorch and kernels have them, and as what was written."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops import Constant, Divide, DType, splat
from rewright.ops.reference import building as rb

_DIGITS = {DType.F32: 6, DType.F64: 12}
"""How many digits a number has that somebody wrote; one that was computed has more."""


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
