"""Collectives along an axis that a framework writes as collectives along axis 0 with pieces moved around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import GraphBuilder


@dataclass(frozen=True, slots=True)
class Pieces:
    """All of a tensor in equal pieces along an axis, in order."""

    whole: int
    axis: int


def joined_pieces(b: GraphBuilder, parts: Sequence[int]) -> Pieces | None:
    """What some tensors are the equal pieces of, or None where they are not."""
    first = b.node(parts[0])
    if len(parts) < 2 or not isinstance(first.op, ops.Slice):
        return None
    whole, sizes = first.operands[0], b.type(first.operands[0]).shape
    cut = [axis for axis, size in enumerate(sizes) if first.type.shape[axis] != size]
    if len(cut) != 1:
        return None
    axis = cut[0]
    expected: Dim = 0
    for part in parts:
        node = b.node(part)
        if not isinstance(node.op, ops.Slice) or node.operands[0] != whole or node.type != first.type:
            return None
        if node.op.start[axis] != expected or node.op.stride[axis] != 1:
            return None
        expected = node.op.limit[axis]
    return Pieces(whole, axis) if expected == sizes[axis] else None
