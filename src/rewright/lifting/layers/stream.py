"""The nodes of one or many programs as one stream, and the stretches of it that repeat one another.

A stretch that repeats is found by its operators alone; whether it may be lifted like the first one is decided
by what lifting the first one used (see ``trace``).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rewright import ops
from rewright.analysis.meetings import LocalNode, Meeting, Schedule, match_collectives
from rewright.ir.graph import Graph, Node

Integers = npt.NDArray[np.int64]

_WINDOW = 12
"""Operators that must repeat before a distance between stretches is tried."""
_MOST_DISTANCES = 40
_NOTHING = -1


@dataclass(frozen=True)
class Stream:
    """Every node of every program once, operands before the nodes that read them.

    A meeting is one entry for each of its members, one behind the other.
    """

    steps: tuple[LocalNode | Meeting | None, ...]
    """The step that an entry starts; None for the members of a meeting but the first."""
    kinds: Integers
    """Equal for entries of equal operators on equal types in the same program."""
    places: tuple[tuple[int, int], ...]
    """For every entry its program and its position there."""
    operands: Integers
    """The entries that entries read, one behind the other; -1 for what is read from no entry."""
    first: Integers
    """For every entry where its operands start."""
    last_use: Integers
    """For every entry the last one that reads it; beyond the end for an output."""
    inputs: npt.NDArray[np.bool_]
    """Which entries are inputs of their program."""

    def __len__(self) -> int:
        return len(self.steps)

    def reorder(self, order: Integers) -> Stream:
        """The same entries in another order, in which operands still go before the nodes that read them."""
        place = np.full(len(self) + 1, _NOTHING, np.int64)  # the last one for what is read from no entry
        place[order] = np.arange(len(self))
        counts = np.diff(self.first)[order]
        first: Integers = np.append(0, np.cumsum(counts))
        starts = np.repeat(self.first[:-1][order] - first[:-1], counts)
        operands = place[self.operands[starts + np.arange(len(starts))]]
        moved: list[int] = order.tolist()
        return Stream(
            steps=tuple(self.steps[entry] for entry in moved),
            kinds=self.kinds[order],
            places=tuple(self.places[entry] for entry in moved),
            operands=operands,
            first=first,
            last_use=np.where(self.last_use[order] == len(self), len(self), _last_readers(operands, first)),
            inputs=self.inputs[order],
        )


def stream(graphs: Sequence[Graph], schedule: Schedule) -> Stream:
    """The nodes of the programs in the order of a schedule."""
    steps: list[LocalNode | Meeting | None] = []
    names: dict[object, int] = {}
    kinds: list[int] = []
    inputs: list[bool] = []
    places: list[tuple[int, int]] = []
    where = [np.full(len(graph.nodes), _NOTHING, np.int64) for graph in graphs]
    operands: list[int] = []
    first: list[int] = []
    for step in schedule:
        for head, sources, (rank, position), kind in _entries(graphs, step):
            where[rank][position] = len(steps)
            steps.append(head)
            places.append((rank, position))
            first.append(len(operands))
            operands.extend(int(where[r][p]) for r, p in sources)
            kinds.append(names.setdefault(kind, len(names)))
            inputs.append(type(graphs[rank].nodes[position].op) is ops.Input)
    first.append(len(operands))
    flat, starts = np.array(operands, np.int64), np.array(first, np.int64)
    return Stream(
        steps=tuple(steps),
        kinds=np.array(kinds, np.int64),
        places=tuple(places),
        operands=flat,
        first=starts,
        last_use=_last_use(graphs, where, flat, starts),
        inputs=np.array(inputs, np.bool_),
    )


def lockstep(steps: Schedule, programs: int) -> Schedule:
    """The same steps by the time at which they could run, if each took as long as any other.

    Programs that wait for each other go on together: what ends a layer is together for all of them, although each
    could run ahead to its next collective.
    """
    clock = [0] * programs
    times: list[tuple[int, int]] = []
    for step in steps:
        if isinstance(step, LocalNode):
            clock[step.rank] += 1
            times.append((clock[step.rank], step.rank))
            continue
        now = max([clock[rank] for rank, _ in step.nodes]) + 1
        for rank, _ in step.nodes:
            clock[rank] = now
        times.append((now, step.nodes[0][0]))
    return [steps[k] for k in sorted(range(len(steps)), key=times.__getitem__)]


_Place = tuple[int, int]
_Entry = tuple[LocalNode | Meeting | None, list[_Place], _Place, object]


def _entries(graphs: Sequence[Graph], step: LocalNode | Meeting) -> list[_Entry]:
    """The entries of a step: what starts there, the places it reads, its own place, and its kind."""
    if isinstance(step, LocalNode):
        node = graphs[step.rank].nodes[step.position]
        kind = _kind(graphs[step.rank], node, step.rank)
        return [(step, [(step.rank, p) for p in node.operands], (step.rank, step.position), kind)]
    last_rank, last_position = step.nodes[-1]
    if type(graphs[last_rank].nodes[last_position].op) is ops.Recv:
        node = graphs[last_rank].nodes[last_position]
        return [(step, [step.nodes[0]], step.nodes[-1], _kind(graphs[last_rank], node, last_rank))]
    found: list[_Entry] = []
    for number, (rank, position) in enumerate(step.nodes):
        node = graphs[rank].nodes[position]
        kind = (_kind(graphs[rank], node, rank), number, len(step.nodes))
        found.append((step if not number else None, [(rank, p) for p in node.operands], (rank, position), kind))
    return found


def _kind(graph: Graph, node: Node, rank: int) -> object:
    # Exact types: operators are abstract classes, for which isinstance is slow.
    if type(node.op) is ops.Input:
        return rank, node.type
    return rank, node.op, node.type, tuple(graph.nodes[p].type.dtype for p in node.operands)


def _last_use(graphs: Sequence[Graph], where: Sequence[Integers], flat: Integers, starts: Integers) -> Integers:
    last = _last_readers(flat, starts)
    for graph, places in zip(graphs, where, strict=True):
        for position in graph.outputs.values():
            last[places[position]] = len(last)
    return last


def _last_readers(flat: Integers, starts: Integers) -> Integers:
    count = len(starts) - 1
    last = np.full(count, _NOTHING, np.int64)
    readers = np.repeat(np.arange(count), np.diff(starts))
    read = flat >= 0
    np.maximum.at(last, flat[read], readers[read])
    return last


@dataclass(frozen=True, slots=True)
class Repeat:
    """``count`` stretches of ``length`` entries, one behind the other, with the same operators."""

    start: int
    length: int
    count: int

    @property
    def stop(self) -> int:
        """The entry behind the last stretch."""
        return self.start + self.length * self.count


def repeats(entries: Stream) -> list[Repeat]:
    """Stretches that follow one another with equal operators, those that save most chosen first, in order."""
    found: list[Repeat] = []
    for distance in _distances(entries.kinds):
        found += _at_distance(entries, distance)
    found.sort(key=lambda r: (-(r.count - 1) * r.length, r.length))
    chosen: list[Repeat] = []
    for repeat in found:
        if all(repeat.stop <= other.start or other.stop <= repeat.start for other in chosen):
            chosen.append(repeat)
    return sorted(chosen, key=lambda r: r.start)


@dataclass(frozen=True)
class Walk:
    """Programs as one stream, in the order of a schedule, and what repeats in it."""

    graphs: Sequence[Graph]
    entries: Stream
    found: Sequence[Repeat]

    def is_of(self, graphs: Sequence[Graph]) -> bool:
        """Whether it is the walk of these very programs."""
        return len(graphs) == len(self.graphs) and all(map(operator.is_, graphs, self.graphs))

    def shared_first(self) -> Walk:
        """The walk that begins with what all stretches read."""
        if not self.found:
            return self
        entries = shared_first(self.entries, self.found)
        return self if entries is self.entries else Walk(self.graphs, entries, repeats(entries))


def walk(graphs: Sequence[Graph], *, alone: bool) -> Walk:
    """Programs as one stream, and what repeats in it; raises CollectiveMismatch where collectives do not meet.

    A program ``alone`` is the sequential one, which waits for nobody.
    """
    entries = stream(graphs, lockstep(schedule_of(graphs, alone=alone), len(graphs)))
    return Walk(graphs, entries, repeats(entries))


def schedule_of(graphs: Sequence[Graph], *, alone: bool) -> Schedule:
    """The order of the nodes of a program alone, or of ranks that meet."""
    return [LocalNode(0, position) for position in range(len(graphs[0].nodes))] if alone else match_collectives(graphs)


class Walks:
    """The walks of programs, each found once however often the programs are lifted."""

    def __init__(self) -> None:
        self._found: list[tuple[bool, Walk]] = []

    def of(self, graphs: Sequence[Graph], *, alone: bool) -> Walk:
        """The walk of some programs; raises CollectiveMismatch where collectives do not meet."""
        known = next((known for kind, known in self._found if kind is alone and known.is_of(graphs)), None)
        if known is None:
            known = walk(graphs, alone=alone)
            self._found.append((alone, known))
        return known


def shared_first(entries: Stream, found: Sequence[Repeat]) -> Stream:
    """The stream begun by what most stretches of a repeat read, and by what that is made of.

    Equal nodes are one node: the first layer holds the tables and constants that all layers read, and so looks
    unlike the others until they are moved. What needs a repeat's values, or a meeting, stays where it is.
    """
    owner = np.zeros(len(entries), np.bool_)
    shared: set[int] = set()
    readers = np.repeat(np.arange(len(entries)), np.diff(entries.first))
    for repeat in found:
        owner[repeat.start : repeat.stop] = True
    for repeat in found:
        slots = slice(entries.first[repeat.start], entries.first[repeat.stop])
        read, stretches = entries.operands[slots], (readers[slots] - repeat.start) // repeat.length
        outside = (read >= 0) & ~owner[read] & ~entries.inputs[read]
        pairs = np.unique(np.stack([read[outside], stretches[outside]]), axis=1)
        values, counts = np.unique(pairs[0], return_counts=True)
        shared.update(values[2 * counts > repeat.count].tolist())
    early = _close(entries, owner, sorted(shared))
    if not early:
        return entries
    moved = np.zeros(len(entries), np.bool_)
    moved[sorted(early)] = True
    return entries.reorder(np.argsort(~moved, kind="stable"))


def _close(entries: Stream, owner: npt.NDArray[np.bool_], wanted: Sequence[int]) -> set[int]:
    """Those of some entries that need no repeat and no meeting, with all that they need."""
    free: dict[int, bool] = {}
    pending = list(reversed(wanted))
    while pending:
        entry = pending[-1]
        read = _read(entries, entry)
        if (
            owner[entry]
            or not isinstance(entries.steps[entry], LocalNode)
            or not all(free.get(other, True) for other in read)
        ):
            free[entry] = False
        elif all(other in free for other in read):
            free[entry] = True
        else:
            pending += [other for other in read if other not in free]
            continue
        pending.pop()
    found: set[int] = set()
    pending = [entry for entry in wanted if free[entry]]
    while pending:
        if (entry := pending.pop()) not in found:
            found.add(entry)
            pending += _read(entries, entry)
    return found


def _read(entries: Stream, entry: int) -> list[int]:
    return entries.operands[entries.first[entry] : entries.first[entry + 1]].tolist()


def _distances(kinds: Integers) -> list[int]:
    """The most frequent distances between a run of operators and its next occurrence."""
    if len(kinds) < 2 * _WINDOW:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(kinds, _WINDOW)
    factors = np.array([pow(1_000_003, k, 1 << 61) for k in range(_WINDOW)], np.uint64)
    hashes = (windows.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    same = hashes[order][1:] == hashes[order][:-1]
    gaps = np.diff(order)[same]
    values, counts = np.unique(gaps[gaps >= _WINDOW], return_counts=True)
    best = np.argsort(-counts * values, kind="stable")[:_MOST_DISTANCES]
    return [int(values[k]) for k in best]


def _at_distance(entries: Stream, distance: int) -> list[Repeat]:
    equal = entries.kinds[:-distance] == entries.kinds[distance:]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.view(np.int8), [0]))))
    found: list[Repeat] = []
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        start = _align(entries, start, stop, distance)
        count = (stop - start) // distance + 1
        if start + distance <= stop:
            found.append(Repeat(start, distance, count))
    return found


def _align(entries: Stream, start: int, stop: int, distance: int) -> int:
    """The first entry from which the next stretch reads as the first one does, and which cuts no meeting."""
    while start + distance <= stop:
        odd = mismatches(entries, start, start + distance, distance)
        if not len(odd):
            break
        start += int(odd[-1]) + 1
    while start < len(entries) and entries.steps[start] is None:
        start += 1
    return start


def mismatches(entries: Stream, source: int, target: int, length: int) -> Integers:
    """The offsets at which one stretch reads from inside of itself and the other does not, or elsewhere."""
    first = entries.first
    mine = entries.operands[first[source] : first[source + length]] - source
    other = entries.operands[first[target] : first[target + length]] - target
    if len(mine) != len(other):
        return np.arange(length)
    different = (mine != other) & ((mine >= 0) | (other >= 0))
    readers = np.repeat(np.arange(length), np.diff(first[source : source + length + 1]))
    return readers[different]
