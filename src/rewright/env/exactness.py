"""Whether what is proved of two programs holds for what a machine computes: integers wrap around, floats compare.

Proofs take integers as those of mathematics. Sums and products of them agree with those of a machine up to multiples of
a power of two, whatever wraps around on the way, so that an equation that is proved holds as long as nothing else reads
what may have wrapped: a comparison, a quotient, an index, a conversion to a wider type. An interval for every integer
says what cannot wrap (interval analysis, Cousot and Cousot, POPL 1977).

What a front end takes for granted of a program (indices in range, say) is no part of an equation between any tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import copysign, inf, isnan

from rewright.env.machine import why_rounding_shows
from rewright.env.words import words
from rewright.frontends.hlo.context import IN_RANGE
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType
from rewright.ops.base import integer_limits
from rewright.ops.layout import Pad
from rewright.ops.leaf import Constant, Iota
from rewright.ops.reduction import Reduce, ReduceWindow
from rewright.ops.scatter import Scatter

Number = int | float
_CONGRUENT = words("add subtract multiply negate dot_general convolution")
"""Operators that agree with those of the machine where their operands do, up to what wraps around."""
_MOVES: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(words("broadcast_in_dim reshape transpose slice reverse dynamic_slice gather"), (0,)),
    "select": (1, 2),
    "dynamic_update_slice": (0, 1),
    "concatenate": (),
    "pad": (),
}
"""Which operands of an operator it only moves; none named: all."""
_CALCULATED = words("add subtract multiply negate abs divide remainder")
_ORDERED = words("compare maximum minimum clamp sort top_k sign is_finite")
"""Operators that look at the order of floats, where what is no number is neither less nor more."""


@dataclass(frozen=True)
class _Range:
    """What an integer is between, and whether the machine's may differ from it by a multiple of a power of two."""

    low: Number
    high: Number
    wraps: bool = False


def why_not_exact(sides: Sequence[Graph]) -> str:
    """Why an equation of two programs may not hold on a machine; empty where it does, floats taken as reals."""
    for side in sides:
        taken = [own for own in side.metadata.get("assumptions", "").split("; ") if own and _is_needed(own, side)]
        if taken:
            return f"it is proved only where {taken[0]:.200}"
    return next((why for side in sides if (why := _overflow(side))), "") or why_rounding_shows(sides)


def _is_needed(taken: str, side: Graph) -> bool:
    """Whether a proof may rest on what a front end took for granted.

    Dynamic slices of the IR move a block inside as HLO does; gathers and scatters do not.
    """
    return taken != IN_RANGE or any(node.op.name in ("gather", "scatter") for node in side.nodes)


def holds_in_floats(sides: Sequence[Graph]) -> bool:
    """Whether two programs that are equal with all arithmetic uninterpreted are equal in floats, bit for bit.

    False where floats are compared or converted, or a zero may have another sign.
    """
    zeros = negations = False
    for node, operands in _nodes(sides):
        of_floats = any(kind.is_float for kind in operands)
        if of_floats and (node.op.name in _ORDERED or _folds(node.op) in ("maximum", "minimum")):
            return False
        if isinstance(node.op, (Reduce, ReduceWindow, Scatter)) and of_floats and _folds(node.op) != "replace":
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
    return op.kind if isinstance(op, (Reduce, ReduceWindow, Scatter)) else ""


def _overflow(graph: Graph) -> str:
    """Which integer may wrap around before it is read by what sees that; empty where none may."""
    found: list[_Range] = []
    for node in graph.nodes:
        operands = [found[operand] for operand in node.operands]
        for place, own in enumerate(operands):
            if own.wraps and not _is_congruent(node, place, graph):
                kind = graph.nodes[node.operands[place]].type.dtype.value
                return f"integers of {kind} may wrap around before {node.op.name} reads them"
        found.append(_within(node, _range(node, operands, graph)))
    return ""


def _within(node: Node, own: _Range) -> _Range:
    """What a machine makes of a range: what does not fit wraps around."""
    if not node.type.dtype.is_integer:
        return _Range(0, 1)
    low, high = integer_limits(node.type.dtype)
    if low <= own.low and own.high <= high and not own.wraps:
        return own
    return _Range(low, high, True)


