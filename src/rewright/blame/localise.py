"""Where a distributed program parts from the sequential one: the first operators whose results nobody computes.

A rank's tensor is *familiar* while it is a window or a part of a term of the sequential program. Walking back from a
wrong output through unfamiliar tensors ends at operators with familiar operands: there the programs part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rewright import ops
from rewright.analysis.meetings import Meeting, match_collectives
from rewright.analysis.moving import LAYING_OUT
from rewright.blame.regions import readers_behind, unknown_behind
from rewright.claims.language import Add, Addend, Input, Ranged, Table
from rewright.ir.graph import Node
from rewright.lifting.programs import Lifted, Lifter
from rewright.lifting.terms.value import Pieces, Value

_SOON = 200
"""So many operators after a tensor what reads it is looked for."""


@dataclass(frozen=True)
class Parting:
    """One operator of one rank whose operands the sequential program has and whose result it has not."""

    rank: int
    position: int
    node: Node
    partial: tuple[int, ...]
    """Operand positions that are sums not yet reduced over the ranks."""
    counterpart: int | None = None
    """The operator of the sequential program that reads the same operands, as far as it is known."""
    is_end: bool = False
    """Whether this is only where an output comes from: all that is read on the way is familiar."""


class Localiser:
    """Compares lifted programs term by term."""

    def __init__(self, lifter: Lifter, sequential: Lifted, ranks: Sequence[Lifted]) -> None:
        self.lifter, self.sequential, self.ranks = lifter, sequential, ranks
        self.terms = lifter.algebra.terms
        self._familiar: dict[int, bool] = {}
        self._masks: dict[int, bool] = {}
        self._composed: dict[int, bool] = {}

    def value(self, lifted: Lifted, position: int) -> Value:
        """What a node computes."""
        return self.lifter.values[lifted.values[position]]

    @cached_property
    def home(self) -> dict[int, int]:
        """For every term, and every fold under it, the first sequential node that computes it."""
        home: dict[int, int] = {}
        for position in range(len(self.sequential.values)):
            for addend in addends(self.value(self.sequential, position)):
                home.setdefault(addend.term, position)
                if isinstance(self.terms.label(addend.term), Ranged):
                    home.setdefault(self.terms.children(addend.term)[0], position)
        return home

    @cached_property
    def _sums(self) -> dict[frozenset[int], int]:
        """By the terms that are added up in it, whatever part of each, the first sequential node."""
        found: dict[frozenset[int], int] = {}
        for position, number in enumerate(self.sequential.values):
            found.setdefault(self._bodies(number), position)
        return found

    def _bodies(self, number: int) -> frozenset[int]:
        found: set[int] = set()
        stack = [addend.term for addend in addends(self.lifter.values[number])]
        while stack:
            term = stack.pop()
            content = self.terms.label(term)
            if isinstance(content, Add):
                stack.extend(self.terms.children(term))
            else:
                found.add(self.terms.children(term)[0] if isinstance(content, Ranged) else term)
        return frozenset(found)

    def familiar(self, number: int) -> bool:
        """Whether a value is made of terms of the sequential program, or of open parts of them."""
        known = self._familiar.get(number)
        if known is None:
            known = all(self._known(a) for a in addends(self.lifter.values[number]))
            self._familiar[number] = known
        return known

    def _known(self, addend: Addend) -> bool:
        """An open part of something familiar is familiar: an all-reduce may still complete it."""
        if addend.term in self.home or addend.term < self.lifter.algebra.horizon:
            return True
        return self._made_of_familiar(addend.term) if addend.parts else self._positional(addend.term)

    def _made_of_familiar(self, term: int) -> bool:
        """Whether a term holds no closed fold that the sequential program does not have."""
        known = self._composed.get(term)
        if known is None:
            known = term < self.lifter.algebra.horizon or not isinstance(self.terms.label(term), Ranged)
            known = known and all(self._made_of_familiar(child) for child in self.terms.children(term))
            self._composed[term] = known
        return known

    def _positional(self, term: int) -> bool:
        """Whether a term is made of positions, numbers and integer inputs alone, such as the mask of a shard."""
        known = self._masks.get(term)
        if known is None:
            label, children = self.terms.label(term), self.terms.children(term)
            if isinstance(label, Input):
                position = self.sequential.graph.inputs.get(label.name, -1)
                known = position >= 0 and not self.sequential.graph.nodes[position].type.dtype.is_float
            else:
                known = not isinstance(label, Table) and all(self._positional(child) for child in children)
            self._masks[term] = known
        return known

    def partings(self, output: str) -> list[Parting]:
        """Where the ranks part from the sequential program on the way to an output, earliest first."""
        graphs = [lifted.graph for lifted in self.ranks]
        ends = [(rank, graph.outputs[output]) for rank, graph in enumerate(graphs) if output in graph.outputs]
        unknown = unknown_behind(ends, self._reads, self._is_familiar)
        found = [self._parting(*at) for at, read in unknown.items() if not read and not self._is_familiar(at)]
        found = found or [replace(self._parting(*end), is_end=True) for end in ends]
        return sorted(found, key=lambda p: (p.position, p.rank))

    def _is_familiar(self, at: tuple[int, int]) -> bool:
        return self.familiar(self.ranks[at[0]].values[at[1]])

    def _reads(self, at: tuple[int, int]) -> Sequence[tuple[int, int]]:
        """What a node reads, by rank and position: what is received is what other ranks gave."""
        met = self._met.get(at)
        if met is None:
            return [(at[0], p) for p in self.ranks[at[0]].graph.nodes[at[1]].operands]
        return [(r, self.ranks[r].graph.nodes[p].operands[0]) for r, p in met]

    @cached_property
    def _met(self) -> dict[tuple[int, int], tuple[tuple[int, int], ...]]:
        """For every node that receives something, the nodes that give it."""
        found: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        for meeting in match_collectives([lifted.graph for lifted in self.ranks]):
            if isinstance(meeting, Meeting):
                rank, position = meeting.nodes[0]
                is_message = isinstance(self.ranks[rank].graph.nodes[position].op, ops.Send)
                givers, takers = (meeting.nodes[:1], meeting.nodes[1:]) if is_message else (meeting.nodes,) * 2
                found.update(dict.fromkeys(takers, givers))
        return found

    def _parting(self, rank: int, position: int) -> Parting:
        lifted = self.ranks[rank]
        node = lifted.graph.nodes[position]
        partial = tuple(p for p in node.operands if self._is_partial(lifted, p))
        return Parting(rank, position, node, partial, self._counterpart(lifted, position))

    def _counterpart(self, lifted: Lifted, position: int) -> int | None:
        """The sequential node with the same operator that reads what this node's operands are parts of."""
        node = lifted.graph.nodes[position]
        alike = [self._sums.get(self._bodies(lifted.values[p])) for p in node.operands]
        readers = [reader for home in alike if home is not None for reader in self._readers(home, type(node.op))]
        if readers:
            return min(readers)
        homes = self.homes(lifted, node.operands)
        users: list[int] = []
        for home in homes:
            users.extend(self._readers(home, type(node.op)))
        if users:
            return min(users)
        return max(homes) if homes else None

    def origin(self, parting: Parting) -> Parting | None:
        """Where the unreduced sum that a parting reads was computed; None where it reads none, or is a collective."""
        lifted = self.ranks[parting.rank]
        if not parting.partial or isinstance(lifted.graph.nodes[parting.position].op, ops.GroupCollective):
            return None
        position = parting.partial[0]
        while len(inner := {p for p in lifted.graph.nodes[position].operands if self._is_partial(lifted, p)}) == 1:
            position = inner.pop()
        return self._parting(parting.rank, position)

    def message_of(self, rank: int, position: int) -> tuple[Node, int, Node] | None:
        """The message that a node reads, or is: what receives it, the rank that sent it, and what sent it there."""
        nodes = self.ranks[rank].graph.nodes
        stack, seen = [position, *nodes[position].operands], set[int]()
        while stack:
            at = stack.pop()
            if isinstance(nodes[at].op, ops.Recv):
                (sender, sent), *_ = self._met[rank, at]
                return nodes[at], sender, self.ranks[sender].graph.nodes[sent]
            if at not in seen and isinstance(nodes[at].op, LAYING_OUT):
                stack.extend(nodes[at].operands)
            seen.add(at)
        return None

    def _is_partial(self, lifted: Lifted, position: int) -> bool:
        """Whether a tensor is a sum over ranks; masked indices have open parts too, and nobody adds them up."""
        if not lifted.graph.nodes[position].type.dtype.is_float:
            return False
        return any(a.parts for a in addends(self.value(lifted, position)))

    def is_everywhere(self, rank: int, position: int) -> bool:
        """Whether every rank has a tensor, so that it is no addend of which others have the rest."""
        number = self.ranks[rank].values[position]
        return len(self.ranks) > 1 and all(number in held for held in self._held)

    @cached_property
    def _held(self) -> list[frozenset[int]]:
        return [frozenset(lifted.values) for lifted in self.ranks]

    def homes(self, lifted: Lifted, operands: Sequence[int]) -> list[int]:
        """The sequential nodes that compute what the operands are windows or parts of."""
        found: list[int] = []
        for operand in operands:
            for addend in addends(self.value(lifted, operand)):
                for term in (addend.term, *(hole for hole, _ in addend.parts)):
                    if term in self.home:
                        found.append(self.home[term])
        return found

    def _readers(self, home: int, operator: type) -> list[int]:
        """Nodes of one operator that read a node, directly or through layout."""
        graph = self.sequential.graph
        readers = readers_behind(graph, home, soon=_SOON)
        return [position for position in readers if isinstance(graph.nodes[position].op, operator)]


def addends(value: Value) -> Iterator[Addend]:
    """All windows of a value, piece by piece."""
    if isinstance(value, Pieces):
        for part in value.parts:
            yield from addends(part)
    else:
        yield from value.addends
