"""Programs of many equal layers as programs of three: fewer operators to run, and no other kind of layer.

Of a program with 32 layers the first, the second and the last are left, which is what a proof by induction over layers
lifts (:mod:`rewright.lifting.layers.induction`). What reads a stretch that is left out reads the second one instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.lifting.layers.induction import Contraction, Layered, Period, contraction
from rewright.lifting.layers.stream import walk

_Place = tuple[int, int]
"""A program and a position there."""


@dataclass(frozen=True)
class Shortened:
    """A sequential program and those of the ranks with three layers each; inputs and outputs keep their names."""

    sequential: Graph
    ranks: tuple[Graph, ...]
    layers: int
    """How many there were."""
    others: tuple[Graph, ...] = ()
    """Further programs over the same inputs."""


def find_layers(sequential: Graph, ranks: Sequence[Graph]) -> tuple[Layered, ...]:
    """Both programs as streams of equal layers; none where layers do not repeat. Raises CollectiveMismatch."""
    one = layered_like(sequential)
    if one is None:
        return ()
    together = walk(ranks, alone=False).shared_first()
    other = contraction(together.entries, together.found, ranks, one.contraction)
    return () if other is None else (one, Layered(ranks, together.entries, other))


def layered_like(graph: Graph, other: Contraction | None = None) -> Layered | None:
    """A program as a stream of equal layers, those of another one over the same inputs; None where it has none."""
    alone = walk([graph], alone=True).shared_first()
    made = contraction(alone.entries, alone.found, [graph], other)
    return None if made is None else Layered([graph], alone.entries, made)


def shorten_programs(sequential: Layered, ranks: Layered, *others: Layered) -> Shortened:
    """Both programs with three layers, and other ones over the same inputs."""
    left, right, *more = map(_Shorter, (sequential, ranks, *others))
    names = set[str]().union(*(program.names() for program in (left, right, *more)))
    rest = tuple(program.graphs(names)[0] for program in more)
    return Shortened(left.graphs(names)[0], right.graphs(names), sequential.contraction.periods[0].count, rest)


class _Shorter:
    """What stays of the programs of one stream."""

    def __init__(self, whole: Layered) -> None:
        self._entries, self._graphs, self._periods = whole.entries, whole.graphs, whole.contraction.periods
        self._swapped = whole.contraction.swapped
        graphs, entries = self._graphs, self._entries
        self._labels = [{position: name for name, position in graph.inputs.items()} for graph in graphs]
        stays = ~entries.inputs
        for period in self._periods:
            stays[period.stretch(2) : period.stretch(-1)] = False
        self._read = {entry: self._operands(entry) for entry in np.flatnonzero(stays).tolist()}
        """By entry that stays, and is no input, what it reads."""

    def names(self) -> set[str]:
        """The inputs that something reads which stays, or that are outputs."""
        outputs = [(rank, p) for rank, graph in enumerate(self._graphs) for p in graph.outputs.values()]
        places = [*outputs, *(place for read in self._read.values() for place in read)]
        return {self._labels[rank][p] for rank, p in places if p in self._labels[rank]}

    def graphs(self, names: Collection[str]) -> tuple[Graph, ...]:
        """The programs, with the inputs of these names."""
        nodes: list[list[Node]] = [[] for _ in self._graphs]
        moved: list[dict[int, int]] = [{} for _ in self._graphs]
        for rank, graph in enumerate(self._graphs):
            for name, position in graph.inputs.items():
                if name in names:
                    moved[rank][position] = len(nodes[rank])
                    nodes[rank].append(graph.nodes[position])
        for entry, read in self._read.items():
            rank, position = self._entries.places[entry]
            moved[rank][position] = len(nodes[rank])
            node = self._graphs[rank].nodes[position]
            nodes[rank].append(replace(node, operands=tuple(moved[r][p] for r, p in read)))
        return tuple(map(_with_nodes, self._graphs, nodes, moved))

    def _operands(self, entry: int) -> list[_Place]:
        entries = self._entries
        rank, position = entries.places[entry]
        if isinstance(self._graphs[rank].nodes[position].op, ops.Recv):
            return []
        own = self._stretch(entry)
        return [
            self._instead(other, own) for other in entries.operands[entries.first[entry] : entries.first[entry + 1]]
        ]

    def _instead(self, entry: int, reader: tuple[Period, int] | None) -> _Place:
        """What is read in the place of an entry by an entry of a stretch."""
        rank, position = self._entries.places[entry]
        if self._entries.inputs[entry]:
            name = self._labels[rank][position]
            return rank, self._graphs[rank].inputs[self._swapped.get(name, name)]
        read = self._stretch(entry)
        if reader is None or read is None:
            return rank, position
        (own, number), (period, other) = reader, read
        is_turned = own.backward is not period.backward
        before = (own.count - 1 - number if is_turned else number) - other
        kept = _among_three(own, number)
        target = (2 - kept if is_turned else kept) - before
        return self._entries.places[entry + period.stretch((0, 1, -1)[target]) - period.stretch(other)]

    def _stretch(self, entry: int) -> tuple[Period, int] | None:
        """The period and the number of the stretch that an entry is in."""
        for period in self._periods:
            if period.start <= entry < period.stop:
                return period, (entry - period.start) // period.length
        return None


def _among_three(period: Period, number: int) -> int:
    """The place of a stretch that stays among those that stay."""
    return 2 if number == period.count - 1 else number


def _with_nodes(graph: Graph, nodes: Sequence[Node], moved: Mapping[int, int]) -> Graph:
    inputs, outputs = (
        {name: moved[position] for name, position in named.items() if position in moved}
        for named in (graph.inputs, graph.outputs)
    )
    return replace(graph, nodes=tuple(nodes), inputs=inputs, outputs=outputs)
