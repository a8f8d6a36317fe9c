"""What a loop gives, apart from how its state is arranged: parts that never change, are not needed, or stand elsewhere.

Two loops give the same value at a part of their states where conditions, starts and steps are the same terms for all
parts that the value depends on. A part that the body passes on is what it was at the start, and is read as that: so it
does not matter whether something is computed in the body or before the loop (invariant code motion), nor where in the
state it stands. That is congruence and induction over the runs of the body, without arithmetic.

The parts that change are terms of their own inside of the loop, numbered in the order in which condition and value
read them. Their level is above that of all such terms in the start of the loop, so that loops in loops are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rewright.frontends.hlo.module import TUPLE_INDEX
from rewright.frontends.hlo.shapes import parts_of, read_shape
from rewright.frontends.hlo.wire import VARINT, Field, integer

if TYPE_CHECKING:
    from rewright.env.inlining import Inlined

STATE = "loop-state"
"""The operator of a term that stands for a part of the state of a loop, inside of it."""
_LEVEL = 1


@dataclass(frozen=True)
class _Loop:
    """A loop that runs on a tuple of a shape: the parts at the start, and those of them that never change."""

    shape: bytes
    computations: tuple[str, str]
    """Body and condition."""
    starts: tuple[int, ...]
    level: int
    fixed: frozenset[int]

    @cached_property
    def shapes(self) -> tuple[bytes, ...]:
        """The serialised ShapeProto of each part."""
        return parts_of(self.shape)


@dataclass(frozen=True)
class _Run:
    """One run of a loop as terms: the state before it, the state after it, and the condition."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    condition: int


class LoopValues:
    """Keys for the parts of loops; parts of one key are equal."""

    def __init__(self, inlined: Inlined) -> None:
        self._inlined = inlined
        self._loops: dict[int, _Loop | None] = {}
        self._runs: dict[tuple[int, tuple[int, ...]], _Run] = {}
        self._levels: dict[int, int] = {}

    def key(self, number: int, index: int) -> tuple[object, ...] | None:
        """The key of a part of a loop; None where the loop is not read so."""
        if number not in self._loops:
            self._loops[number] = self._loop(number)
        loop = self._loops[number]
        if loop is None:
            return None
        order = self._order(number, loop, index)
        run = self._run(number, loop, order)
        states = tuple((loop.starts[part], run.after[part]) for part in order)
        fields = self._inlined.terms[number].fields
        return "loop", fields, run.condition, run.before[index], states

    def _loop(self, number: int) -> _Loop | None:
        """A loop over a tuple, by its condition and body."""
        term = self._inlined.terms[number]
        shape = read_shape(term.shape)
        if shape.element != "tuple" or len(term.called) != 2 or self._inlined.says_more(term):
            return None
        body, condition = sorted(term.called, key=lambda name: self._element(name) == "pred")
        if self._element(body) != "tuple":
            return None
        start = term.operands[0]
        starts = tuple(self._inlined.part(start, part) for part in range(len(parts_of(term.shape))))
        level = 1 + self._level(start)
        fixed = frozenset[int]()
        while True:
            loop = _Loop(term.shape, (body, condition), starts, level, fixed)
            run = self._evaluate(loop, [part for part in range(len(starts)) if part not in fixed])
            more = {p for p in range(len(starts)) if run.after[p] in (run.before[p], starts[p])}
            if more <= fixed:
                return loop
            fixed |= more

    def _element(self, name: str) -> str:
        return read_shape(self._inlined.terms[self._inlined.body(name)].shape).element

    def _run(self, number: int, loop: _Loop, order: tuple[int, ...]) -> _Run:
        if (number, order) not in self._runs:
            self._runs[number, order] = self._evaluate(loop, order)
        return self._runs[number, order]

    def _evaluate(self, loop: _Loop, order: Sequence[int]) -> _Run:
        """One run, with the parts that change numbered in an order; what is not in it comes last."""
        changing = [part for part in range(len(loop.starts)) if part not in loop.fixed]
        places = {part: place for place, part in enumerate(dict.fromkeys([*order, *changing]))}
        state = tuple(
            loop.starts[part]
            if part in loop.fixed
            else self._inlined.number(STATE, loop.shapes[part], _state(loop.level, place), ())
            for part, place in ((part, places.get(part, 0)) for part in range(len(loop.starts)))
        )
        whole = self._inlined.number("tuple", loop.shape, (), state)
        body, condition = loop.computations
        after = self._inlined.result(body, whole)
        parts = tuple(self._inlined.part(after, part) for part in range(len(state)))
        return _Run(state, parts, self._inlined.result(condition, whole))

    def _order(self, number: int, loop: _Loop, index: int) -> tuple[int, ...]:
        """The parts that a part depends on, in the order in which they are read: by the condition first."""
        plain = tuple(part for part in range(len(loop.starts)) if part not in loop.fixed)
        run = self._run(number, loop, plain)
        part_of = {run.before[part]: part for part in plain}
        found: dict[int, None] = {}
        self._read([run.condition, run.before[index]], part_of, found)
        done = 0
        while done < len(found):
            self._read([run.after[list(found)[done]]], part_of, found)
            done += 1
        return tuple(found)

    def _read(self, roots: Iterable[int], part_of: dict[int, int], found: dict[int, None]) -> None:
        """Enter the parts that terms read, from left to right."""
        for root in roots:
            seen: set[int] = set()
            stack = [root]
            while stack:
                at = stack.pop()
                if at not in seen:
                    seen.add(at)
                    if at in part_of:
                        found.setdefault(part_of[at])
                    stack.extend(reversed(self._inlined.terms[at].operands))

    def _level(self, number: int) -> int:
        """The highest level of the states of loops that a term reads."""
        stack = [number]
        while stack:
            at = stack[-1]
            term = self._inlined.terms[at]
            waiting = [operand for operand in term.operands if operand not in self._levels]
            if at not in self._levels and waiting:
                stack.extend(waiting)
                continue
            own = integer(term.fields, _LEVEL) if term.opcode == STATE else 0
            self._levels[at] = max([own, *(self._levels[operand] for operand in term.operands)])
            stack.pop()
        return self._levels[number]


def _state(level: int, place: int) -> tuple[Field, ...]:
    return ((_LEVEL, VARINT, level), (TUPLE_INDEX, VARINT, place))
