"""Loops as folds.

``acc = acc + x`` over iterations is a sum along an axis of iterations, ``m = max(m, x)`` a maximum, and
``acc = acc * exp(old - new) + exp(x - new)``, where ``new`` is a running maximum, the sum of ``exp(x - last)``. That a
fold is the loop's result is proved by induction: what one iteration does is an identity between scalars, which the
normal form decides (``steps``). Where no fold is found, a loop with a number of iterations is written out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import STEP, reads_data, variables
from rewright.frontends.triton.meaning.addresses.places import by_axis, magnitude
from rewright.frontends.triton.meaning.folds.largest import First, of_iterations, offered
from rewright.frontends.triton.meaning.folds.moments import COUNTS, Moments, invariants, state_of
from rewright.frontends.triton.meaning.folds.steps import Step, added, step_of
from rewright.frontends.triton.meaning.iteration.endings import latest_end
from rewright.frontends.triton.meaning.operations.control import either
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import Address, Data, Least, Truth, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.dims import Dim, ceil_quotient, is_nonnegative
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.terms.index import Index, variable

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

MOST = 64
"""Iterations that are written out, where no fold is found."""
_CARRIED = "carried_"
_UNBOUNDED = 1 << 30
"""Iterations of a loop of which it is not known yet where it ends."""


@dataclass(frozen=True, slots=True)
class Count:
    """``low + step * t`` for all ``t`` below ``most``, as long as it is below ``high``."""

    low: Index
    step: int
    high: tuple[Index, ...]
    most: Dim
    is_exact: bool
    """Whether all instances run ``most`` iterations."""

    def runs(self, counter: Index) -> tuple[Index, ...]:
        """Where an iteration is one of those that an instance runs."""
        return tuple(end - counter - 1 for end in self.high)


@MEANINGS.enter("scf.for")
def looped(reader: Reader, op: Operation) -> tuple[Value, ...]:
    """The values that a loop carries, behind its last iteration."""
    low, high, step, *start = reader.operands(op)
    if not (isinstance(low, Whole) and isinstance(high, Whole | Least) and isinstance(step, Whole)):
        raise UnsupportedOperator("a loop whose bounds are computed from data is not read")
    if isinstance(high, Least) and high.is_negated:
        raise UnsupportedOperator("a loop whose end is the largest of several numbers is not read")
    ends = high.parts if isinstance(high, Least) else (high.index,)
    if all(reads_data(end - low.index) for end in ends):
        probe = Count(low.index, _step(step.index), ends, _UNBOUNDED, False)
        count = _bounded(reader, Loop(reader, op, probe, start, low), probe)
    else:
        count = counted(reader, low.index, ends, step.index)
    if count.most == 0:
        return tuple(start)
    return Loop(reader, op, count, start, low).run()


def _step(step: Index) -> int:
    by = step.as_size()
    if not isinstance(by, int) or by < 1:
        raise UnsupportedOperator("a loop by steps that are no number above zero is not read")
    return by


def _bounded(reader: Reader, loop: Loop, count: Count) -> Count:
    """The count of a loop that ends where data says, which is an assumption: later, an access is out of bounds."""
    what = f"the loop of line {reader.writer.b.span.line}"
    if reads_data(count.low):
        reader.assume(f"{what} does not start below 0", count.low)
    last = latest_end(loop.touched(), loop.axis, count.step)
    if last is None:
        raise UnsupportedOperator("a loop that ends where data says, and moves along no axis of a tensor, is not read")
    text = f"{what} ends at {last} at the latest, or its accesses are out of bounds"
    reader.assume(text, *(Index(last) - end for end in count.high))
    return replace(count, most=ceil_quotient(last, count.step))


def counted(reader: Reader, low: Index, high: tuple[Index, ...], step: Index) -> Count:
    """How often a loop runs that counts up to the least of some ends; raises UnsupportedOperator where that is open."""
    by = _step(step)
    length = (high[0] - low).as_size() if len(high) == 1 else None
    if length is not None:
        if is_nonnegative(length) is False:
            return Count(low, by, high, 0, True)
        if is_nonnegative(length) is None and not reader.implies(Index(length)):
            raise UnsupportedOperator("a loop that may have its end before its start is not read")
        return Count(low, by, high, ceil_quotient(length, by), True)
    known = [end - low for end in high if not reads_data(end - low)]
    lengths = [n for n in (_largest(reader, length) for length in known) if reader.implies(Index(n))]
    if not lengths:
        raise UnsupportedOperator("a loop that may have its end before its start in all instances is not read")
    longest = min(lengths, key=magnitude)
    return Count(low, by, high, ceil_quotient(longest, by), False)


def _largest(reader: Reader, index: Index) -> Dim:
    """The largest value of an index over all instances."""
    total = index.constant
    for atom, coefficient in index.terms:
        name = next(iter(variables(Index(0, ((atom, 1),)))), "")
        if str(atom) != name or not isinstance(coefficient, int) or name not in reader.sizes:
            raise UnsupportedOperator("a loop whose end is not affine in the numbers of instances is not read")
        total = total + ((reader.sizes[name] - 1) * coefficient if coefficient > 0 else 0)
    return total


class Loop:
    """One loop while it is read."""

    def __init__(
        self,
        reader: Reader,
        op: Operation,
        count: Count,
        start: Sequence[Value],
        low: Whole,
        *,
        is_rest: bool = False,
        aliases: Mapping[str, int] | None = None,
    ) -> None:
        self._reader, self._op, self._is_rest = reader, op, is_rest
        self._aliases = dict(aliases or {})
        """Further names of carried values, by their numbers."""
        self._body = op.regions[0]
        self._count = count
        self._start = list(start)
        self._low = low
        self._names = [name for name, _ in self._body.arguments]
        self._ends = self._body.operations[-1].operands
        self.axis = f"{STEP}{len(reader.writer.axes)}_{op.location.line}"

    def run(self) -> tuple[Value, ...]:
        """The carried values at the end."""
        why, before = "no fold is found for what a loop carries; give its sizes as numbers", self._memories()
        steps = self.symbol_steps()
        try:
            found = None if steps is None else self._folded(steps)
        except UnsupportedOperator as error:
            found, why = None, str(error)
        if found is not None:
            return found
        self._restore(before)
        peeled = self._peeled()
        if peeled is not None:
            return peeled
        self._restore(before)
        if isinstance(self._count.most, int) and self._count.most <= MOST:
            return self._written_out(self._count.most)
        raise UnsupportedOperator(why)

    def touched(self) -> list[tuple[Index, Dim]]:
        """Places along axes of tensors that an iteration reads or writes, with the sizes of these axes."""
        reader = self._reader
        steps = self.symbol_steps() or [None] * len(self._start)
        with _Axis(reader, self.axis, self._count):
            given = [
                self._after(value, step, variable(self.axis)) for value, step in zip(self._start, steps, strict=True)
            ]
            before, reader.is_trial, reader.touched = reader.is_trial, True, []
            try:
                self._iteration(self._counter(), given)
            except UnsupportedOperator:
                pass
            finally:
                found, reader.is_trial = reader.touched, before
        pairs: list[tuple[Index, Dim]] = []
        for address in found:
            memory = reader.memories[address.argument]
            places = by_axis(address.index, memory.sizes, memory.strides, splits=False)
            pairs += zip(places or (), memory.sizes, strict=False)
        return pairs

    def _after(self, value: Value, step: Index | None, times: Index) -> Value:
        """A carried symbol after some iterations; anything else as it is."""
        return value if step is None else replace(value, index=value.index + _times(step, times))  # type: ignore[union-attr]

    # --- symbols

    def symbol_steps(self) -> list[Index | None] | None:
        """By how much carried symbols move in an iteration, None for data; None where that is no symbol."""
        reader = self._reader
        with _Axis(reader, self.axis, self._count):
            given: list[Value] = []
            for number, value in enumerate(self._start):
                probe = variable(self.carried(number))
                is_symbol = isinstance(value, Whole | Address)
                given.append(replace(value, index=value.index + probe) if is_symbol else value)  # type: ignore[union-attr]
            before, reader.is_trial = reader.is_trial, True
            for number in range(len(self._start)):
                reader.writer.axes[self.carried(number)] = 1 << 30
            try:
                ends = self._iteration(self._counter(), given)
            except UnsupportedOperator:
                return None
            finally:
                reader.is_trial = before
                for number in range(len(self._start)):
                    del reader.writer.axes[self.carried(number)]
        found: list[Index | None] = []
        for value, end in zip(given, ends, strict=True):
            if not isinstance(value, Whole | Address):
                found.append(None)
                continue
            step = end.index - value.index if isinstance(end, type(value)) else None
            names = set(variables(step)) if step is not None else set[str]()
            is_symbol = step is not None and self.axis not in names and not reads_data(step)
            if is_symbol and not any(name.startswith(_CARRIED) for name in names):
                found.append(step)
            elif isinstance(value, Whole):
                found.append(None)  # a number that is computed from data
            else:
                return None
        return found

    def carried(self, number: int) -> str:
        """A variable for a symbol before an iteration."""
        return f"{_CARRIED}{number}_{self.axis}"

    def _counter(self) -> Whole:
        return replace(self._low, index=self._count.low + variable(self.axis) * self._count.step)

    def _iteration(
        self, counter: Whole, given: Sequence[Value], fixed: Mapping[str, Value] | None = None
    ) -> tuple[Value, ...]:
        reader = self._reader
        reader.values.update(zip(self._names, (counter, *given), strict=True))
        reader.values.update((name, given[number]) for name, number in self._aliases.items())
        before, reader.fixed = reader.fixed, {**reader.fixed, **(fixed or {})}
        try:
            ends = reader.run(self._body)
        finally:
            reader.fixed = before
        return ends

    # --- folds

    def _folded(self, symbol_steps: Sequence[Index | None]) -> tuple[Value, ...] | None:
        reader = self._reader
        counter = variable(self.axis)
        moved = [self._after(value, step, counter) for value, step in zip(self._start, symbol_steps, strict=True)]
        with _Axis(reader, self.axis, self._count):
            steps: dict[int, Step] = {}
            if any(step is None for step in symbol_steps):
                found = self._steps(moved, symbol_steps)
                if found is None:
                    return None
                steps = found
            values = self._contributions(moved, steps)
        ends: list[Value] = []
        for number, (value, step) in enumerate(zip(self._start, symbol_steps, strict=True)):
            if step is not None and self._last[number] != replace(moved[number], index=moved[number].index + step):  # type: ignore[union-attr]
                return None
            ends.append(values[number] if step is None else self._moved_on(value, step))
        return tuple(ends)

    def _moved_on(self, value: Value, step: Index) -> Value:
        """A symbol behind the last iteration; where that differs among instances, a value of which nothing is known."""
        assert isinstance(value, Whole | Address)
        if self._count.is_exact:
            return replace(value, index=value.index + step * self._count.most)
        writer = self._reader.writer
        dtype = value.dtype if isinstance(value, Whole) else DType.I64
        unknown = writer.unspecified(tuple(writer.axes), value.shape, dtype)
        return unknown if isinstance(value, Whole) else replace(value, data=unknown)

    def _steps(self, moved: Sequence[Value], symbol_steps: Sequence[Index | None]) -> dict[int, Step] | None:
        """What an iteration does to the data that is carried, from a trial with unknown values."""
        reader, writer = self._reader, self._reader.writer
        stores = self._memories()
        axes = tuple(writer.axes)
        unknown: dict[int, int] = {}
        self._unknown: dict[int, Data] = {}
        given: list[Value] = []
        for number, value in enumerate(moved):
            if symbol_steps[number] is not None:
                given.append(value)
                continue
            data = writer.data(value)
            self._unknown[number] = writer.unspecified(axes, data.shape, writer.dtype(data))
            unknown[number] = self._unknown[number].position
            given.append(self._unknown[number])
        ends = self._iteration(self._counter(), given)
        spread = {n: writer.spread(writer.data(ends[n]), axes) for n in unknown}
        left = [m.position for m in reader.memories.values()]
        self._restore(stores)
        is_stored = bool(writer.b.build().ancestors(left) & set(unknown.values()))
        return None if is_stored else step_of(writer.b, unknown, spread)

    def _contributions(self, moved: Sequence[Value], steps: Mapping[int, Step]) -> dict[int, Value]:
        """The folds: first those of extrema, then those of sums, with extrema at their last value."""
        found: dict[int, Value] = {}
        extrema = [n for n, s in steps.items() if s.kind in ("maximum", "minimum")]
        given = list(moved)
        for number in steps:
            given[number] = self._unknown[number]
        if extrema:
            before = self._memories()
            ends = self._iteration(self._counter(), given)
            self._restore(before)
            for number in extrema:
                found[number] = self._fold(steps[number], number, ends[number])
        for first in {step.first for step in steps.values() if step.first is not None}:
            found |= self._firsts(first, given)
            extrema.append(first.value)
        for moments in {step.moments for step in steps.values() if step.moments is not None}:
            found |= self._moments(moments, given)
        fixed: dict[str, Value] = {}
        for number in extrema:
            last = found[number]
            given[number] = last
            fixed[self._ends[number]] = last
        ends = self._last = self._iteration(self._counter(), given, fixed)
        for number, step in steps.items():
            if number not in found:
                found[number] = self._fold(step, number, ends[number])
        return found

    def _moments(self, moments: Moments, given: Sequence[Value]) -> dict[int, Value]:
        """The mean, ``m2`` and count behind the last iteration: those of the start, and what iterations merge in."""
        writer, numbers = self._reader.writer, (moments.mean, moments.m2, moments.count)
        own, before = list(given), self._memories()
        for number in numbers:
            like = self._unknown[number]
            own[number] = writer.constant(0.0, like.shape, writer.dtype(like))
        ends = self._iteration(self._counter(), own)
        self._restore(before)
        parts = invariants(writer, *moments.of([writer.data(end) for end in ends]))
        first = invariants(writer, *moments.of([writer.data(value) for value in self._start]))
        sums = [writer.apply(ops.Add(), a, self._summed(b)) for a, b in zip(first, parts, strict=True)]
        self._reader.assumptions[COUNTS.format(writer.b.span.line)] = None
        return dict(zip(numbers, state_of(writer, *sums), strict=True))

    def _firsts(self, first: First, moved: Sequence[Value]) -> dict[int, Value]:
        """The extremum behind the last iteration, and what came with the first that was it."""
        writer, before = self._reader.writer, self._memories()
        ends = self._iteration(self._counter(), moved)
        self._restore(before)
        parts: list[Data] = []
        for number in (first.value, first.place):
            end = writer.data(ends[number])
            position = writer.spread(end, tuple(writer.axes))
            position = offered(writer.b.build(), position, self._unknown[number].position)
            if position is None:
                raise UnsupportedOperator("a loop carries a place that it does not choose")
            parts.append(writer.narrowed(Data(position, tuple(writer.axes), end.shape)))
        values = self._of_each_iteration(parts[0], Step(first.kind))
        start = writer.data(self._start[first.value]), writer.data(self._start[first.place])
        found = of_iterations(writer, first.kind, self.axis, values, parts[1], start)
        return dict(zip((first.value, first.place), found, strict=True))

    def _summed(self, part: Data) -> Data:
        """The sum over the iterations that an instance runs."""
        return self._reader.writer.fold("sum", self._of_each_iteration(part, Step("sum")), self.axis)

    def _of_each_iteration(self, part: Data, step: Step) -> Data:
        """What iterations contribute along their axis, and nothing in those that an instance does not run."""
        writer = self._reader.writer
        if not self._count.is_exact:
            runs = Truth(self._count.runs(self._counter().index), part.shape)
            part = writer.select(writer.truth(runs), part, self._neutral(step, part))
        if self.axis not in part.axes:
            axes = (*(a for a in writer.axes if a in part.axes or a == self.axis),)
            part = Data(writer.spread(part, axes), axes, part.shape)
        return part

    def _memories(self) -> dict[str, tuple[int, int, int]]:
        return {n: (m.position, len(m.stores), len(m.loads)) for n, m in self._reader.memories.items()}

    def _restore(self, before: Mapping[str, tuple[int, int, int]]) -> None:
        for name, (position, stored, loaded) in before.items():
            memory = self._reader.memories[name]
            memory.position = position
            del memory.stores[stored:], memory.loads[loaded:]

    def _neutral(self, step: Step, like: Data) -> Data:
        value = {"sum": 0.0, "maximum": float("-inf"), "minimum": float("inf")}[step.kind]
        dtype = self._reader.writer.dtype(like)
        if not dtype.is_float and step.kind != "sum":
            raise UnsupportedOperator("an extremum of integers that a loop carries is not read")
        return self._reader.writer.constant(value if dtype.is_float else 0, like.shape, dtype)

    def _fold(self, step: Step, number: int, end: Value) -> Data:
        """The start, and what all iterations contribute."""
        writer = self._reader.writer
        part = writer.data(end)
        position = added(writer.b, part.position, self._unknown[number].position)
        if position is None:
            raise UnsupportedOperator("a loop carries a value that it does not change")
        part = self._of_each_iteration(writer.narrowed(replace(part, position=position)), step)
        total = writer.fold(step.kind, part, self.axis)
        start = writer.data(self._start[number])
        if step.follows is not None and writer.b.uniform(start.position) != 0:
            raise UnsupportedOperator("a sum that follows a maximum and does not start at zero is not read")
        for text in step.conditions:
            self._reader.assumptions[text] = None
        if writer.b.uniform(start.position) == writer.b.uniform(self._neutral(step, start).position):
            return total
        joined = {"sum": ops.Add, "maximum": ops.Maximum, "minimum": ops.Minimum}[step.kind]
        return writer.apply(joined(), start, total)

    # --- written out

    def _peeled(self) -> tuple[Value, ...] | None:
        """The first iteration by itself, where something is done in that alone, and the others as a fold."""
        count, reader = self._count, self._reader
        if self._is_rest or not any(op.name == "scf.if" for op in self._body.operations):
            return None
        if not (count.is_exact or reader.decided(Truth(count.runs(count.low), ()))):
            return None
        first = self._iteration(replace(self._low, index=count.low), self._start)
        low = count.low + count.step
        rest = replace(count, low=low, most=count.most - 1)
        try:
            return Loop(
                reader, self._op, rest, first, replace(self._low, index=low), is_rest=True, aliases=self._aliases
            ).run()
        except UnsupportedOperator:
            return None

    def _written_out(self, times: int) -> tuple[Value, ...]:
        values: tuple[Value, ...] = tuple(self._start)
        for number in range(times):
            counter = replace(self._low, index=self._count.low + number * self._count.step)
            runs = Truth(self._count.runs(counter.index), ())
            if self._count.is_exact or self._reader.decided(runs):
                values = self._iteration(counter, values)
                continue
            with self._reader.reached(runs.parts):
                ends = self._iteration(counter, values)
            values = tuple(either(self._reader, runs, a, b) for a, b in zip(ends, values, strict=True))
        return values


class Probe:
    """A loop of which it is not known yet how often it runs: by how much symbols move, and when it goes on."""

    def __init__(self, reader: Reader, op: Operation, start: Sequence[Value], aliases: Mapping[str, int]) -> None:
        unbounded = Count(Index(0), 1, (Index(_UNBOUNDED),), _UNBOUNDED, True)
        low = Whole(Index(0), (), DType.I32)
        self._reader, self._start = reader, start
        self._loop = Loop(reader, op, unbounded, start, low, aliases=aliases)
        self.steps = self._loop.symbol_steps()
        """By how much carried symbols move in an iteration, None for data; None where that is no symbol."""

    def condition(self, name: str) -> Value | None:
        """What a name of the body stands for, of symbols before an iteration."""
        return self._reader.values.get(name)

    def name(self, number: int) -> str:
        """The variable of a symbol before an iteration."""
        return self._loop.carried(number)

    def variable(self, number: int) -> Index:
        """That as an index."""
        return variable(self.name(number))


class _Axis:
    """Iterations as an axis, and which of them an instance runs, for as long as a body is read."""

    def __init__(self, reader: Reader, name: str, count: Count) -> None:
        self._reader, self._name, self._count = reader, name, count

    def __enter__(self) -> None:
        self._before = self._reader.active
        self._reader.writer.axes[self._name] = self._count.most
        if not self._count.is_exact:
            counter = self._count.low + variable(self._name) * self._count.step
            self._reader.active = (*self._before, *self._count.runs(counter))

    def __exit__(self, *_: object) -> None:
        self._reader.active = self._before
        del self._reader.writer.axes[self._name]


def _times(step: Index, counter: Index) -> Index:
    size = step.as_size()
    if size is None:
        raise UnsupportedOperator("a symbol that moves by other steps in each instance is not read")
    return counter * size
