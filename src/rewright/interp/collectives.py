"""What a collective computes: the tensors of all members in, the results of all members out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewright import ops
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import Node
from rewright.ir.types import TensorType
from rewright.ops.agreement import splits_of
from rewright.ops.base import REDUCERS, Array


def simulate(nodes: Sequence[Node], ranks: Sequence[int], operands: Sequence[Array]) -> list[Array]:
    """Results of all members of one collective, in the order of the group.

    Args:
        nodes: the collective as each member calls it; they have been checked to agree.
        ranks: the members, in the order of the group.
        operands: each member's tensor.

    Raises UnsupportedOperator for an operator that is no collective.
    """
    op = nodes[0].op
    if isinstance(op, ops.AllReduce):
        return [_combine(op.kind, operands)] * len(ranks)
    if isinstance(op, ops.AllGather):
        return [np.concatenate(list(operands), axis=op.dimension)] * len(ranks)
    if isinstance(op, ops.ReduceScatter):
        return list(np.split(_combine(op.kind, operands), len(ranks), axis=op.dimension))
    if isinstance(op, ops.AllToAll):
        return _exchange(nodes, operands)
    if isinstance(op, ops.CollectivePermute):
        return _permute(op, ranks, operands)
    if isinstance(op, ops.CollectiveBroadcast):
        return [operands[ranks.index(op.source)]] * len(ranks)
    raise UnsupportedOperator(f"{op.name} at {nodes[0].span} is no collective; it cannot be simulated over ranks")


def _combine(kind: str, operands: Sequence[Array]) -> Array:
    total = operands[0]
    with np.errstate(all="ignore"):  # as one device reduces: what is no number is compared like anything else
        for operand in operands[1:]:
            total = REDUCERS[kind](total, operand)
    return total


def _exchange(nodes: Sequence[Node], operands: Sequence[Array]) -> list[Array]:
    """Member i cuts its tensor along the split axis, sends piece j to member j, which concatenates by sender."""
    op = nodes[0].op
    assert isinstance(op, ops.AllToAll)
    pieces: list[list[Array]] = []
    for node, operand in zip(nodes, operands, strict=True):
        sends, _ = splits_of(node.op, TensorType(operand.shape, node.type.dtype), len(nodes))
        cuts = np.cumsum([int(str(size)) for size in sends])[:-1]
        pieces.append(list(np.split(operand, cuts, axis=op.split_dimension)))
    return [np.concatenate([sent[i] for sent in pieces], axis=op.concat_dimension) for i in range(len(nodes))]


def _permute(op: ops.CollectivePermute, ranks: Sequence[int], operands: Sequence[Array]) -> list[Array]:
    """Targets receive their source's tensor, ranks that are no target zeros."""
    sources = {target: source for source, target in op.pairs}
    found: list[Array] = []
    for rank, operand in zip(ranks, operands, strict=True):
        found.append(operands[ranks.index(sources[rank])] if rank in sources else np.zeros_like(operand))
    return found
