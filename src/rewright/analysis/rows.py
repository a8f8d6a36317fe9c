"""Elements that are related to their own row: a softmax subtracts the row's maximum, and divides by the row's sum."""

from __future__ import annotations

from rewright import ops
from rewright.analysis.evenness import follows_whole, splat
from rewright.analysis.moving import laid_out
from rewright.ir.graph import Graph, Node
from rewright.ops.base import identity_value


def is_by_own_row(graph: Graph, node: Node, kind: str, *, casts: bool = True) -> bool:
    """Whether the second operand is, for every element of the first, a reduction of a row that this element is in."""
    return _own_reduction(graph, node, kind, casts=casts) is not None


def own_row(graph: Graph, node: Node, kind: str, *, casts: bool = True) -> tuple[int, ...] | None:
    """The axes of the row of :func:`is_by_own_row`: those over which the first operand is reduced."""
    found = _own_reduction(graph, node, kind, casts=casts)
    return tuple(sorted(found.dimensions)) if found is not None else None


def _own_reduction(graph: Graph, node: Node, kind: str, *, casts: bool) -> ops.Reduce | None:
    position, labels = node.operands[1], list(range(node.type.rank))
    # By axis of what is looked at the axis of the node that it follows; -1 for one of size 1.
    while True:
        own = graph.nodes[position]
        if isinstance(own.op, ops.Reduce):
            source = graph.nodes[own.operands[0]].type
            kept = [axis for axis in range(source.rank) if axis not in own.op.dimensions]
            is_own = all(label == a or source.shape[a] == 1 for a, label in zip(kept, labels, strict=True))
            return own.op if own.op.kind == kind and own.operands[0] == node.operands[0] and is_own else None
        if not own.operands:
            return None
        inner = own.operands[0]
        if isinstance(own.op, ops.Extremum) and own.op.name == kind:
            others = _but_neutral(graph, own)
            if others is None:
                return None
            inner = others
        elif isinstance(own.op, ops.View):
            found, shape = follows_whole(graph, own), graph.nodes[inner].type.shape
            if found is None:
                return None
            # An axis of size 1 that is stretched is the same all along, and follows nothing.
            labels = [-1 if to is None or size == 1 else labels[to] for to, size in zip(found[0], shape, strict=True)]
        elif not casts or not isinstance(own.op, ops.Convert):
            return None
        position = inner


def _but_neutral(graph: Graph, node: Node) -> int | None:
    """The operand of an extremum that is not its neutral element, with which JAX begins a softmax's maximum."""
    neutral = identity_value(node.op.name, node.type.dtype)
    return next((node.operands[1 - k] for k in (0, 1) if splat(graph, node.operands[k]) == neutral), None)


def is_sum_of_exponentials(graph: Graph, position: int, other: int) -> bool:
    """Whether a tensor is the logarithm of a sum of another one's exponentials."""
    logarithm = graph.nodes[laid_out(graph, other)]
    if not isinstance(logarithm.op, ops.Log):
        return False
    total = graph.nodes[laid_out(graph, logarithm.operands[0])]
    if not isinstance(total.op, ops.Reduce) or total.op.kind != "sum":
        return False
    power = graph.nodes[laid_out(graph, total.operands[0])]
    if not isinstance(power.op, ops.Exponential):
        return False
    one, two = graph.nodes[power.operands[0]], graph.nodes[position]
    return power.operands[0] == position or (one.op, one.operands) == (two.op, two.operands)
