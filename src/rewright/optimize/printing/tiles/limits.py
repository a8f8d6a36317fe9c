"""Which tiles of a sweep are gone through, and what has to be finite for others to be skipped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from rewright.ir.types import DType
from rewright.optimize.kernel import Sweep
from rewright.optimize.phases import Variants, Work
from rewright.optimize.printing.places import Bounds, ends
from rewright.optimize.printing.statements import (
    Assign,
    Let,
    Loop,
    Name,
    Number,
    Scalar,
    Sum,
    call,
    fold_left,
    select,
    total,
    unequal,
    whole,
)
from rewright.optimize.printing.tiles.context import BEGIN, BLOCK_LANES, BLOCK_ROWS, FIRST, Block, Context, padded_size
from rewright.optimize.printing.tiles.values import value
from rewright.optimize.scalars.expressions import Expression
from rewright.optimize.scalars.finite import needs
from rewright.optimize.scalars.simplify import as_index
from rewright.terms.index import Index, Variable

WIDE = 2048
"""Elements of a lane that are looked at together."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the tiles of a sweep, one after the other."""

    low: Scalar
    high: Scalar
    work: Work
    tests: tuple[Scalar, ...] = ()
    """Conditions, each sufficient to skip a tile."""
    is_whole: bool = False
    """Whether no tile of them goes over the end of the lane."""
    when: Scalar | None = None
    """The condition, which is known when the kernel is compiled, that there are any; None where there always are."""


