"""Programs whose layers repeat as programs of three layers: what is shown of the middle one holds of all between.

A *period* is a run of stretches that repeat with the same wiring: every stretch reads itself, what lies outside of all
stretches, inputs of its own, the stretch before it at the same offsets (the *crossing* entries), and the stretch of its
own layer in another period. Of many stretches the first, the second and the last are lifted; the second stands
for all between. That is right where

- the sequential values that cross from one stretch to the next have names that hide what they are made of, so that
  nothing that is concluded in one layer can depend on another one,
- the ranks' crossing values after the first and after the second stretch are the same expressions over those names,
- no other layer's inputs are read, and the inputs that stand for each other are placed alike.

Then the steps that lift the second stretch lift every one between, with names and inputs exchanged (induction over the
layers). Whatever does not fit is no contraction, and the programs are lifted as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from rewright import ops
from rewright.ir.graph import Graph
from rewright.lifting.layers.stream import Integers, Repeat, Stream

_FEWEST = 6
"""Stretches of a period; with fewer of them there is nothing to leave out."""
_MOST_ROTATIONS = 4
"""Places at which a stretch may be said to begin that are tried, those with the fewest crossing entries
and then with the most stretches."""


class NotContracted(Exception):
    """What was left out is not shown by what was lifted."""


@dataclass(frozen=True)
class Period:
    """``count`` stretches of ``length`` entries from ``start``, of which the second stands for those between."""

    start: int
    length: int
    count: int
    backward: bool
    """Whether its stretches are those of the first period in reverse order, as those of a backward pass are."""
    crossing: tuple[int, ...]
    """The offsets of a stretch that the next one reads."""
    before: tuple[int, ...]
    """The entries that the first stretch reads instead."""

    @property
    def stop(self) -> int:
        """The entry behind the last stretch."""
        return self.start + self.length * self.count

    def stretch(self, number: int) -> int:
        """The first entry of a stretch, counted from the end where it is negative."""
        return self.start + self.length * (number % self.count)

    def crossings(self, number: int) -> list[int]:
        """The entries of a stretch that the next one reads; for -1 those that the first one reads."""
        return list(self.before) if number < 0 else [self.stretch(number) + offset for offset in self.crossing]


@dataclass(frozen=True)
class Contraction:
    """The periods of a stream, and what stands for what."""

    periods: tuple[Period, ...]
    inputs: Mapping[str, str]
    """For the inputs of layers that are left out, those of the layer that stands for them."""
    outputs: Mapping[str, str]
    """The same for outputs."""
    own: frozenset[str]
    """The inputs that only one layer reads, of any layer."""
    swapped: Mapping[str, str]
    """The inputs whose place others take while the programs are lifted: those of the last layer that is left out."""

    @property
    def left_out(self) -> int:
        """How many entries are not lifted."""
        return sum((period.count - 3) * period.length for period in self.periods)

    def inputs_read(self, entries: Stream) -> Integers:
        """The input entries that something reads which is lifted, or which are outputs."""
        lifted = np.ones(len(entries), np.bool_)
        for period in self.periods:
            lifted[period.stretch(2) : period.stretch(-1)] = False
        read = entries.operands[np.repeat(lifted, np.diff(entries.first)) & (entries.operands >= 0)]
        needed = entries.last_use == len(entries)
        needed[read] = True
        return np.flatnonzero(needed & entries.inputs)


@dataclass(frozen=True)
class Layered:
    """Programs whose layers repeat, as a stream, and its contraction."""

    graphs: Sequence[Graph]
    entries: Stream
    contraction: Contraction


def contraction(
    entries: Stream, found: Sequence[Repeat], graphs: Sequence[Graph], like: Contraction | None = None
) -> Contraction | None:
    """The contraction of a stream, or None where its layers do not repeat in the way that it takes.

    ``like`` is that of another stream over the same inputs, which is to leave out the same layers.
    """
    most = max((repeat.count for repeat in found), default=0)
    repeats = [repeat for repeat in found if most - 1 <= repeat.count >= _FEWEST]
    if not repeats:
        return None
    labels = {entry: _label(graphs, *entries.places[entry]) for entry in np.flatnonzero(entries.inputs).tolist()}
    for chosen in product(*(_rotations(entries, repeat) for repeat in repeats)):
        for periods in _even(chosen):
            made = _Wiring(entries, graphs, labels, periods).contraction()
            if made is not None and (like is None or (made.inputs, made.outputs) == (like.inputs, like.outputs)):
                return made
    return None


def _label(graphs: Sequence[Graph], program: int, position: int) -> str:
    op = graphs[program].nodes[position].op
    assert isinstance(op, ops.Input)
    return op.label


def _even(repeats: Sequence[Repeat]) -> Iterator[tuple[Repeat, ...]]:
    """The repeats with equal numbers of stretches: of a longer one the first or the last is left to itself."""
    fewest = min(repeat.count for repeat in repeats)
    choices = [
        [Repeat(r.start + r.length * first, r.length, fewest) for first in range(r.count - fewest + 1)] for r in repeats
    ]
    yield from product(*choices)


def _rows(entries: Stream, start: int, length: int, count: int) -> Integers:
    """For each stretch what its entries read, in order."""
    first = entries.first
    return entries.operands[first[start] : first[start + length * count]].reshape(count, -1)


def _rotations(entries: Stream, repeat: Repeat) -> list[Repeat]:
    """The repeat begun at those of its entries where the fewest cross from one stretch to the next."""
    start, length, count = repeat.start, repeat.length, repeat.count
    slots = entries.first[start : start + length + 1] - entries.first[start]
    readers = np.repeat(np.arange(length), np.diff(slots))
    if entries.first[start + length * count] - entries.first[start] != slots[-1] * count:
        return []
    offsets = _rows(entries, start, length, count)[1] - (start + length)
    chained = (offsets >= -length) & ~entries.inputs[offsets + start + length]
    readers, offsets = readers[chained], offsets[chained]
    distances, sources = np.where(offsets < 0, 1, 0), offsets % length
    further = _further(entries, repeat)
    found: dict[tuple[int, ...], Repeat] = {}
    for by in range(length):
        if entries.steps[start + by] is None:
            continue
        moved = distances + (sources < by) - (readers < by)
        if moved.size and (moved.min() < 0 or moved.max() > 1):
            continue
        crossing = tuple(np.unique(sources[moved == 1]).tolist())
        found.setdefault(crossing, Repeat(start + by, length, count - (by > further)))
    return [found[crossing] for crossing in sorted(found, key=lambda c: (len(c), -found[c].count, c))][:_MOST_ROTATIONS]


def _further(entries: Stream, repeat: Repeat) -> int:
    """How many of the entries behind a repeat go on as it does."""
    stop, length = repeat.stop, repeat.length
    most = min(length, len(entries) - stop)
    other = np.flatnonzero(entries.kinds[stop : stop + most] != entries.kinds[stop - length : stop - length + most])
    return int(other[0]) if len(other) else most


class _Wiring:
    """What the stretches of some repeats read, and whether all of them read alike."""

    def __init__(
        self, entries: Stream, graphs: Sequence[Graph], labels: Mapping[int, str], repeats: Sequence[Repeat]
    ) -> None:
        self._entries = entries
        self._graphs = graphs
        self._labels = labels
        self._repeats = repeats
        self._count = repeats[0].count
        self._owner = np.full(len(entries) + 1, -1, np.int64)
        for number, repeat in enumerate(repeats):
            self._owner[repeat.start : repeat.stop] = number
        self._owner[:-1][entries.inputs] = -1  # an input belongs to no stretch, wherever it stands
        self._layers: dict[str, int] = {}
        """By name of an input that only one layer reads, which one."""
        self._stands: dict[str, str] = {}
        """By the same name that of the second layer's input which is read in its place."""
        self._shared: set[int] = set()
        """The entries outside of all stretches that are read by every layer."""

    def contraction(self) -> Contraction | None:
        """The contraction, or None where some stretch reads otherwise than the others."""
        if self._count < _FEWEST:
            return None
        periods: list[Period] = []
        for repeat in self._repeats:
            period = self._period(repeat, periods)
            if period is None:
                return None
            periods.append(period)
        outputs = self._outputs(periods)
        if outputs is None or not self._rest_is_apart(periods):
            return None
        last = self._count - 2
        inputs = {name: self._stands[name] for name, layer in self._layers.items() if 1 < layer <= last}
        swapped = {name: stands for name, stands in inputs.items() if self._layers[name] == last}
        return Contraction(tuple(periods), inputs, outputs, frozenset(self._layers), swapped)

    def _period(self, repeat: Repeat, earlier: Sequence[Period]) -> Period | None:
        entries, length = self._entries, repeat.length
        rows = _rows(entries, repeat.start, length, self._count)
        offsets = rows - (repeat.start + length * np.arange(self._count))[:, None]
        inputs = entries.inputs[rows]
        own = inputs.all(axis=0) & ~(rows == rows[0]).all(axis=0)
        inside = (offsets == offsets[0]).all(axis=0) & (offsets[0] >= 0) & ~inputs[0]
        fixed = (rows == rows[0]).all(axis=0) & (self._owner[rows[0]] < 0)
        chained = (offsets[1:] == offsets[1]).all(axis=0) & (offsets[1] >= -length) & (offsets[1] < 0) & ~own
        chained &= self._owner[rows[0]] != self._owner[repeat.start]
        other = np.flatnonzero(~(own | inside | fixed | chained))
        backward = self._across(rows[:, other], earlier)
        before = self._crossing(rows[0, chained], offsets[1, chained] + length)
        if backward is None or before is None:
            return None
        if len(other) == 0 and earlier:
            backward = self._is_reversed(rows[:, own])
        self._shared.update(rows[0, fixed].tolist())
        if not self._own(rows[:, own], backward):
            return None
        return Period(repeat.start, length, self._count, backward, tuple(before), tuple(before.values()))

    @staticmethod
    def _crossing(read: Integers, offsets: Integers) -> dict[int, int] | None:
        """By crossing offset the entry that the first stretch reads instead."""
        before: dict[int, int] = {}
        for entry, offset in sorted(zip(read.tolist(), offsets.tolist(), strict=True), key=lambda item: item[1]):
            if before.setdefault(offset, entry) != entry:
                return None
        return before

    def _across(self, rows: Integers, earlier: Sequence[Period]) -> bool | None:
        """Whether reads of other periods go against their order; None where they go neither way throughout."""
        for backward in (False, True):
            layers = np.arange(self._count)[::-1] if backward else np.arange(self._count)
            fits = np.zeros(rows.shape[1], np.bool_)
            for period in earlier:
                numbers = layers[::-1] if period.backward else layers
                for entering in (False, True):
                    fits |= self._reads(rows, period, numbers, entering)
            if fits.all():
                return backward
        return None

    @staticmethod
    def _reads(rows: Integers, period: Period, numbers: Integers, entering: bool) -> npt.NDArray[np.bool_]:
        """Which columns read one place of the stretches of these numbers, or what enters these stretches."""
        places = rows - (period.start + period.length * (numbers - entering))[:, None]
        ordinary = numbers >= entering
        offsets = places[ordinary]
        fits = (offsets == offsets[0]).all(axis=0) & (offsets[0] >= 0) & (offsets[0] < period.length)
        if not entering:
            return fits
        known = dict(zip(period.crossing, period.before, strict=True))
        first = rows[~ordinary][0]
        entered = [known.get(o) == e for o, e in zip(offsets[0].tolist(), first.tolist(), strict=True)]
        return fits & np.array(entered, np.bool_)

    def _is_reversed(self, rows: Integers) -> bool:
        """Whether the inputs of a period's stretches are known as those of layers in reverse."""
        return any(self._layers.get(self._labels[entry], 0) > 1 for entry in rows[0].tolist())

    def _own(self, rows: Integers, backward: bool) -> bool:
        """Note whose layer's the inputs are; False where one is of two layers, or stands for two."""
        kinds = self._entries.kinds[rows]
        if (kinds != kinds[0]).any():
            return False  # of other types
        ordered = rows[::-1] if backward else rows
        for column in ordered.T.tolist():
            stands = self._labels[column[1]]
            for layer, entry in enumerate(column):
                name = self._labels[entry]
                if self._layers.setdefault(name, layer) != layer or self._stands.setdefault(name, stands) != stands:
                    return False
        return True

    def _outputs(self, periods: Sequence[Period]) -> dict[str, str] | None:
        """For outputs of stretches that are left out, those that stand for them, the same on all ranks."""
        names: list[dict[int, list[str]]] = [defaultdict(list) for _ in self._graphs]
        for program, graph in enumerate(self._graphs):
            for name, position in graph.outputs.items():
                names[program][position].append(name)
        found: list[dict[str, str]] = [{} for _ in self._graphs]
        last_use, places = self._entries.last_use, self._entries.places
        for period in periods:
            read = last_use[period.start : period.stop].reshape(period.count, period.length) == len(self._entries)
            if (read[2:-1] != read[1]).any():
                return None
            for offset in np.flatnonzero(read[1]).tolist():
                program, position = places[period.stretch(1) + offset]
                stands = names[program][position]
                for number in range(2, period.count - 1):
                    here = names[program][places[period.stretch(number) + offset][1]]
                    if len(here) != 1 or len(stands) != 1 or here[0] in found[program]:
                        return None
                    found[program][here[0]] = stands[0]
        return found[0] if all(own == found[0] for own in found) else None

    def _rest_is_apart(self, periods: Sequence[Period]) -> bool:
        """Whether what lies outside reads nothing of the stretches that are left out, nor their inputs."""
        entries = self._entries
        readers = np.repeat(np.arange(len(entries)), np.diff(entries.first))
        read = entries.operands[(self._owner[readers] < 0) & (entries.operands >= 0)]
        read = np.concatenate([read, *(np.array(period.before, np.int64) for period in periods)])
        for number, period in enumerate(periods):
            inside = read[self._owner[read] == number]
            if not np.isin((inside - period.start) // period.length, (0, self._count - 1)).all():
                return False
        apart = {name for name, layer in self._layers.items() if 0 < layer < self._count - 1}
        outside = np.unique(read[entries.inputs[read]]).tolist()
        shared = [entry for entry in self._shared if entries.inputs[entry]]
        return apart.isdisjoint(map(self._labels.__getitem__, outside)) and set(self._layers).isdisjoint(
            map(self._labels.__getitem__, shared)
        )
