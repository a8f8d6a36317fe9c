"""What the members of one collective have to agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from rewright import ops
from rewright.ir.attributes import attributes
from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Node
from rewright.ir.operator import Operator
from rewright.ir.types import SourceSpan, TensorType


class CollectiveMismatch(RewrightError):
    """Ranks that should meet in one collective do not: another operator, shape, group or order, or a deadlock."""

    def __init__(self, message: str, span: SourceSpan | None = None) -> None:
        """``span`` is the line of one of the ranks; the message names those of all of them."""
        super().__init__(message)
        self.span = span


def describe(rank: int, node: Node) -> str:
    """``all_reduce at model.py:12 on rank 3``, for messages."""
    return f"{node.op.name} at {node.span} on rank {rank}"


def members(node: Node, rank: int, world: int) -> tuple[int, ...]:
    """The ranks that meet in this collective, in the order of the group.

    Raises CollectiveMismatch where the caller is not in exactly one group, or a rank does not exist.
    """
    op = node.op
    if isinstance(op, ops.CollectivePermute):
        # A rank that no pair names takes part in nothing: it receives zeros at once.
        named = tuple(sorted({member for pair in op.pairs for member in pair}))
        found = [named if rank in named else (rank,)]
    else:
        found = [group for group in groups_of(op) if rank in group]
    if len(found) != 1 or len(set(found[0])) != len(found[0]):
        raise CollectiveMismatch(
            f"{describe(rank, node)} has groups {list(groups_of(op))}; put the calling rank in exactly one, once",
            node.span,
        )
    if any(not 0 <= member < world for member in found[0]):
        raise CollectiveMismatch(
            f"{describe(rank, node)} has the group {list(found[0])} in a program of {world} ranks; name existing ranks",
            node.span,
        )
    return found[0]


def meets(op: Operator) -> bool:
    """Whether all members of a group wait for each other in an operator: in every collective that is no message."""
    return isinstance(op, ops.Collective) and not isinstance(op, ops.Message)


def groups_of(op: Operator) -> tuple[tuple[int, ...], ...]:
    """The replica groups of a collective, none for an operator without them."""
    return getattr(op, "groups", ())


def communicator_of(op: Operator) -> int:
    """Which of the communicators of its group a collective is called on."""
    return getattr(op, "communicator", 0)


def is_posted(op: Operator) -> bool:
    """Whether a rank that calls a collective goes on until it reads the result."""
    return getattr(op, "posted", False)


def check_agreement(nodes: Sequence[tuple[int, Node]], operands: Sequence[TensorType]) -> None:
    """Check that all members call the same operator with the same attributes on tensors that fit.

    Args:
        nodes: ``(rank, node)`` in the order of the first member's group.
        operands: type of each member's operand.

    Raises CollectiveMismatch naming the first member that differs from the first one.
    """
    order = tuple(rank for rank, _ in nodes)
    first_rank, first = nodes[0]
    expected = _shared_part(first, first_rank)
    exchange = isinstance(first.op, ops.AllToAll)
    for (rank, node), operand in zip(nodes[1:], operands[1:], strict=True):
        both = f"{describe(first_rank, first)} meets {describe(rank, node)}"
        if type(node.op) is not type(first.op):
            raise CollectiveMismatch(f"{both}; call the same collective on every rank of {list(order)}", node.span)
        if not isinstance(node.op, ops.CollectivePermute) and members(node, rank, max(order) + 1) != order:
            own = members(node, rank, max(order) + 1)
            raise CollectiveMismatch(
                f"{both}, with the groups {list(order)} and {list(own)}; order them alike", node.span
            )
        if _shared_part(node, rank) != expected:
            raise CollectiveMismatch(
                f"{both}, but {_difference(first.op, node.op)}; make the attributes equal", node.span
            )
        if not exchange and operand != operands[0]:
            raise CollectiveMismatch(f"{both} with {operands[0]} against {operand}; make the shapes equal", node.span)
    if exchange:
        _check_splits(nodes, operands)


def in_equal_parts(op: Operator) -> bool:
    """Whether an operator is an all-to-all that sends every member as much."""
    return isinstance(op, ops.AllToAll) and op.send_splits is None and op.receive_splits is None


def _shared_part(node: Node, rank: int) -> Operator:
    """The operator without what may differ between members: other groups, and each member's split sizes."""
    op = node.op
    if isinstance(op, ops.AllToAll):
        return replace(op, groups=(), posted=False, send_splits=None, receive_splits=None)
    return replace(cast(Any, op), groups=(), posted=False) if isinstance(op, ops.GroupCollective) else op


def _difference(left: Operator, right: Operator) -> str:
    others = attributes(right)
    for name, value in attributes(left).items():
        if value != others[name] and name != "groups":
            return f"{name} is {value} against {others[name]}"
    return "the groups differ"


def _check_splits(nodes: Sequence[tuple[int, Node]], operands: Sequence[TensorType]) -> None:
    sends = [splits_of(node.op, operand, len(nodes))[0] for (_, node), operand in zip(nodes, operands, strict=True)]
    receives = [splits_of(node.op, operand, len(nodes))[1] for (_, node), operand in zip(nodes, operands, strict=True)]
    for i, (source, sender) in enumerate(nodes):
        for j, (target, receiver) in enumerate(nodes):
            if sends[i][j] != receives[j][i]:
                raise CollectiveMismatch(
                    f"{describe(source, sender)} sends {sends[i][j]} along the split axis to rank {target}, and "
                    f"{describe(target, receiver)} expects {receives[j][i]}; make the split sizes agree",
                    receiver.span,
                )


def splits_of(op: Operator, operand: TensorType, parts: int) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """What one member of an all_to_all sends to and expects from each member, along the split axis."""
    if not isinstance(op, ops.AllToAll):
        return (), ()
    size = operand.shape[op.split_dimension]
    even: tuple[Dim, ...] = (size // parts,) * parts if isinstance(size, int) else (size,) * parts
    return op.send_splits or even, op.receive_splits or even
