"""What must hold at one node for a proof over the reals to be about it, where facts leave that open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewright import ops
from rewright.analysis.rows import is_by_own_row
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.facts import Facts, integer_range, meet

_SHORT = (DType.I8, DType.U8, DType.I16, DType.U16)
"""Integers whose remainders proofs write out, so that wrapping is no assumption."""
_LARGE_COUNT = (DType.F32, DType.F64)
"""Floats that hold whole numbers up to millions: rounding beyond is that of any float."""


def condition(graph: Graph, position: int, operands: Sequence[Facts], found: Facts, *, wraps: bool) -> str:
    """What must hold at a node, in words; empty where nothing is open. ``wraps``: its integers may not fit."""
    node = graph.nodes[position]
    op = node.op
    if isinstance(op, ops.Input | ops.Constant) or not isinstance(op, ops.TensorOperator):
        return ""
    wanted = op.condition(operands, node.type, found)
    if wanted:
        is_softmax = isinstance(op, ops.Subtract) and is_by_own_row(graph, node, "maximum")
        rounds = isinstance(op, ops.Convert) and op.dtype in _LARGE_COUNT
        return "" if rounds else "every row has an element that is not masked" if is_softmax else wanted
    if wraps and node.type.dtype not in _SHORT:
        return f"it does not wrap in {node.type.dtype.value}"
    return ""


def assumed(graph: Graph, position: int, operands: Sequence[Facts], found: Facts) -> Facts:
    """The facts of a node where its condition is met."""
    dtype = graph.nodes[position].type.dtype
    if dtype.is_integer:
        low, high = integer_range(dtype)
        return meet(found, replace(found, low=low, high=high, exact=True))
    keeps = any(known.may_be_infinite for known in operands)
    return replace(
        found,
        nan=False,
        plus_infinity=found.plus_infinity and keeps,
        minus_infinity=found.minus_infinity and keeps,
        exact=found.whole,
    )