@dataclass(frozen=True)
class Limits:
    """What the limits of a sweep are worked out from."""

    k: Context
    block: Block
    sweep: Sweep
    found: Variants

    @property
    def size(self) -> Sum:
        """The size of the lane."""
        return whole(self.sweep.lane.size)

    def parts(self) -> list[Part]:
        """The tiles of a sweep in order: whole ones that no mask changes are apart, for they need no masks."""
        low, high, tests = self._limits()
        mixed = Part(low, high, self.found.mixed, tuple(tests))
        if not self.k.kernel.has_products:
            return [mixed]
        return (self._halves(mixed) if self.found.special else self._split(mixed)) or [mixed]

    def is_longer_later(self) -> bool:
        """Whether blocks of later rows have more tiles."""
        atoms = (a for one in self._skips for a in _enough(self.found.conditions[one[0]], one[1]))
        limits = ((atom, flag, self._limit(atom, flag)) for atom, flag in atoms)
        return any(
            limit is not None
            and limit[0] == "high"
            and (Variable(self.k.kernel.row.name), -1) in _index(atom, flag).terms
            for atom, flag, limit in limits
        )

    def _split(self, mixed: Part) -> list[Part]:
        """The tiles before those that need no masks, these, and those behind; nothing where none can be separated."""
        found = self.found
        starts, stops, work = list[Scalar](), [_down(self.size)], found.mixed
        sound: Scalar | None = None
        if found.conditions:
            if found.plain is None or (values := self._checked(found.taken[found.plain[0]])) is None:
                return []
            test, work = found.plain
            for atom, flag in (a for n, known in test for a in _together(found.conditions[n], known)):
                limit = self._limit(atom, flag)
                if limit is None:
                    return []
                if limit[0] == "high":
                    starts.append(_up(call("most", limit[1], whole(0))))
                else:
                    stops.append(_down(limit[1]))
            sound = self._all_finite(values) if values else None
        first, last = mixed.low, stops[0]
        if starts:
            most = fold_left("most", [mixed.low, *starts])
            first = self._let("from", call("least", most, mixed.high))
        if found.conditions:
            last = self._let("to", call("most", first, fold_left("least", stops)))
            if sound is not None:
                self.block.add(Assign(last, select(sound, last, first)))
        end = last if mixed.high == self.size else call("least", last, mixed.high)
        before = [Part(mixed.low, first, mixed.work, mixed.tests)] if starts else []
        ragged = None if len(stops) > 1 or sound is not None else self._is_ragged()
        return [
            *before,
            Part(first, end, work, is_whole=True),
            Part(last, mixed.high, mixed.work, mixed.tests, when=ragged),
        ]

    def _halves(self, mixed: Part) -> list[Part]:
        """The tiles where the one condition is true, those where it is both, and those where it is false, in order."""
        sides: dict[str, tuple[Scalar, Scalar | None, Work]] = {}
        for (number, flag), work in self.found.special:
            wanted = _together(self.found.conditions[number], flag)
            limit = self._limit(*wanted[0]) if len(wanted) == 1 else None
            values = self._checked(self.found.taken[(number, flag),])
            if limit is None or values is None:
                return []
            sides[limit[0]] = limit[1], self._all_finite(values) if values else None, work
        if len(sides) != 2:
            return []
        (place, sound, work), end = sides["low"], _down(self.size)
        first = self._let("to", call("least", _down(place), end))
        if sound is not None:
            self.block.add(Assign(first, select(sound, first, whole(0))))
        before = Part(whole(0), first, work, is_whole=True)
        place, sound, work = sides["high"]
        last = self._let("from", call("most", first, _up(call("most", place, whole(0)))))
        if sound is not None:
            self.block.add(Assign(last, select(sound, last, self.size)))
        return [
            before,
            Part(first, call("least", last, self.size), mixed.work),
            Part(last, end, work, is_whole=True),
            Part(call("most", last, end), self.size, mixed.work, when=self._is_ragged()),
        ]

    def _let(self, stem: str, value: Scalar) -> Name:
        name = Name(self.k.fresh(stem))
        self.block.add(Let(name.text, value))
        return name

    def _is_ragged(self) -> Scalar:
        return unequal(call("modulo", self.size, BLOCK_LANES), whole(0))

    def _bounds(self) -> Bounds:
        """The first and the last value of indices in a tile."""
        bounds: dict[str, tuple[Scalar, Scalar]] = {g.name: (Name(g.name), Name(g.name)) for g in self.k.kernel.grid}
        if self.k.kernel.features is not None:  # a loop inside of the tile
            bounds[self.k.kernel.features.name] = whole(0), whole(self.k.kernel.features.size - 1)
        bounds[self.k.kernel.row.name] = (
            FIRST,
            call("least", total(FIRST, BLOCK_ROWS, -1), whole(self.k.kernel.row.size - 1)),
        )
        bounds[self.sweep.lane.name] = BEGIN, total(BEGIN, BLOCK_LANES, -1)
        return bounds

    @cached_property
    def _skips(self) -> dict[tuple[int, bool], list[Expression]]:
        """The values of conditions for which a tile may be skipped, each with what has to be looked at before that."""
        checked = {one: self._checked(self.found.taken[one,]) for one in self.found.skip}
        return {one: values for one, values in checked.items() if values is not None}

    def _limits(self) -> tuple[Scalar, Scalar, list[Scalar]]:
        """First and last tile, and conditions that skip others."""
        low: Scalar = whole(0)
        high: Scalar = self.size
        tests: list[Scalar] = []
        ends_of_all = low, high
        for number, flag in self._skips:
            for atom, holds in _enough(self.found.conditions[number], flag):
                limit = self._limit(atom, holds)
                if limit is None:
                    tests += _everywhere(atom, holds, self._bounds())
                elif limit[0] == "high":
                    high = self._let("last", call("least", high, call("most", limit[1], whole(0))))
                else:
                    low = self._let("start", call("most", low, _down(limit[1])))
        values = [e for checked in self._skips.values() for e in checked]
        if values and (tests or (low, high) != ends_of_all):
            sound = self._all_finite(values)
            tests = [call("and", sound, test) for test in tests]
            low, high = (
                new if new == old else select(sound, new, old)
                for new, old in zip((low, high), ends_of_all, strict=True)
            )
        return low, high, tests

    def _checked(self, taken: Iterable[Expression]) -> list[Expression] | None:
        """What has to be looked at before tiles are skipped; None where that would take the tile itself."""
        k = self.k
        values = needs(k.graph, k.table, k.kernel, self.sweep, taken)
        if values is None:
            return None
        values = [e for e in values if not k.certain.finite(k.kernel, e)]
        return None if any({k.kernel.row.name, self.sweep.lane.name} <= e.free for e in values) else values

    def _all_finite(self, values: Iterable[Expression]) -> Name:
        """Whether values of the rows, and of all elements of the lane, are finite: a row without elements has none."""
        k, lane = self.k, self.sweep.lane
        sound = self._let("sound", call("at_least_zero", FIRST))
        along = [e for e in dict.fromkeys(values) if lane.name in e.free]
        inner = self.block.inner()
        for e in (e for e in dict.fromkeys(values) if lane.name not in e.free):
            inner.add(_look(sound, Name("row_in"), value(k, inner, e)))
        if along:  # in steps as wide as registers allow: there is nothing to do but to look
            width, inner = min(padded_size(lane.count), WIDE), self.block.nested()
            lanes = total(BEGIN, call("arange", whole(width)))
            inner.add(Let(lane.name, call("as_columns", lanes)))
            inner.add(Let("lane_in", call("compare_LT", Name(lane.name), self.size)))
            inner.places[lane.name], inner.guards[lane.name] = Name(lane.name), Name("lane_in")
            for e in along:
                inner.add(_look(sound, Name("lane_in"), value(k, inner, e)))
            self.block.add(Loop("begin", self.size, inner.body, step=whole(width)))
        return sound

    def _limit(self, atom: Expression, holds: bool) -> tuple[str, Scalar] | None:
        """A condition that holds for all tiles from one on, or up to one, as the end of the loop."""
        lane = Variable(self.sweep.lane.name)
        if atom.op != "at_least_zero":
            return None
        index = _index(atom, holds)
        own = [f for a, f in index.terms if a == lane]
        rest = Index(index.constant, tuple(t for t in index.terms if t[0] != lane))
        if own not in ([1], [-1]) or not all(isinstance(a, Variable) for a, _ in rest.terms):
            return None
        bounds = {n: b for n, b in self._bounds().items() if n != lane.name}
        found = ends(rest, bounds, "quotient")  # of what is added to the lane
        if found is None:
            return None
        least = found[0]
        return ("high", call("negate", least)) if own[0] == 1 else ("low", call("most", total(least, 1), whole(0)))


