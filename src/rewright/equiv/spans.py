"""What numbers the elements of every tensor of a program may be: without infinities, at least nought, above nought.

One pass from the inputs on, with one fact for a whole tensor (an abstract interpretation over signs: Cousot and Cousot
1977). Inputs are real numbers, as everywhere in this package. Facts are about elements that are numbers at all: where
an operation is not defined, 0/0 for example, nothing is said of its result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntFlag

from rewright import ops
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph, Node


class Span(IntFlag):
    """What is known of all elements of a tensor."""

    NOTHING = 0
    FINITE = 1
    """No element is infinite."""
    BELOW = 2
    """No element is plus infinity."""
    NATURAL = 4
    """No element is below nought."""
    POSITIVE = 8
    """Every element is above nought."""


REAL = Span.FINITE | Span.BELOW
FRACTION = REAL | Span.NATURAL
ABOVE = FRACTION | Span.POSITIVE
_MOVING = (
    ops.BroadcastInDim,
    ops.Concatenate,
    ops.DynamicSlice,
    ops.Maximum,
    ops.Minimum,
    ops.Pad,
    ops.Reshape,
    ops.Reverse,
    ops.Slice,
    ops.Transpose,
)
"""Every element of the result is an element of an operand."""


def spans(graph: Graph, exchanged: Span = Span.NOTHING) -> list[Span]:
    """What is known of every node, where ``exchanged`` is known of the floats that ranks send each other."""
    found: list[Span] = []
    for node in graph.nodes:
        is_sent = isinstance(node.op, ops.Collective) and node.type.dtype.is_float
        found.append(exchanged if is_sent else _span(graph, node, [found[p] for p in node.operands]))
    return found


def spans_of_ranks(graphs: Sequence[Graph]) -> list[list[Span]]:
    """What is known of every node of programs that run together.

    If all that is sent is real wherever all that was sent before is real, then all that is sent is real.
    """
    found = [spans(graph, REAL) for graph in graphs]
    sent = [
        known[p]
        for graph, known in zip(graphs, found, strict=True)
        for node in graph.nodes
        if isinstance(node.op, ops.Collective) and node.type.dtype.is_float
        for p in node.operands
    ]
    return found if all(REAL in span for span in sent) else [spans(graph) for graph in graphs]


def _span(graph: Graph, node: Node, known: Sequence[Span]) -> Span:
    op = node.op
    if isinstance(op, ops.Constant):
        return _of_numbers([float(value) for value in op.values])
    if isinstance(op, ops.Iota):
        return FRACTION
    if not node.type.dtype.is_float:
        return FRACTION if node.type.dtype.value == "i1" else REAL
    if isinstance(op, ops.Input):
        return REAL
    if isinstance(op, _MOVING):
        return _both(known)
    if isinstance(op, ops.Select):
        return _both(known[1:])
    if isinstance(op, ops.Convert | ops.Gather | ops.TopK):
        return known[0]
    if isinstance(op, ops.Reduce):
        found = _reduced(op, graph.nodes[node.operands[0]].type.shape, known[0])
        return found | Span.POSITIVE if FRACTION in found and _has_one(graph, op, node.operands[0]) else found
    if isinstance(op, ops.DotGeneral):
        return _both(known) & FRACTION if all(REAL in span for span in known) else Span.NOTHING
    # The largest element of a row, and the sum of elements that are no less than nought, are no less than each of them.
    if isinstance(op, ops.Divide) and FRACTION in known[0] and is_by_own_row(graph, node, "sum"):
        return FRACTION | (known[0] & Span.POSITIVE)
    if isinstance(op, ops.Subtract) and Span.BELOW in known[0] and is_by_own_row(graph, node, "maximum"):
        return known[0] & REAL
    return _elementwise(node, known)


def _of_numbers(values: Sequence[float]) -> Span:
    found = Span.NOTHING
    found |= Span.FINITE if all(math.isfinite(value) for value in values) else Span.NOTHING
    found |= Span.BELOW if all(value < math.inf for value in values) else Span.NOTHING
    found |= Span.NATURAL if all(value >= 0 for value in values) else Span.NOTHING
    return found | (Span.POSITIVE if all(value > 0 for value in values) else Span.NOTHING)


def _both(known: Sequence[Span]) -> Span:
    """What all of some tensors have."""
    found = ABOVE
    for span in known:
        found &= span
    return found


def _reduced(op: ops.Reduce, shape: Shape, span: Span) -> Span:
    sizes = [shape[axis] for axis in op.dimensions]
    if not all(isinstance(n, int) and n > 0 for n in sizes):
        return Span.NOTHING  # of no element there is a sum, which is nought, and no maximum
    if op.kind in ("maximum", "minimum"):
        return span
    if op.kind == "sum":
        return span if Span.BELOW in span else span & ~Span.FINITE
    return Span.NOTHING


def _has_one(graph: Graph, op: ops.Reduce, position: int) -> bool:
    """Whether what is added up are exponentials of a row less its largest element, one of which is that of nought.

    Where all of a row is minus infinity, none of them is a number.
    """
    inner = graph.nodes[position]
    node = graph.nodes[inner.operands[0]] if isinstance(inner.op, ops.Exponential) else inner
    is_own = isinstance(node.op, ops.Subtract) and is_by_own_row(graph, node, "maximum")
    return op.kind == "sum" and is_own and node is not inner and own_row(graph, node) == tuple(sorted(op.dimensions))


def _elementwise(node: Node, known: Sequence[Span]) -> Span:
    op, first = node.op, known[0] if known else Span.NOTHING
    is_real = all(REAL in span for span in known)
    if isinstance(op, ops.Exponential):
        return ABOVE if is_real else FRACTION if Span.BELOW in first else Span.NATURAL
    if isinstance(op, ops.Logistic):
        return ABOVE if is_real else FRACTION
    if isinstance(op, ops.Tanh | ops.Erf | ops.Sine | ops.Cosine):
        return REAL
    if isinstance(op, ops.Sqrt):
        return first if FRACTION in first else Span.NOTHING
    if isinstance(op, ops.Rsqrt):
        return ABOVE if ABOVE in first else Span.NOTHING
    if isinstance(op, ops.Negate):
        return first & REAL if is_real else Span.NOTHING
    if isinstance(op, ops.Abs):
        return FRACTION if is_real else Span.NATURAL
    return _binary(node, known, is_real=is_real)


def _binary(node: Node, known: Sequence[Span], *, is_real: bool) -> Span:
    op = node.op
    if isinstance(op, ops.Add):
        return _sum(known)
    if isinstance(op, ops.Subtract):
        return REAL if is_real else Span.BELOW if Span.BELOW in known[0] and REAL in known[1] else Span.NOTHING
    if isinstance(op, ops.Multiply):
        squared = Span.NATURAL if node.operands[0] == node.operands[1] else Span.NOTHING
        signs = _both(known) & (Span.NATURAL | Span.POSITIVE) if is_real else Span.NOTHING
        return (REAL if is_real else Span.NOTHING) | signs | squared
    if isinstance(op, ops.Divide) and is_real and Span.POSITIVE in known[1]:
        return known[0]
    return Span.NOTHING


def _sum(known: Sequence[Span]) -> Span:
    found = _both(known)
    if FRACTION in found and any(Span.POSITIVE in span for span in known):
        found |= Span.POSITIVE
    return found


def is_by_own_row(graph: Graph, node: Node, kind: str) -> bool:
    """Whether the second operand is, for every element of the first, a reduction of a row that this element is in."""
    position, labels = node.operands[1], list(range(node.type.rank))
    # By axis of what is looked at the axis of the node that it follows; -1 for one of size 1.
    while True:
        own = graph.nodes[position]
        if isinstance(own.op, ops.Reduce):
            source = graph.nodes[own.operands[0]].type
            kept = [axis for axis in range(source.rank) if axis not in own.op.dimensions]
            follows = all(label == a or source.shape[a] == 1 for a, label in zip(kept, labels, strict=True))
            return own.op.kind == kind and own.operands[0] == node.operands[0] and follows
        inner = own.operands[0] if own.operands else position
        before = graph.nodes[inner].type.shape
        if isinstance(own.op, ops.Maximum) and kind == "maximum":
            inner = _but_endless(graph, own)
            if inner is None:
                return False
        elif isinstance(own.op, ops.BroadcastInDim):
            # An axis of size 1 that is stretched is the same all along, and follows nothing.
            labels = [-1 if n == 1 else labels[a] for a, n in zip(own.op.dimensions, before, strict=True)]
        elif isinstance(own.op, ops.Reshape) and _long(before) == _long(own.type.shape):
            rest = iter([label for label, n in zip(labels, own.type.shape, strict=True) if n != 1])
            labels = [-1 if n == 1 else next(rest) for n in before]
        elif not isinstance(own.op, ops.Convert):
            return False
        position = inner


def _but_endless(graph: Graph, node: Node) -> int | None:
    """The operand of a maximum that is not minus infinity, where the other is: JAX begins a softmax's with it twice."""
    for k in (0, 1):
        op = graph.nodes[node.operands[k]].op
        if isinstance(op, ops.Constant) and set(op.values) == {-math.inf}:
            return node.operands[1 - k]
    return None


def own_row(graph: Graph, node: Node) -> tuple[int, ...]:
    """The axes of the row that :func:`is_by_own_row` found: those over which the first operand was reduced."""
    reduction = graph.nodes[node.operands[1]]
    while not isinstance(reduction.op, ops.Reduce):
        inner = _but_endless(graph, reduction) if isinstance(reduction.op, ops.Maximum) else None
        reduction = graph.nodes[reduction.operands[0] if inner is None else inner]
    return tuple(sorted(reduction.op.dimensions))


def _long(shape: Shape) -> list[object]:
    return [n for n in shape if n != 1]