def _is_congruent(node: Node, place: int, graph: Graph) -> bool:
    """Whether an operator gives congruent integers for congruent ones in the place of an operand."""
    name = node.op.name
    if name in _MOVES:
        return not _MOVES[name] or place in _MOVES[name]
    if isinstance(node.op, (Reduce, ReduceWindow)):
        return node.op.kind in ("sum", "product")
    if isinstance(node.op, Scatter):
        return place != 1 and node.op.kind in ("sum", "product", "replace")
    if name == "convert":
        source = graph.nodes[node.operands[0]].type.dtype
        return node.type.dtype.is_integer and _bits(node.type.dtype) <= _bits(source)
    return name in _CONGRUENT


def _bits(kind: DType) -> int:
    low, high = integer_limits(kind)
    return (high - low).bit_length()


def _range(node: Node, operands: Sequence[_Range], graph: Graph) -> _Range:
    """What the integers of a node are between, before they wrap around; anything where that is not known."""
    kind = node.type.dtype
    if not kind.is_integer:
        return _Range(0, 1)
    if isinstance(node.op, Constant):
        return _Range(min(map(int, node.op.values)), max(map(int, node.op.values)))
    if isinstance(node.op, Iota):
        size = node.type.shape[node.op.dimension]
        return _Range(0, max(size - 1, 0) if isinstance(size, int) else inf)
    name = node.op.name
    if name in _MOVES:
        return _union([operands[k] for k in _MOVES[name]] or operands, zero=isinstance(node.op, Pad))
    wraps = any(own.wraps for own in operands)
    if name in _CALCULATED and not wraps:
        return _calculated(name, operands)
    if name in ("maximum", "minimum", "clamp") and not wraps:
        return _union(operands)
    if name == "convert":
        source = graph.nodes[node.operands[0]].type.dtype
        return _Range(*integer_limits(kind)) if source.is_float else operands[0]
    if isinstance(node.op, (Reduce, ReduceWindow)) and node.op.kind == "sum":
        return _times(operands[0], _elements(graph.nodes[node.operands[0]]))
    if name in ("dot_general", "convolution", "power") or name in _CALCULATED or _folds(node.op) in ("sum", "product"):
        return _Range(-inf, inf, wraps)
    # What else there is reads integers that have not wrapped and gives one of its dtype.
    return _Range(*integer_limits(kind))


def _union(found: Sequence[_Range], zero: bool = False) -> _Range:
    ends = [*found, *([_Range(0, 0)] if zero else [])]
    return _Range(min(o.low for o in ends), max(o.high for o in ends), any(o.wraps for o in ends))


def _elements(node: Node) -> int | None:
    size = node.type.size()
    return size if isinstance(size, int) else None


def _times(own: _Range, count: int | None) -> _Range:
    if count is None or own.wraps:
        return _Range(-inf, inf, own.wraps)
    return _Range(min(0, own.low * count), max(0, own.high * count))


def _calculated(name: str, found: Sequence[_Range]) -> _Range:
    """The range of a result from those of operands that have not wrapped."""
    a, b = found[0], found[-1]
    if name == "add":
        return _Range(a.low + b.low, a.high + b.high)
    if name == "subtract":
        return _Range(a.low - b.high, a.high - b.low)
    if name == "multiply":
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return _Range(min(ends), max(ends))
    if name == "negate":
        return _Range(-a.high, -a.low)
    if name == "abs":
        return _Range(0, _magnitude(a))
    if name == "divide":
        # The quotient of the least number by -1 is one more than the largest.
        most = _magnitude(a) if b.low < 0 else a.high
        return _Range(0 if min(a.low, b.low) >= 0 else -_magnitude(a), max(a.high, most))
    most = _magnitude(b) - 1
    return _Range(0 if a.low >= 0 else -most, most)


def _magnitude(own: _Range) -> Number:
    return max(abs(own.low), abs(own.high))
