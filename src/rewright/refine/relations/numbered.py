"""Outputs without names, where the two sides return different numbers of tensors.

A captured forward pass returns its results and whatever its own backward pass needs; the ranks' one needs other
tensors than the sequential one. Every tensor that either side returns must then be one of the other side's (an output,
an input, or a tensor that it computes), under some placement. Only indices and masks that are made of integer inputs
alone may have no counterpart: a rank's look-up is into its own part of a table, and what is read with it is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.types import TensorType
from rewright.ir.unknowns import NUMBERED
from rewright.lifting.programs import UNKNOWN, Lifted, Lifter
from rewright.lifting.terms.value import Value
from rewright.refine.verdict import Pairing

_LARGEST_SEARCH = 20_000


def are_numbered(sequential: Graph, graphs: Sequence[Graph]) -> bool:
    """Whether outputs have no names and their numbers differ, so that places do not say which belong together."""
    if not all(NUMBERED in graph.metadata for graph in (sequential, *graphs)):
        return False
    return any(list(graph.outputs) != list(sequential.outputs) for graph in graphs)


Infer = Callable[[Value, Sequence[Value]], Placement | None]
"""How ranks hold a value, if they do."""


def pair(lifter: Lifter, sequential: Lifted, ranks: Sequence[Lifted], infer: Infer) -> Pairing:
    """Relate the outputs of both sides by their values."""
    return _Pairing(lifter, sequential, ranks, infer).run()


class _Pairing:
    def __init__(self, lifter: Lifter, sequential: Lifted, ranks: Sequence[Lifted], infer: Infer) -> None:
        self.lifter, self.sequential, self.ranks, self.infer = lifter, sequential, ranks, infer
        self.searched = 0
        self._found: dict[tuple[int, tuple[int, ...]], Placement | None] = {}

    def run(self) -> Pairing:
        found, graph = Pairing(), self.sequential.graph
        names = [name for name in self.ranks[0].graph.outputs if all(name in r.graph.outputs for r in self.ranks)]
        claimed: set[str] = set()
        start = 0
        for name, position in graph.outputs.items():
            for place in [*range(start, len(names)), *range(start)]:
                placement = self._held(position, [r.graph.outputs[names[place]] for r in self.ranks])
                if placement is not None:
                    found.related[name] = names[place], placement
                    claimed.add(names[place])
                    start = place
                    break
            else:
                self._without_output(found, name, position)
        for name in names:
            if name not in claimed and not self._is_computed(name):
                own = [rank.graph.outputs[name] for rank in self.ranks]
                alone = all(is_index(r.graph, p) for r, p in zip(self.ranks, own, strict=True))
                (found.rank_alone if alone else found.unclaimed).append(name)
        return found

    def _without_output(self, found: Pairing, name: str, position: int) -> None:
        """A sequential output that no output of the ranks is: perhaps an input of theirs, or an index."""
        for label, place in self.sequential.graph.inputs.items():
            if place == position and all(label in rank.graph.inputs for rank in self.ranks):
                placement = self._held(position, [rank.graph.inputs[label] for rank in self.ranks])
                if placement is not None:
                    found.related[name] = label, placement
                    return
        if is_index(self.sequential.graph, position) and self._from_whole_inputs(position):
            found.alone.append(name)
        else:
            found.failed.append(name)

    def _from_whole_inputs(self, position: int) -> bool:
        """Whether every rank holds all of the inputs that a tensor is made of."""
        graph = self.sequential.graph
        needed = graph.ancestors([position])
        places = {place: label for label, place in graph.inputs.items() if place in needed}
        return all(
            label in rank.graph.inputs and rank.values[rank.graph.inputs[label]] == self.sequential.values[place]
            for place, label in places.items()
            for rank in self.ranks
        )

    def _is_computed(self, name: str) -> bool:
        """Whether an output of the ranks is some tensor that the sequential program computes or is given."""
        positions = [rank.graph.outputs[name] for rank in self.ranks]
        return any(self._held(p, positions) is not None for p in range(len(self.sequential.graph.nodes)))

    def _held(self, position: int, own: Sequence[int]) -> Placement | None:
        """How the ranks' tensors at some positions hold the sequential one at another; None where they do not."""
        kinds = [rank.graph.nodes[p].type for rank, p in zip(self.ranks, own, strict=True)]
        if not _may_fit(self.sequential.graph.nodes[position].type, kinds):
            return None
        key = self.sequential.values[position], tuple(r.values[p] for r, p in zip(self.ranks, own, strict=True))
        if UNKNOWN in (key[0], *key[1]):
            return None
        if key not in self._found:
            self.searched += 1
            if self.searched > _LARGEST_SEARCH:
                return None
            values: list[Value] = [self.lifter.values[v] for v in key[1]]
            placement = self.infer(self.lifter.values[key[0]], values)
            self._found[key] = None if placement is None or placement.partial else placement
        return self._found[key]


def _may_fit(kind: TensorType, local: Sequence[TensorType]) -> bool:
    """Whether local shapes can be parts of a whole."""
    if any(own.rank != kind.rank or own.dtype is not kind.dtype for own in local):
        return False
    return all(
        not (isinstance(size, int) and isinstance(part, int)) or part <= size
        for own in local
        for size, part in zip(kind.shape, own.shape, strict=True)
    )


def is_index(graph: Graph, position: int) -> bool:
    """Whether a tensor is made of integers and booleans alone, from its inputs on."""
    return not any(graph.nodes[at].type.dtype.is_float for at in graph.ancestors([position]))


def align_names(sequential: Graph, program: RankProgram, pairing: Pairing) -> tuple[Graph, RankProgram]:
    """Both programs with one name for what belongs together, for those who explain what does not.

    An output without a counterpart goes with the next unclaimed output of the ranks that may be a part of it.
    """
    outputs = {name: position for name, position in sequential.outputs.items() if name not in pairing.alone}
    rest = list(pairing.unclaimed)
    table = {name: label for name, (label, _) in pairing.related.items()}
    for name in pairing.failed:
        kind = sequential.nodes[outputs[name]].type
        fitting = [label for label in rest if _may_fit(kind, [g.nodes[g.outputs[label]].type for g in program.graphs])]
        if fitting:
            table[name] = fitting[0]
            rest = rest[rest.index(fitting[0]) + 1 :]
    graphs = tuple(
        replace(graph, outputs={name: (graph.outputs | graph.inputs)[label] for name, label in table.items()})
        for graph in map(_name, program.graphs)
    )
    return replace(_name(sequential), outputs=outputs), replace(program, graphs=graphs)


def _name(graph: Graph) -> Graph:
    return replace(graph, metadata={key: text for key, text in graph.metadata.items() if key != NUMBERED})


def unpaired_notes(pairing: Pairing) -> Iterator[str]:
    """What is not compared, in sentences."""
    if pairing.alone:
        yield (
            f"{', '.join(pairing.alone)} of the sequential program are indices or masks made of integer inputs alone, "
            "which every rank holds; the ranks return a form of their own"
        )
    if pairing.rank_alone:
        yield (
            f"{', '.join(pairing.rank_alone)} of the ranks are indices or masks made of integer inputs alone, "
            "which the sequential program does not return"
        )
