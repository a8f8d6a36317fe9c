"""Places: one node of every rank, taken together, and what is known about them without running anything."""

from __future__ import annotations

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator
from rewright.ir.placement import RankProgram

Place = tuple[int, ...]
"""A node position for each rank."""

LAYOUT: tuple[type[Operator], ...] = (ops.Lossless, ops.Convert)
"""What shows all that it reads, at other places or in another type."""


class Places:
    """Neighbours of places, and how much two nodes of two programs look alike."""

    def __init__(self, sequential: Graph, program: RankProgram) -> None:
        self.sequential = sequential
        self.ranks = program.graphs
        names = {name: number for number, name in enumerate((*sequential.inputs, *sequential.outputs))}
        self._output_bits = {name: 1 << names[name] for name in sequential.outputs}
        self._cones = _cones(sequential, names)
        self._rank_cones = [_cones(graph, names) for graph in self.ranks]
        self._readers = [len(readers) for readers in sequential.users()]
        self._rank_readers = [[len(readers) for readers in graph.users()] for graph in self.ranks]
        self._outputs = frozenset(sequential.outputs.values())

    def output(self, name: str) -> Place | None:
        """The place of an output, None where a rank has none of that name."""
        found = tuple(graph.outputs.get(name, -1) for graph in self.ranks)
        return None if -1 in found else found

    def operator(self, place: Place) -> type[Operator] | None:
        """The operator that all ranks have there, None where they differ."""
        found = {type(graph.nodes[p].op) for graph, p in zip(self.ranks, place, strict=True)}
        return found.pop() if len(found) == 1 else None

    def operands(self, place: Place) -> list[Place]:
        """What the ranks read there, operand by operand."""
        read = [graph.nodes[p].operands for graph, p in zip(self.ranks, place, strict=True)]
        return [tuple(own) for own in zip(*read, strict=False)]

    def steps_back(self, place: Place) -> list[Place]:
        """Places that are one operator of one rank further back: ranks may compute more than others do."""
        found: list[Place] = []
        for rank, position in enumerate(place):
            for operand in self.ranks[rank].nodes[position].operands:
                found.append((*place[:rank], operand, *place[rank + 1 :]))
        return found

    def label(self, place: Place) -> str | None:
        """The name of the input that the ranks have there, if it is one."""
        labels = {
            node.op.label if isinstance(node.op, ops.Input) else None
            for node in (graph.nodes[p] for graph, p in zip(self.ranks, place, strict=True))
        }
        return labels.pop() if len(labels) == 1 else None

    def leads_to(self, place: Place) -> set[str]:
        """The outputs that depend on a place, on any rank."""
        cones = [self._rank_cones[rank][p] for rank, p in enumerate(place)]
        return {name for name, bit in self._output_bits.items() if any(cone & bit for cone in cones)}

    def unlikeness(self, position: int, place: Place) -> int:
        """How many inputs and outputs only one of a sequential node and a place depends on, or leads to."""
        own = self._cones[position]
        return sum((own ^ self._rank_cones[rank][p]).bit_count() for rank, p in enumerate(place))

    def laid_out(self, position: int) -> list[int]:
        """A sequential node, and the nodes that it only lays out."""
        found = [position]
        while isinstance(self.sequential.nodes[found[-1]].op, LAYOUT):
            found.append(self.sequential.nodes[found[-1]].operands[0])
        return found

    def laid_out_ranks(self, place: Place) -> list[Place]:
        """A place, and the places that it only lays out."""
        found = [place]
        while (operator := self.operator(found[-1])) is not None and issubclass(operator, LAYOUT):
            found.append(self.operands(found[-1])[0])
        return found

    def addends(self, position: int, top: bool = True) -> list[int]:
        """The terms of a sum whose partial sums nothing else reads; the node itself where it is no sum."""
        node = self.sequential.nodes[position]
        alone = self._readers[position] == 1 and position not in self._outputs
        if isinstance(node.op, ops.Add) and (top or alone):
            return [term for operand in node.operands for term in self.addends(operand, False)]
        return [position]

    def rank_addends(self, place: Place, top: bool = True) -> list[Place]:
        """The same for a place."""
        alone = all(self._rank_readers[rank][p] == 1 for rank, p in enumerate(place))
        if self.operator(place) is ops.Add and (top or alone):
            return [term for operand in self.operands(place) for term in self.rank_addends(operand, False)]
        return [place]


def _cones(graph: Graph, names: dict[str, int]) -> list[int]:
    """For every node the set, as bits, of the named inputs that it depends on and of the outputs that it leads to."""
    before, after = [0] * len(graph.nodes), [0] * len(graph.nodes)
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Input) and node.op.label in names:
            before[position] = 1 << names[node.op.label]
        for operand in node.operands:
            before[position] |= before[operand]
    for name, position in graph.outputs.items():
        if name in names:
            after[position] |= 1 << names[name]
    for position in range(len(graph.nodes) - 1, -1, -1):
        for operand in graph.nodes[position].operands:
            after[operand] |= after[position]
    return [one | other for one, other in zip(before, after, strict=True)]
