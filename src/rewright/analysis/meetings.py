"""Which nodes of which ranks meet in a collective, without any values.

Every rank issues its collectives in program order and waits in each until all members of the group have arrived
(the blocking semantics of ``torch.distributed`` and of StableHLO's replica groups). The calls on one communicator meet
in the order in which each rank calls them; those on two communicators of the same ranks never meet. A send never
waits; a receive, and a collective that is posted, is waited for where its value is first read, so rings of posted
sends and receives do not lock up. The matching is a work list: linear in the number of nodes of all ranks.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.types import TensorType
from rewright.ops.agreement import (
    CollectiveMismatch,
    check_agreement,
    communicator_of,
    describe,
    groups_of,
    is_posted,
    meets,
    members,
)


class LocalNode(NamedTuple):
    """One node that its rank computes alone."""

    rank: int
    position: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """Nodes that produce their results together, as ``(rank, position)`` in the order of the group.

    For a message there are two: the send, whose own result is a LocalNode, and the receive.
    """

    nodes: tuple[tuple[int, int], ...]


Schedule = list[LocalNode | Meeting]
"""Every node of every rank once (sends twice), operands always before the nodes that read them."""

_Communicator = tuple[frozenset[int], int]
"""Ranks, and which of the communicators of these ranks."""

_Channel = tuple[int, int, object]
"""Source, destination and tag of messages; they arrive in the order in which they were sent."""


def match_collectives(graphs: Sequence[Graph]) -> Schedule:
    """A global order of all nodes in which the members of each collective meet.

    Raises CollectiveMismatch, naming ranks, operators and source lines, where members of a group disagree on
    operator, attributes, shapes or split sizes, where a group does not contain its caller, and at a deadlock.
    """
    return _Matcher(graphs).run()


class _Matcher:
    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.graphs = graphs
        self.next = [0] * len(graphs)
        self.waiting: dict[int, tuple[int, _Communicator]] = {}
        """By rank the call that it does not go on from."""
        self.arrived: defaultdict[_Communicator, defaultdict[int, deque[int]]] = defaultdict(lambda: defaultdict(deque))
        """By communicator and rank the calls that have not met yet, in order."""
        self.sent: defaultdict[_Channel, deque[int]] = defaultdict(deque)
        self.posted: defaultdict[_Channel, deque[int]] = defaultdict(deque)
        self.pending: list[set[int]] = [set() for _ in graphs]
        self.runnable = deque(range(len(graphs)))
        self.schedule: Schedule = []

    def run(self) -> Schedule:
        while self.runnable:
            rank = self.runnable.popleft()
            if rank not in self.waiting:
                self._advance(rank)
        for rank in range(len(self.graphs)):
            if self.next[rank] < len(self.graphs[rank].nodes) or self.pending[rank]:
                raise CollectiveMismatch(self._diagnose(rank), self._stuck(rank).span)
        return self.schedule

    def _advance(self, rank: int) -> None:
        """Run one rank until it has to wait for another."""
        nodes, pending = self.graphs[rank].nodes, self.pending[rank]
        while self.next[rank] < len(nodes):
            position = self.next[rank]
            node = nodes[position]
            if pending and any(operand in pending for operand in node.operands):
                return
            if not node.op.is_met:
                self.next[rank] = position + 1
                self.schedule.append(LocalNode(rank, position))
                continue
            if meets(node.op):
                self._arrive(rank, position)
                return
            self.next[rank] = position + 1
            if isinstance(node.op, ops.Recv):
                self._post((node.op.source, rank, node.op.tag), rank, position)
                continue
            self.schedule.append(LocalNode(rank, position))
            if isinstance(node.op, ops.Send):
                self._send((rank, node.op.destination, node.op.tag), position)

    def _arrive(self, rank: int, position: int) -> None:
        """Call a collective. One that is posted lets the other ranks go first: equal programs meet at once."""
        node = self.graphs[rank].nodes[position]
        communicator = frozenset(members(node, rank, len(self.graphs))), communicator_of(node.op)
        if is_posted(node.op):
            self.pending[rank].add(position)
            self.next[rank] = position + 1
            self.runnable.append(rank)
        else:
            self.waiting[rank] = position, communicator
        present = self.arrived[communicator]
        present[rank].append(position)
        if all(present[member] for member in communicator[0]):
            self._meet(rank, communicator)

    def _meet(self, rank: int, communicator: _Communicator) -> None:
        """Have the first calls meet that wait on a communicator, in the order of the group as ``rank`` gives it."""
        present = self.arrived[communicator]
        order = members(self.graphs[rank].nodes[present[rank][0]], rank, len(self.graphs))
        nodes = tuple((member, present[member].popleft()) for member in order)
        check_agreement([(member, self.graphs[member].nodes[at]) for member, at in nodes], self._operands(nodes))
        self.schedule.append(Meeting(nodes))
        for member, at in nodes:
            if self.waiting.get(member, (-1, None))[0] == at:
                del self.waiting[member]
                self.next[member] = at + 1
                self.runnable.append(member)
            else:
                self._arrived_at(member, at)

    def _arrived_at(self, rank: int, position: int) -> None:
        """What a rank posted is there."""
        self.pending[rank].discard(position)
        if rank not in self.waiting and rank not in self.runnable:
            self.runnable.append(rank)

    def _operands(self, nodes: Sequence[tuple[int, int]]) -> list[TensorType]:
        found: list[TensorType] = []
        for rank, position in nodes:
            graph = self.graphs[rank]
            found.append(graph.nodes[graph.nodes[position].operands[0]].type)
        return found

    def _post(self, channel: _Channel, rank: int, position: int) -> None:
        if not 0 <= channel[0] < len(self.graphs):
            where = describe(rank, self.graphs[rank].nodes[position])
            raise CollectiveMismatch(f"{where} names rank {channel[0]} of {len(self.graphs)} ranks; name one of them")
        self.pending[rank].add(position)
        self.posted[channel].append(position)
        self._deliver(channel)

    def _send(self, channel: _Channel, position: int) -> None:
        if not 0 <= channel[1] < len(self.graphs):
            where = describe(channel[0], self.graphs[channel[0]].nodes[position])
            raise CollectiveMismatch(f"{where} names rank {channel[1]} of {len(self.graphs)} ranks; name one of them")
        self.sent[channel].append(position)
        self._deliver(channel)

    def _deliver(self, channel: _Channel) -> None:
        source, destination, _ = channel
        sent, posted = self.sent[channel], self.posted[channel]
        while sent and posted:
            here, there = sent.popleft(), posted.popleft()
            sender, receiver = self.graphs[source].nodes[here], self.graphs[destination].nodes[there]
            if sender.type != receiver.type:
                raise CollectiveMismatch(
                    f"{describe(source, sender)} sends {sender.type} and {describe(destination, receiver)} expects "
                    f"{receiver.type}; make the shapes equal",
                    receiver.span,
                )
            self.schedule.append(Meeting(((source, here), (destination, there))))
            self._arrived_at(destination, there)

    def _last(self, rank: int) -> str:
        """After which collective a rank ends, if it has any."""
        found = [node for node in self.graphs[rank].nodes if groups_of(node.op)]
        return f", after {found[-1].op.name} at {found[-1].span}" if found else ""

    def _stuck(self, rank: int) -> Node:
        """What a rank waits in."""
        position = self.waiting[rank][0] if rank in self.waiting else min(self.pending[rank])
        return self.graphs[rank].nodes[position]

    def _diagnose(self, rank: int) -> str:
        """One line on why this rank never finishes."""
        found = self._call(rank)
        if found is None:
            position = min(self.pending[rank])
            node = self.graphs[rank].nodes[position]
            return f"{describe(rank, node)} receives nothing; add the matching send on the source rank"
        where, (group, number) = found
        missing = next(m for m in sorted(group) if not self.arrived[group, number][m])
        other = self._call(missing)
        if other is not None:
            return f"deadlock: {where}, while {other[0]}; call the collectives in one order on every rank"
        if self.pending[missing]:
            node = self._stuck(missing)
            what = f"{describe(missing, node)} waits for a message that nobody sends"
            return f"deadlock: {where}, while {what}; call them in one order on every rank"
        ends = f"rank {missing} ends without it{self._last(missing)}"
        return f"deadlock: {where}, but {ends}; call the collective on every rank of the group"

    def _call(self, rank: int) -> tuple[str, _Communicator] | None:
        """The collective that a rank waits in, in words and by its communicator; None where it waits in none."""
        if rank in self.waiting:
            position, communicator = self.waiting[rank]
        elif self.pending[rank]:
            position = min(self.pending[rank])
            node = self.graphs[rank].nodes[position]
            if not meets(node.op):
                return None
            communicator = frozenset(members(node, rank, len(self.graphs))), communicator_of(node.op)
        else:
            return None
        node, (group, number) = self.graphs[rank].nodes[position], communicator
        which = f" on communicator {number + 1} of theirs" if self._has_several(group) else ""
        return f"{describe(rank, node)} waits for ranks {sorted(group)}{which}", communicator

    def _has_several(self, group: frozenset[int]) -> bool:
        """Whether the ranks of a group meet on several communicators."""
        return len({number for ranks, number in self.arrived if ranks == group}) > 1