def _look(sound: Name, guard: Scalar, tile: Scalar) -> Assign:
    """Take into a flag whether a tile is finite where a guard holds."""
    is_finite = call("compare_LT", call("abs", tile), Number(float("inf"), DType.F32))
    bad = call("cast", call("and", guard, call("not_bits", is_finite)), dtype=DType.I32)
    return Assign(sound, call("and", sound, call("is_zero", call("largest", bad))))


def _down(place: Scalar) -> Scalar:
    return call("rounded_down", place, BLOCK_LANES)


def _up(place: Scalar) -> Scalar:
    return call("rounded_up", place, BLOCK_LANES)


def _index(atom: Expression, holds: bool) -> Index:
    """The index that is at least zero where the condition has the value."""
    index = atom.arguments[0].index
    assert index is not None
    return index if holds else index * -1 - 1  # index < 0 everywhere


def _everywhere(e: Expression, holds: bool, bounds: Bounds) -> list[Scalar]:
    """Conditions, each sufficient for a condition to have a value in the whole tile."""
    if e.op == "not":
        return _everywhere(e.arguments[0], not holds, bounds)
    if e.op in ("and", "or"):
        first, second = (_everywhere(a, holds, bounds) for a in e.arguments)
        return first + second if (e.op == "or") == holds else [call("and", x, y) for x in first for y in second]
    index = as_index(e.arguments[0]) if e.op in ("at_least_zero", "is_zero") else None
    found = None if index is None else ends(index, bounds, "quotient")
    if found is None or (e.op == "is_zero" and holds):
        return []
    is_above, is_below = call("compare_GT", found[0], whole(0)), call("compare_LT", found[1], whole(0))
    if e.op == "is_zero":
        return [is_above, is_below]
    return [call("at_least_zero", found[0]) if holds else is_below]


Atoms = list[tuple[Expression, bool]]
"""Conditions with values."""


def _enough(e: Expression, holds: bool) -> Atoms:
    """Conditions, each sufficient for a condition to have a value."""
    if e.op == "not":
        return _enough(e.arguments[0], not holds)
    if (e.op == "or" and holds) or (e.op == "and" and not holds):
        return [a for argument in e.arguments for a in _enough(argument, holds)]
    return [(e, holds)]


def _together(e: Expression, holds: bool) -> Atoms:
    """Conditions that are together enough for a condition to have a value."""
    if e.op == "not":
        return _together(e.arguments[0], not holds)
    if (e.op == "and" and holds) or (e.op == "or" and not holds):
        return [a for argument in e.arguments for a in _together(argument, holds)]
    return [(e, holds)]
