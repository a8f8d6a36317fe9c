"""What a collective computes: the tensors of all members in, the results of all members out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewright import ops
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import Node
from rewright.ir.operator import Unsupported
from rewright.ops.base import REDUCERS, Array
from rewright.ops.collectives import Piece


def simulate(nodes: Sequence[Node], ranks: Sequence[int], operands: Sequence[Array]) -> list[Array]:
    """Results of all members of one collective, in the order of the group.

    Args:
        nodes: the collective as each member calls it; they have been checked to agree.
        ranks: the members, in the order of the group.
        operands: each member's tensor.

    Raises UnsupportedOperator for an operator that is no collective.
    """
    op = nodes[0].op
    if not isinstance(op, ops.Collective):
        raise UnsupportedOperator(f"{op.name} at {nodes[0].span} is no collective; it cannot be simulated over ranks")
    operators, shapes = [node.op for node in nodes], [operand.shape for operand in operands]
    whole: list[Array] = []
    results: list[Array] = []
    for member in range(1 if op.is_shared else len(ranks)):
        got = op.received(operators, shapes, ranks, member)
        if isinstance(got, Unsupported):
            raise UnsupportedOperator(f"{op.name} at {nodes[0].span} cannot be simulated over ranks: {got.why}")
        if got.reduction is not None:
            whole = whole or [_combine(got.reduction, operands)]
        parts = [_piece(piece, whole or operands, got.cut) for piece in got.pieces]
        if not parts:
            results.append(np.zeros_like(operands[member]))
        else:
            results.append(parts[0] if got.joined is None else np.concatenate(parts, axis=got.joined))
    return results * len(ranks) if op.is_shared else results


def _piece(piece: Piece, sources: Sequence[Array], axis: int | None) -> Array:
    source = sources[piece.member]
    if axis is None or piece.length is None:
        return source
    start, length = int(str(piece.start)), int(str(piece.length))
    return source[(*(slice(None),) * axis, slice(start, start + length))]


def _combine(kind: str, operands: Sequence[Array]) -> Array:
    total = operands[0]
    with np.errstate(all="ignore"):  # as one device reduces: what is no number is compared like anything else
        for operand in operands[1:]:
            total = REDUCERS[kind](total, operand)
    return total
