"""What must hold at one node for a proof over the reals to be about it, where facts leave that open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewright import ops
from rewright.analysis.rows import is_by_own_row
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.facts import Facts, fits, integer_range, meet

WRAPS = "it does not wrap in {}"
"""What a sum or a product of integers of a type needs."""
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
    if any(known.nan for known in operands) and not op.moves(len(operands)):
        return "none of its operands is NaN"
    wanted = op.condition(operands, node.type, found) or _of_numbers(graph, position, operands)
    if wanted:
        is_softmax = isinstance(op, ops.Subtract) and is_by_own_row(graph, node, "maximum")
        is_many = rounds_large(graph, position, operands)
        return "" if is_many else "every row has an element that is not masked" if is_softmax else wanted
    if wraps and node.type.dtype not in _SHORT:
        return WRAPS.format(node.type.dtype.value)
    return ""


def _of_numbers(graph: Graph, position: int, operands: Sequence[Facts]) -> str:
    """What must hold where real numbers alone may give NaN or an infinity, beside operands that may be infinite."""
    node = graph.nodes[position]
    assert isinstance(node.op, ops.TensorOperator)
    if not any(known.may_be_infinite for known in operands) or node.op.moves(len(operands)):
        return ""
    numbers = [replace(known, plus_infinity=False, minus_infinity=False) for known in operands]
    types = [graph.nodes[p].type for p in node.operands]
    found = node.op.facts(numbers, types, node.type)
    return node.op.needs if found.nan or found.may_be_infinite else ""


def rounds_large(graph: Graph, position: int, operands: Sequence[Facts]) -> bool:
    """Whether a node rounds whole numbers of many digits, which matters where they become integers again."""
    op = graph.nodes[position].op
    if not isinstance(op, ops.Convert) or op.dtype not in _LARGE_COUNT:
        return False
    (known,) = operands
    return known.exact and known.whole and not fits(known, op.dtype)


def assume_condition(graph: Graph, position: int, operands: Sequence[Facts], found: Facts) -> Facts:
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
