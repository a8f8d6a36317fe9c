"""Which nodes are computed for each place of a tensor of indices by itself, and along which of their axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rewright import ops
from rewright.ir.dims import Shape, product
from rewright.ir.graph import Graph, Node
from rewright.proof.rewriting.laws.reading import moves_one


@dataclass(frozen=True)
class Placed:
    """A tensor whose elements each depend on an index tensor at one place alone."""

    core: int
    """The index tensor."""
    axes: tuple[int, ...]
    """The axes of the place, in the order of the index tensor's axes."""


def trace_places(graph: Graph, node: Node, known: Mapping[int, Placed]) -> Placed | None:
    """Of what place the elements of a node are, where some of its operands are known to be of one."""
    if isinstance(node.op, ops.DotGeneral):
        return _multiplied(graph, node.op, node, known)
    own = {known[p] for p in node.operands if p in known}
    if len(own) != 1:
        return None
    (found,) = own
    if isinstance(node.op, ops.Elementwise):
        return found
    if len(node.operands) != 1 or not (moves_one(node) or isinstance(node.op, ops.Reduce)):
        return None
    shape = graph.nodes[node.operands[0]].type.shape
    axes = [_moved(node, shape, axis) for axis in found.axes]
    return Placed(found.core, tuple(a for a in axes if a is not None)) if None not in axes else None


def _moved(node: Node, shape: Shape, axis: int) -> int | None:
    """Where an axis of the only operand is in the result; None where it is not, or not as a whole."""
    op, size = node.op, shape[axis]
    if isinstance(op, ops.BroadcastInDim):
        place = op.dimensions[axis]
        return place if node.type.shape[place] == size else None
    if isinstance(op, ops.Transpose):
        return op.permutation.index(axis)
    if isinstance(op, ops.Reduce):
        return None if axis in op.dimensions else axis - sum(1 for other in op.dimensions if other < axis)
    if isinstance(op, ops.Slice):
        return axis if node.type.shape[axis] == size and op.stride[axis] == 1 else None
    if isinstance(op, ops.Reshape):
        before = product(shape[:axis])
        same = [k for k, n in enumerate(node.type.shape) if n == size and product(node.type.shape[:k]) == before]
        return same[0] if len(same) == 1 or (same and size != 1) else None
    return None


def _multiplied(graph: Graph, op: ops.DotGeneral, node: Node, known: Mapping[int, Placed]) -> Placed | None:
    found: list[Placed] = []
    ranks = [graph.nodes[p].type.rank for p in node.operands]
    count = len(op.lhs_batch)
    for side, operand in enumerate(node.operands):
        own = known.get(operand)
        if own is None:
            continue
        batch, contracted = ((op.lhs_batch, op.lhs_contracting), (op.rhs_batch, op.rhs_contracting))[side]
        if any(axis in contracted for axis in own.axes):
            return None
        free = [axis for axis in range(ranks[side]) if axis not in (*batch, *contracted)]
        start = count + (0 if side == 0 else ranks[0] - count - len(op.lhs_contracting))
        axes = tuple(batch.index(a) if a in batch else start + free.index(a) for a in own.axes)
        found.append(Placed(own.core, axes))
    # Of two that are computed with rows both have to be at one place: along axes that they share.
    return found[0] if len(set(found)) == 1 and (len(found) == 1 or max(found[0].axes, default=-1) < count) else None
