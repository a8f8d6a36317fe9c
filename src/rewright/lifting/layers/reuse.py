"""Stretches of programs that repeat: layers are lifted once, and their result instantiated for the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rewright.lifting.journal import SEQUENTIAL, Again
from rewright.lifting.layers.stream import Stream, mismatches
from rewright.lifting.terms.template import UNSET, Instance, NotReusable, Template
from rewright.lifting.terms.trace import Trace

if TYPE_CHECKING:
    from rewright.lifting.programs import Lifter, Run

_MOST_TEMPLATES = 4
"""Layers that alternate have as many templates; more kinds are lifted each by itself.

A layer that no other was like gives its place to a later one: the first ones are often alone, since what enters them is
no sum of layers before.
"""


@dataclass(frozen=True)
class _Source:
    """A stretch that was lifted by itself: where it starts, what it reads from outside, and its steps.

    A reading is an offset into the operands of the stretch and the number of the value that it reads.
    """

    start: int
    readings: tuple[tuple[int, int], ...]
    template: Template
    entries: tuple[int, int]
    """First and last (exclusive) of its entries in the journal."""


class Reuse:
    """The stretches of one repeat: lifted like an earlier one where that is right, else by themselves."""

    def __init__(self, lifter: Lifter, run: Run, entries: Stream, length: int) -> None:
        self._lifter = lifter
        self._run = run
        self._entries = entries
        self._length = length
        self._sources: list[_Source] = []
        self._repeated: set[int] = set()
        """Where the sources start that another stretch was like."""

    def stretch(self, start: int) -> None:
        """Lift the stretch that starts at an entry."""
        self._lifter.check_budget()
        if any(self._like(source, start) for source in reversed(self._sources)):
            self._lifter.steps["reused"] += self._length
            self._lifter.algebra.count_use("(as an earlier layer)")
            return
        stop = start + self._length
        if len(self._sources) == _MOST_TEMPLATES:
            alone = next((source for source in self._sources if source.start not in self._repeated), None)
            if alone is None:
                self._run.stretch(self._entries, start, stop)
                return
            self._sources.remove(alone)
        journal = self._run.journal
        first = 0 if journal is None else len(journal.entries)
        trace = self._lifter.trace_afresh(lambda: self._run.stretch(self._entries, start, stop))
        source = self._source(start, trace, (first, 0 if journal is None else len(journal.entries)))
        if source is not None:
            self._sources.append(source)

    def _source(self, start: int, trace: Trace, written: tuple[int, int]) -> _Source | None:
        entries, lifter = self._entries, self._lifter
        read = entries.operands[entries.first[start] : entries.first[start + self._length]]
        numbers: dict[int, int] = {}
        readings: list[tuple[int, int]] = []
        for offset in np.flatnonzero((read < start) | entries.inputs[read]).tolist():
            value = self._value(int(read[offset]))
            readings.append((offset, numbers.setdefault(value, len(numbers))))
        inside = {self._value(entry) for entry in range(start, start + self._length) if not entries.inputs[entry]}
        algebra, values = lifter.algebra, lifter.values
        try:
            template = Template(
                algebra.terms,
                trace,
                [values[v] for v in numbers],
                [values[v] for v in inside],
                algebra.facts.known.keys(),
            )
        except NotReusable:
            return None
        return _Source(start, tuple(readings), template, written)

    def _value(self, entry: int) -> int:
        program, position = self._entries.places[entry]
        return self._run.lifted[program].values[position]

    def _like(self, source: _Source, start: int) -> bool:
        """Lift a stretch as an earlier one was; False where that would not be right."""
        entries, length = self._entries, self._length
        if len(mismatches(entries, source.start, start, length)):
            return False
        for entry in (np.flatnonzero(entries.inputs[start : start + length]) + start).tolist():
            self._run.stretch(entries, entry, entry + 1)
        read = entries.operands[entries.first[start] : entries.first[start + length]]
        operands: dict[int, int] = {}
        for offset, number in source.readings:
            value = self._value(int(read[offset]))
            if operands.setdefault(number, value) != value:
                return False
        values = self._lifter.values
        shifts = self._shifts(source, start)
        if shifts is None:
            return False
        instance = source.template.apply([values[operands[number]] for number in range(len(operands))])
        if instance is None:
            return False
        self._repeated.add(source.start)
        self._keep(source, start, instance)
        if self._run.first == SEQUENTIAL:
            self._run.copies.append(partial(self._keep, source, start, instance, everything=True))
        self._write_down(source, shifts, instance)
        return True

    def _shifts(self, source: _Source, start: int) -> dict[int, int] | None:
        """By program how much later its nodes are; None where a journal needs one number and there are several."""
        if self._run.journal is None:
            return {}
        places, length, first = self._entries.places, self._length, self._run.first
        shifts: dict[int, int] = {}
        earlier = places[source.start : source.start + length]
        for (program, position), (_, later) in zip(earlier, places[start : start + length], strict=True):
            if shifts.setdefault(program + first, later - position) != later - position:
                return None
        return shifts

    def _write_down(self, source: _Source, shifts: dict[int, int], instance: Instance) -> None:
        journal = self._run.journal
        if journal is None or source.entries[0] == source.entries[1]:
            return  # a stretch of inputs only, which the relations describe
        images = {t: i for t, n in instance.numbers.items() if (i := instance.image[n]) not in (t, UNSET)}
        journal.entries.append(Again(*source.entries, shifts, images))

    def _keep(self, source: _Source, start: int, instance: Instance, *, everything: bool = False) -> None:
        """The values that something outside of the stretch reads, or all of them."""
        entries, lifter, lifted = self._entries, self._lifter, self._run.lifted
        stop = start + self._length
        kept = (everything | (entries.last_use[start:stop] >= stop)) & ~entries.inputs[start:stop]
        new: dict[int, int] = {}
        for offset in np.flatnonzero(kept).tolist():
            before = self._value(source.start + offset)
            value = new.get(before)
            if value is None:
                value = new[before] = lifter.intern(instance.value(lifter.values[before]))
            program, position = entries.places[start + offset]
            lifted[program].values[position] = value
