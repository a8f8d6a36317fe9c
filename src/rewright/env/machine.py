"""What a machine does and the reals do not know: casts that do not fit, and asking whether a number is one.

Over the reals a cast keeps every whole number, whatever its size, and every number is finite and equals itself. On a
machine a float that does not fit an integer dtype becomes the nearest that does, and a program that asks for what is no
number has reasons to. Where a proof could rest on that, an operator is a function of which it knows the arguments only.
An integer of more digits than a float has is rounded, which nothing may look at that tells numbers apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rewright.env.words import words
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.base import Array, Real, array_dtype, integer_limits
from rewright.ops.elementwise import Compare, Convert, Elementwise
from rewright.ops.leaf import Constant, Iota
from rewright.ops.unary import IsFinite

_DIGITS = {DType.F64: 53, DType.F32: 24, DType.F16: 11, DType.BF16: 8}
"""Bits of the integers that a float dtype has all of."""
_MOVES = words("broadcast_in_dim reshape transpose slice reverse concatenate pad")
_DISCERNING = words("compare sort top_k")
"""Operators that tell numbers apart which differ by a rounding; rounding keeps order, and so maxima."""

Limits = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Saturated(Convert):
    """A cast of floats to an integer dtype of which only the argument is known."""

    name: ClassVar[str] = "convert"

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        low, high = integer_limits(self.dtype)
        with np.errstate(invalid="ignore"):
            return np.clip(np.nan_to_num(operands[0]), low, high).astype(array_dtype(self.dtype, real))

    def function(self, dtype: DType) -> str:
        return f"?saturated_{self.dtype.value}"


@dataclass(frozen=True, slots=True)
class Asked(Compare):
    """A comparison of which only the arguments are known: with infinity, or of a number with itself."""

    name: ClassVar[str] = "compare"

    def function(self, dtype: DType) -> str:
        return f"?compare_{self.direction}"


@dataclass(frozen=True, slots=True)
class AskedFinite(IsFinite):
    """Whether a number is finite, as a function of which only the argument is known."""

    name: ClassVar[str] = "is_finite"

    def function(self, dtype: DType) -> str:
        return "?is_finite"


def as_on_machines(graph: Graph) -> Graph:
    """The graph with functions of their own for casts that may not fit, and for asking for infinity or no number."""
    limits, same, endless = _limits(graph), _numbers(graph), _may_be_endless(graph)
    nodes = list(graph.nodes)
    for place, node in enumerate(nodes):
        source = node.operands[0] if node.operands else place
        if not nodes[source].type.dtype.is_float:
            continue
        if isinstance(node.op, Convert) and node.type.dtype.is_integer and not _fits(limits[source], node.type.dtype):
            nodes[place] = replace(node, op=Saturated(node.op.dtype))
        elif isinstance(node.op, IsFinite):
            nodes[place] = replace(node, op=AskedFinite())
        elif isinstance(node.op, Compare):
            left, right = node.operands
            if same[left] == same[right] or left in endless or right in endless:
                nodes[place] = replace(node, op=Asked(node.op.direction))
    return replace(graph, nodes=tuple(nodes))


def _numbers(graph: Graph) -> list[int]:
    """Equal numbers for nodes that are the same operators on the same values."""
    found: list[int] = []
    known: dict[object, int] = {}
    for place, node in enumerate(graph.nodes):
        key = (node.op, tuple(found[operand] for operand in node.operands), node.type)
        found.append(known.setdefault(key, place))
    return found


def _may_be_endless(graph: Graph) -> set[int]:
    """Nodes of which an element is infinite, or no number, and was a constant."""
    found: set[int] = set()
    for place, node in enumerate(graph.nodes):
        if isinstance(node.op, Constant):
            if node.type.dtype.is_float and not all(map(math.isfinite, node.op.values)):
                found.add(place)
        elif found.intersection(node.operands) and (isinstance(node.op, Elementwise) or node.op.name in _MOVES):
            found.add(place)
    return found


def why_rounding_shows(sides: Sequence[Graph]) -> str:
    """Which operator tells integers apart that were rounded as floats; empty where none does."""
    for graph in sides:
        found, rounded = _limits(graph), set[int]()
        for place, node in enumerate(graph.nodes):
            source = graph.nodes[node.operands[0]].type.dtype if node.operands else DType.BOOL
            if node.type.dtype.is_float and node.op.name == "convert" and source.is_integer and found[place] is None:
                rounded.add(place)
            elif any(operand in rounded for operand in node.operands):
                if node.op.name in _DISCERNING or (node.op.name == "convert" and not node.type.dtype.is_float):
                    return f"integers may be rounded as floats before {node.op.name} reads them"
                rounded.add(place)
    return ""


def _fits(limits: Limits | None, kind: DType) -> bool:
    low, high = integer_limits(kind)
    return limits is not None and low <= limits[0] and limits[1] <= high


def _limits(graph: Graph) -> list[Limits | None]:
    """Between which numbers the elements of each node are, where it has them without rounding; None: not known."""
    found: list[Limits | None] = []
    for node in graph.nodes:
        found.append(_own(node, [found[operand] for operand in node.operands], graph))
    return found


def _own(node: Node, operands: Sequence[Limits | None], graph: Graph) -> Limits | None:
    kind = node.type.dtype
    if isinstance(node.op, Constant):
        values = [float(value) for value in node.op.values]
        return (min(values), max(values)) if values and all(map(math.isfinite, values)) else None
    if isinstance(node.op, Iota):
        size = node.type.shape[node.op.dimension]
        return _exact((0.0, float(max(size - 1, 0))), kind) if isinstance(size, int) else None
    if node.op.name in _MOVES:
        known = [own for own in operands if own is not None]
        return (min(k[0] for k in known), max(k[1] for k in known)) if known and len(known) == len(operands) else None
    if node.op.name == "convert":
        source = graph.nodes[node.operands[0]].type.dtype
        own = operands[0]
        if own is None and not source.is_float:
            low, high = integer_limits(source)
            own = float(low), float(high)
        return _exact(own, kind) if own is not None and not (source.is_float and kind.is_integer) else None
    return None


def _exact(limits: Limits, kind: DType) -> Limits | None:
    """Limits of whole numbers, where a dtype has all that are between them."""
    low, high = (-float(1 << _DIGITS[kind]), float(1 << _DIGITS[kind])) if kind.is_float else integer_limits(kind)
    return limits if low <= limits[0] and limits[1] <= high else None
