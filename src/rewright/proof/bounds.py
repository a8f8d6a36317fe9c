"""Between which numbers the elements of a tensor lie that is made of numbers, places and truth values alone.

Of what depends on a float that a program is given, or on an integer that may be any, little is said: a cosine is at
most one, a place no more than the size of its axis, and an integer of 8 bits no more than 127.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType

Bound = tuple[float, float]
"""The least and the largest number that an element may be, infinities among them."""
SHORT = frozenset({DType.I8, DType.U8, DType.I16, DType.U16})
"""Integer types of which any number may be met."""
_ANY: Bound = (-math.inf, math.inf)
_DIGITS: Mapping[DType, int] = MappingProxyType({DType.BF16: 8, DType.F16: 11, DType.F32: 24})
"""How many binary digits floats have."""
_LARGEST_HALF = 65504.0
_MOVES = (
    ops.BroadcastInDim,
    ops.Reshape,
    ops.Transpose,
    ops.Slice,
    ops.Concatenate,
    ops.Reverse,
    ops.Pad,
    ops.DynamicSlice,
    ops.DynamicUpdateSlice,
    ops.Sort,
    ops.TopK,
)
_GROWING: Mapping[type[Operator], Callable[[float], float]] = {
    ops.Exponential: math.exp,
    ops.ExponentialMinusOne: math.expm1,
    ops.Log: math.log,
    ops.LogPlusOne: math.log1p,
    ops.Floor: lambda x: x if math.isinf(x) else math.floor(x),
    ops.Ceil: lambda x: x if math.isinf(x) else math.ceil(x),
    ops.RoundNearestEven: lambda x: x if math.isinf(x) else round(x),
    ops.Sqrt: math.sqrt,
    ops.Tanh: math.tanh,
}
_ALWAYS: Mapping[type[Operator], Bound] = {
    ops.Sine: (-1.0, 1.0),
    ops.Cosine: (-1.0, 1.0),
    ops.Tanh: (-1.0, 1.0),
    ops.Erf: (-1.0, 1.0),
    ops.Sign: (-1.0, 1.0),
    ops.Logistic: (0.0, 1.0),
}
"""Functions whose values are bounded, whatever they are taken of."""
_COMBINED: Mapping[type[Operator], Callable[[float, float], float]] = {
    ops.Add: lambda a, b: a + b,
    ops.Subtract: lambda a, b: a - b,
    ops.Multiply: lambda a, b: a * b,
    ops.Maximum: max,
    ops.Minimum: min,
}


def bounds(
    graph: Graph,
    *,
    at_nought: bool = False,
    one_sided: bool = False,
    given: Mapping[str, Bound] = MappingProxyType({}),
) -> list[Bound | None]:
    """The bounds of every node; None where none are known.

    With ``at_nought`` all floats that the program is given are nought; with ``one_sided`` a maximum or minimum with
    what may be anything has a bound on one side. ``given`` are bounds of inputs by name.
    """
    found: list[Bound | None] = []
    for node in graph.nodes:
        if node.type.dtype is DType.BOOL:
            found.append((0.0, 1.0))
            continue
        if at_nought and isinstance(node.op, ops.Input) and node.type.dtype.is_float:
            found.append((0.0, 0.0))
            continue
        if isinstance(node.op, ops.Input):
            found.append(given.get(node.op.label) or _range(node.type.dtype))
            continue
        try:
            known = [found[p] for p in node.operands]
            if one_sided and isinstance(node.op, ops.Maximum | ops.Minimum):
                known = [_ANY if bound is None else bound for bound in known]
            own = _bound(graph, node, known)
            if own is not None and node.type.dtype.is_integer:
                # What is divided or converted loses its fraction, towards nought.
                own = float(math.trunc(own[0])), float(math.trunc(own[1]))
        except (ValueError, OverflowError, ZeroDivisionError):
            own = None
        own = own or _ALWAYS.get(type(node.op))
        found.append(own if own is not None and _is_held(own, node.type.dtype) else None)
    return found


def _is_held(bound: Bound, dtype: DType) -> bool:
    """Whether these are numbers, and whole ones go into their type, which would count them from the other end."""
    if any(map(math.isnan, bound)):
        return False
    if dtype.is_float:
        return True
    low, high = whole(dtype)
    return low <= bound[0] and bound[1] <= high


def whole(dtype: DType) -> tuple[int, int]:
    """The least and the largest number of an integer type."""
    bits = int(dtype.value.lstrip("iu"))
    return (0, 2**bits - 1) if dtype.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _range(dtype: DType) -> Bound | None:
    """What an input may be: any number of a short integer type; None where that says nothing."""
    if dtype not in SHORT:
        return None
    low, high = whole(dtype)
    return float(low), float(high)


def _bound(graph: Graph, node: Node, known: Sequence[Bound | None]) -> Bound | None:
    op = node.op
    if isinstance(op, ops.Constant):
        values = [float(v) for v in op.values]
        return min(values), max(values)
    if isinstance(op, ops.Iota):
        size = node.type.shape[op.dimension]
        return (0.0, float(size - 1)) if isinstance(size, int) else None
    if isinstance(op, ops.TopK | ops.Sort) and op.result == "indices":
        axis = op.dimension if isinstance(op, ops.Sort) else -1
        size = graph.nodes[node.operands[0]].type.shape[axis]
        return (0.0, float(size - 1)) if isinstance(size, int) else None
    if isinstance(op, ops.Gather):
        return None if known[0] is None else _hull([known[0], (0.0, 0.0)])  # nought beyond the end
    if isinstance(op, ops.Clamp) and known[1] is None:
        known = (known[0], _ANY, known[2])
    given = [bound for bound in known if bound is not None]
    if not given or len(given) < len(known):
        return None
    if isinstance(op, ops.Convert):
        return _rounded(given[0], op.dtype)
    if isinstance(op, _MOVES):
        return _hull(given)
    if isinstance(op, ops.Select):
        return _hull(given[1:])
    if isinstance(op, ops.Reduce):
        return _reduced(graph, node, op, given[0])
    if isinstance(op, ops.DotGeneral):
        count = _count(graph.nodes[node.operands[0]], op.lhs_contracting)
        return None if count is None else _times(_corners(_COMBINED[ops.Multiply], given), count)
    if isinstance(op, ops.ReduceWindow) and op.kind == "sum" and all(isinstance(n, int) for n in op.window):
        return _times(_hull([given[0], (0.0, 0.0)]), math.prod(int(str(n)) for n in op.window))
    return _elementwise(op, given)


def _rounded(given: Bound, dtype: DType) -> Bound:
    """The bounds of what is cast, as it is or to the nearest number of a type with few digits: 258 is 257 in bf16."""
    digits = _DIGITS.get(dtype)
    if digits is None or not all(map(math.isfinite, given)):
        return given
    parts = [math.frexp(x) for x in given]
    near = [math.ldexp(round(math.ldexp(m, digits)), e - digits) for m, e in parts]
    if dtype is DType.F16:
        near = [x if abs(x) <= _LARGEST_HALF else math.copysign(math.inf, x) for x in near]
    return _hull([given, *((x, x) for x in near)])


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
    if isinstance(op, ops.Remainder) and given[1][0] > 0:
        return (0.0 if given[0][0] >= 0 else -given[1][1]), given[1][1]
    if isinstance(op, ops.Negate):
        return -given[0][1], -given[0][0]
    if isinstance(op, ops.Rsqrt) and given[0][0] > 0:
        return 1 / math.sqrt(given[0][1]), 1 / math.sqrt(given[0][0])
    if isinstance(op, ops.Clamp):
        low, value, high = given
        # The upper end decides where the ends are the wrong way round.
        return min(max(value[0], low[0]), high[0]), min(max(value[1], low[1]), high[1])
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
    if any(map(math.isnan, found)):
        raise ValueError("no bounds of what is no number")
    return min(found), max(found)
