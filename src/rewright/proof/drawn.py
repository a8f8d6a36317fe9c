"""Random numbers: whether those of the ranks can be the sequential program's, place by place.

A program with random numbers computes a distribution. Ranks compute the same one where their numbers are the sequential
program's, each at its place, *and* are distributed alike: where ranks hold the same part they draw the same numbers,
and different parts are drawn independently. Which draws give the same numbers the captures say (``ir.draws``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rewright.ir.draws import START, Draw, beginnings, draws
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ir.unknowns import DRAWN
from rewright.proof.microbatches import AND

_Window = tuple[object, ...]


@dataclass(frozen=True)
class Held:
    """A draw of a rank as part of a tensor that the sequential program draws."""

    rank: int
    name: str
    window: _Window
    draw: Draw

    def __str__(self) -> str:
        who = f"rank {self.rank}" if self.rank >= 0 else "the sequential program"
        return f"{who} at {self.draw.place}"


@dataclass(frozen=True)
class Fault:
    """Two draws that cannot be what the sequential program draws."""

    kind: Literal["differ", "agree", "overlap", "unplaced"]
    """They give other numbers for one part, the same numbers for two, or it is not known whether they are apart."""
    one: Held
    other: Held

    def __str__(self) -> str:
        return f"{self.one} and {self.other} {_FAULTS[self.kind]}"


_FAULTS = {
    "differ": "draw different random numbers for the same elements",
    "agree": "draw the same random numbers for elements that are independent in the sequential program",
    "overlap": "draw from one state of a generator in different ways, so that their numbers may be related",
    "unplaced": "draw what is not placed as shards and copies, so that it is not known which numbers are independent",
}


@dataclass(frozen=True)
class Judgement:
    """What is wrong with random numbers, and what has to hold of the states of generators."""

    faults: tuple[Fault, ...]
    conditions: tuple[str, ...]


def judge_draws(sequential: Graph, program: RankProgram, placements: Mapping[str, Placement] | None) -> Judgement:
    """Whether the draws of ranks can be those of the sequential program under placements of its random tensors.

    Without placements there is one rank, which draws all of each.
    """
    own = [Held(-1, name, (part,), draw) for name, (part, _), draw in _drawn(sequential)]
    of_ranks = [
        Held(rank, name, (None if placements is None else _window(placements.get(name), rank), *part), draw)
        for rank, graph in enumerate(program.graphs)
        for name, part, draw in _drawn(graph)
    ]
    alone = _Streams(own, (sequential,), (-1,)).faults()
    loose = [Fault("unplaced", one, one) for one in of_ranks if placements is not None and one.window[0] is None]
    streams = _Streams(of_ranks, program.graphs, range(len(program.graphs)))
    return Judgement((*loose, *alone, *streams.faults()), streams.conditions(program.mesh))


def _window(placement: Placement | None, rank: int) -> object:
    """The part of a tensor that a rank holds; None where it is none of those that ranks have the same or apart."""
    return None if placement is None or placement.partial else placement.runs[rank]


def _drawn(graph: Graph) -> Iterator[tuple[str, tuple[int, int], Draw]]:
    """The draws of a graph as parts of inputs, by the names that both programs have: which part, and of how many."""
    known = {draw.name: draw for draw in draws(graph)}
    for name in graph.inputs:
        parts = graph.metadata.get(DRAWN + name, name).split(AND)
        for number, part in enumerate(parts):
            if part in known:
                yield name, (number, len(parts)), known[part]


@dataclass(frozen=True)
class _Streams:
    """The draws of several programs by the state of a generator that they come from."""

    held: list[Held]
    graphs: tuple[Graph, ...]
    ranks: Sequence[int]

    @cached_property
    def _roots(self) -> dict[str, str]:
        """By the state that a draw leaves behind the one that its stream began in."""
        return beginnings(draw for graph in self.graphs for draw in draws(graph))

    def _begun(self, draw: Draw) -> str:
        return self._roots.get(draw.before, draw.before)

    @cached_property
    def _classes(self) -> dict[int, int]:
        """By rank the first one that begins in the same state, where the program sets no seed."""
        first: dict[tuple[str, _Window], Held] = {}
        held = [one for one in self.held if self._begun(one.draw) == START]
        found = {one.rank: one.rank for one in held}
        for one in held:
            known = first.setdefault((one.name, one.window), one)
            low, high = sorted((found[known.rank], found[one.rank]))
            if low < high and known.draw.value == one.draw.value:
                found = {rank: low if begins == high else begins for rank, begins in found.items()}
        return found

    def faults(self, *, begin_alike: bool = False) -> list[Fault]:
        """The draws that do not fit, each with an earlier one.

        With ``begin_alike`` all ranks begin in one state, else in different ones where they need not be the same.
        """
        classes = dict.fromkeys(self._classes, 0) if begin_alike else self._classes

        def stream(rank: int, draw: Draw) -> tuple[str, int]:
            begun = self._begun(draw)
            return begun, classes.get(rank, rank) if begun == START else -1

        found: list[Fault] = []
        parts: dict[tuple[str, _Window], Held] = {}
        counts: dict[tuple[str, object], Held] = {}
        numbers: dict[tuple[str, int, str], Held] = {}
        for held in self.held:
            own, one = stream(held.rank, held.draw), parts.setdefault((held.name, held.window), held)
            if (stream(one.rank, one.draw), one.draw.value) != (own, held.draw.value):
                found.append(Fault("differ", one, held))
                continue
            one = counts.setdefault((held.name, held.window[0]), held)
            if one.window[2:] != held.window[2:]:  # the same elements in other parts
                found.append(Fault("overlap", one, held))
                continue
            one = numbers.setdefault((*own, held.draw.value), held)
            if (one.name, one.window) != (held.name, held.window):
                found.append(Fault("agree", one, held))
        states: dict[tuple[str, int, str], Held] = {}
        pairs = zip(self.ranks, self.graphs, strict=True)
        for held in (Held(rank, "", (), draw) for rank, graph in pairs for draw in draws(graph)):
            one = states.setdefault((*stream(held.rank, held.draw), held.draw.before), held)
            if one.draw.after != held.draw.after:
                found.append(Fault("overlap", one, held))
        return found

    def conditions(self, mesh: Mesh) -> tuple[str, ...]:
        """What has to hold of the states that generators begin in, in one sentence."""
        classes = self._classes
        free = not self.faults(begin_alike=True)
        if len(classes) < 2 or (free and len(set(classes.values())) == len(classes)):
            return ()
        alike = [name for name, _ in mesh.axes if all(classes.get(r) == c for r, c in _along(mesh, name, classes))]
        groups = [[rank for rank in classes if classes[rank] == first] for first in dict.fromkeys(classes.values())]
        if len(groups) == 1:
            how = "in the same state on all ranks"
        elif free:
            shared = [f"{', '.join(map(str, group))}" for group in groups if len(group) > 1]
            how = f"in the same state on ranks {'; '.join(shared)}"
        elif len(groups) == len(classes):
            how = "in different states on all ranks"
        elif all(sorted(mesh.group(group[0], alike)) == group for group in groups):
            others = [name for name, size in mesh.axes if name not in alike and size > 1]
            how = f"in the same state along {' and '.join(alike)}, and in different ones along {' and '.join(others)}"
        else:
            how = f"in the same state within each of {', '.join(str(group) for group in groups)}, and in different ones"
        also = "; PyTorch begins every process in another one" if "same state" in how else ""
        return (f"generators whose seed the program does not set begin {how}{also}",)


def _along(mesh: Mesh, name: str, classes: Mapping[int, int]) -> list[tuple[int, int]]:
    """Ranks beside others along a mesh axis, with the class of these."""
    return [(rank, begins) for other, begins in classes.items() for rank in mesh.group(other, (name,))]
