"""Whether what is proved of two programs holds for what a machine computes: integers wrap around, floats compare.

Proofs take integers as those of mathematics. Sums and products of them agree with those of a machine up to multiples of
a power of two, whatever wraps around on the way, so that an equation that is proved holds as long as nothing else reads
what may have wrapped: a comparison, a quotient, an index, a conversion to a wider type. The analysis of values says
what cannot wrap.

What a front end takes for granted of a program (indices in range, say) is no part of an equation between any tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import copysign, isnan

from rewright.analysis.values import facts_of
from rewright.env.machine import MACHINE
from rewright.env.words import words
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.base import Combining, TensorOperator, integer_limits
from rewright.ops.elementwise import Convert
from rewright.ops.facts import Facts, fits
from rewright.ops.leaf import Constant, Iota
from rewright.ops.sorting import Sort, TopK

_CONGRUENT = words("add subtract multiply negate dot_general convolution")
"""Operators that agree with those of the machine where their operands do, up to what wraps around."""
_ORDERED = words("compare maximum minimum clamp sort top_k sign is_finite")
"""Operators that look at the order of floats, where what is no number is neither less nor more."""


def why_not_exact(sides: Sequence[Graph]) -> str:
    """Why an equation of two programs may not hold on a machine; empty where it does, floats taken as reals."""
    for side in sides:
        taken = side.metadata.get("assumptions", "").split("; ")[0]
        if taken:
            return f"it is proved only where {taken:.200}"
    return next((why for side in sides if (why := _overflow(side))), "")


def holds_in_floats(sides: Sequence[Graph]) -> bool:
    """Whether two programs that are equal with all arithmetic uninterpreted are equal in floats, bit for bit.

    False where floats are compared or converted, or a zero may have another sign.
    """
    zeros = negations = False
    for node, operands in _nodes(sides):
        of_floats = any(kind.is_float for kind in operands)
        if of_floats and (node.op.name in _ORDERED or _folds(node.op) in ("maximum", "minimum")):
            return False
        if of_floats and _folds(node.op) not in ("", "replace"):
            return False
        if node.op.name == "convert" and (of_floats or node.type.dtype.is_float):
            return False
        if isinstance(node.op, Constant) and node.type.dtype.is_float:
            if any(isnan(v) or (v == 0 and copysign(1, v) < 0) for v in node.op.values):
                return False
            zeros = zeros or 0 in node.op.values
        negations = negations or (node.op.name == "negate" and of_floats)
    return not (zeros and negations)


def _nodes(sides: Sequence[Graph]) -> Iterator[tuple[Node, list[DType]]]:
    for side in sides:
        for node in side.nodes:
            yield node, [side.nodes[operand].type.dtype for operand in node.operands]


def _folds(op: object) -> str:
    return op.kind if isinstance(op, Combining) else ""


def _overflow(graph: Graph) -> str:
    """Which integer may wrap around before it is read by what sees that; empty where none may."""
    facts = facts_of(graph, MACHINE)
    wraps: set[int] = set()
    for place, node in enumerate(graph.nodes):
        congruent = [_is_congruent(node, k, graph) for k in range(len(node.operands))]
        for operand, is_congruent in zip(node.operands, congruent, strict=True):
            if operand in wraps and not is_congruent:
                kind = graph.nodes[operand].type.dtype.value
                return f"integers of {kind} may wrap around before {node.op.name} reads them"
        if not wraps.isdisjoint(node.operands) or _may_not_fit(node, facts, graph):
            wraps.add(place)
    return ""


def _may_not_fit(node: Node, facts: Sequence[Facts], graph: Graph) -> bool:
    """Whether an integer may be one that its type does not hold."""
    if not node.type.dtype.is_integer or (not node.operands and not isinstance(node.op, Iota)):
        return False
    assert isinstance(node.op, TensorOperator)
    types = [graph.nodes[operand].type for operand in node.operands]
    return not fits(node.op.facts([facts[operand] for operand in node.operands], types, node.type), node.type.dtype)


def _is_congruent(node: Node, place: int, graph: Graph) -> bool:
    """Whether an operator gives congruent integers for congruent ones in the place of an operand."""
    if isinstance(node.op, Combining):
        is_place = any(place == operand for operand, _ in node.op.indexed(len(node.operands)))
        return not is_place and node.op.kind in ("sum", "product", "replace")
    if isinstance(node.op, (Sort, TopK)):
        return False
    if isinstance(node.op, Convert):
        source = graph.nodes[node.operands[0]].type.dtype
        return source.is_integer and node.type.dtype.is_integer and _bits(node.type.dtype) <= _bits(source)
    assert isinstance(node.op, TensorOperator)
    return place in node.op.moves(len(node.operands)) or node.op.name in _CONGRUENT


def _bits(kind: DType) -> int:
    low, high = integer_limits(kind)
    return (high - low).bit_length()
