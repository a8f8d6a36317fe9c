"""What is known on a path of a proof, and what follows from it."""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rewright.ops.functions.record import Sort
from rewright.terms.normal.facts.bridge import Bridge, Signed
from rewright.terms.normal.facts.guards import at_least, is_zero, less_than
from rewright.terms.normal.facts.intervals import (
    EVERYTHING,
    Intervals,
    complement,
    extremes,
    intersection,
    linear,
    solutions,
)
from rewright.terms.normal.polynomials.atoms import Atom, Element, Guard, Polynomial, Symbol, polynomial, symbol

TOO_DEEP = (RecursionError, ctypes.ArgumentError)
"""What is raised for terms that are nested too deeply; the second where the solver was asked."""


class OutOfTime(Exception):
    """The wall-clock limit of a proof is used up."""


@dataclass
class _Frame:
    """What was added at one depth of the proof."""

    facts: list[Signed] = field(default_factory=list[Signed])
    known: dict[bytes, bool] = field(default_factory=dict[bytes, bool])
    decisions: dict[bytes, bool | None] = field(default_factory=dict[bytes, "bool | None"])
    ranges: dict[str, tuple[Polynomial, Polynomial]] = field(default_factory=dict[str, "tuple[Polynomial, Polynomial]"])
    alone: dict[Atom, Intervals] = field(default_factory=dict[Atom, Intervals])
    """What the facts about one variable or element alone leave of its values."""
    others: list[Guard] = field(default_factory=list[Guard])
    """The guards of all other facts."""
    memo: dict[Any, Any] = field(default_factory=dict[Any, Any])
    sent: int = 0


Values = Mapping[str, Polynomial]
Rebuilders = Mapping[type[Atom], "Callable[[Context, Any, Values], Polynomial]"]
Universal = Callable[[Element], Iterable[tuple["Guard | bool", bool]]]
"""Facts about one element of a tensor that hold for all of its elements."""


class Context:
    """A scoped set of facts. Nothing in it outlives the proof that it was made for."""

    def __init__(self, deadline: float, rebuild: Rebuilders, query_milliseconds: int = 400) -> None:
        self.deadline = deadline
        self.rebuild = rebuild
        """How an atom of a kind is built again when symbols in it are replaced."""
        self.query_milliseconds = query_milliseconds
        self._frames = [_Frame()]
        self._lows: dict[str, int] = {}
        self._bridge: Bridge | None = None
        self._names = itertools.count()
        self.written_out = 4
        """Sums of at most this many terms are written out."""
        self.universal: dict[str, list[Universal]] = {}
        """Facts by the name of the tensor whose elements they are about."""
        self.bounded: set[str] = set()
        """Tensors of integers of which their type's least and largest number are told."""
        self.sorts: dict[str, Sort] = {}
        """What the elements of a tensor may be besides numbers, by its name; those of others are numbers."""

    @property
    def queries(self) -> int:
        """Number of questions that went to z3."""
        return self._bridge.queries if self._bridge is not None else 0

    @property
    def trail(self) -> list[Signed]:
        """All facts of the current path."""
        return [fact for frame in self._frames for fact in frame.facts]

    def tick(self) -> None:
        """Raise OutOfTime where the time of the proof is used up."""
        if time.process_time() > self.deadline:
            raise OutOfTime

    def fresh(self, prefix: str) -> str:
        """A name that nothing in this proof has."""
        return f"~{prefix}{next(self._names)}"

    def size(self, name: str, low: int) -> None:
        """A symbol that is at least ``low``."""
        self._lows[name] = low
        self.add(at_least(symbol(name), low))

    def is_size(self, name: str) -> bool:
        """Whether a symbol stands for a size, which is at least one."""
        return self._lows.get(name, 0) >= 1

    @contextmanager
    def scope(self) -> Generator[None]:
        """Facts added inside are forgotten at the end."""
        depth = len(self._frames)
        self._frames.append(_Frame())
        try:
            yield
        finally:
            del self._frames[depth:]
            if self._bridge is not None:
                while self._bridge.depth >= depth:
                    self._bridge.pop()

    @contextmanager
    def assume(self, guard: Guard, polarity: bool) -> Generator[None]:
        """A scope in which a guard holds, or does not."""
        with self.scope():
            self.add(guard, polarity)
            yield

    @contextmanager
    def ranges(self, binders: Sequence[tuple[str, Polynomial, Polynomial]]) -> Generator[None]:
        """A scope with ``low <= name < high`` for each."""
        with self.scope():
            for name, low, high in binders:
                self.range(name, low, high)
            yield

    def add(self, guard: Guard | bool, polarity: bool = True) -> None:
        """Assume a guard, or its negation."""
        frame = self._frames[-1]
        if isinstance(guard, bool):
            if guard is polarity:
                return
            guard, polarity = Guard("integer>=0", polynomial(-1)), True
        if self.fact(guard) is polarity:
            return
        frame.facts.append((guard, polarity))
        frame.known[guard.key] = polarity
        frame.decisions.clear()
        found = solutions(guard, polarity)
        if found is None:
            frame.others.append(guard)
        else:
            atom, values = found
            frame.alone[atom] = intersection(frame.alone.get(atom, EVERYTHING), values)
        self._instantiate(guard.value)

    def range(self, name: str, low: Polynomial, high: Polynomial) -> None:
        """Assume ``low <= name < high`` for an index variable."""
        self._frames[-1].ranges[name] = (low, high)
        self.add(at_least(symbol(name), low))
        self.add(less_than(symbol(name), high))

    def memo(self, key: Any) -> Any:
        """What was remembered under a key on this path, or None."""
        for frame in reversed(self._frames):
            if key in frame.memo:
                return frame.memo[key]
        return None

    def remember(self, key: Any, value: Any) -> None:
        """Remember something for as long as the facts hold that it depends on."""
        self._frames[-1].memo[key] = value

    def fact(self, guard: Guard) -> bool | None:
        """What was assumed about a guard literally."""
        for frame in reversed(self._frames):
            if guard.key in frame.known:
                return frame.known[guard.key]
        return None

    def holds(self, guard: Guard | bool) -> bool:
        """Whether a guard is known to be true."""
        return self.decide(guard) is True

    def equal(self, left: Polynomial, right: Polynomial) -> bool:
        """Whether two integers are known to be equal."""
        return left.key == right.key or self.holds(is_zero(left - right))

    def decide(self, guard: Guard | bool) -> bool | None:
        """True, False, or None where both are possible for all that is known."""
        if isinstance(guard, bool):
            return guard
        found = self.fact(guard)
        if found is not None:
            return found
        for frame in reversed(self._frames):
            if guard.key in frame.decisions and (frame is self._frames[-1] or frame.decisions[guard.key] is not None):
                return frame.decisions[guard.key]
        self.tick()
        self._instantiate(guard.value)
        found = self._by_bounds(guard)
        if found is None and guard.kind != "true":
            is_open, found = self._by_values(guard)
            if found is None and not is_open:
                found = self._by_solver(guard)
        self._frames[-1].decisions[guard.key] = found
        return found

    def _by_values(self, guard: Guard) -> tuple[bool, bool | None]:
        """Whether all that is known of the variables and elements of a guard is what is known of each alone, and the
        answer that this gives.
        """
        own = solutions(guard, True)
        if own is not None:
            values = self._values(own[0])
            if not intersection(values, complement(own[1])):
                return True, True
            return self._is_known_alone([own[0]]), None if intersection(values, own[1]) else False
        factors = linear(guard)
        if factors is None:
            return False, None
        ends = extremes([(self._values(atom), factor) for atom, factor in factors.items()])
        if ends is None:
            return False, None
        constant = guard.value.terms.get((), 0)
        if ends[0] >= -constant or ends[1] < -constant:
            return True, ends[0] >= -constant
        # Each end is reached, as one variable says nothing of another.
        return self._is_known_alone(list(factors)), None

    def _values(self, atom: Atom) -> Intervals:
        """What the facts about one variable or element alone leave of its values."""
        values = EVERYTHING
        for frame in self._frames:
            if atom in frame.alone:
                values = intersection(values, frame.alone[atom])
        return values

    def only_values(self, names: Iterable[str]) -> dict[str, Polynomial]:
        """The integer variables of which the facts about each alone leave one value."""
        wanted, found = set(names), dict[str, Polynomial]()
        for frame in self._frames:
            for atom in frame.alone:
                if isinstance(atom, Symbol) and atom.name in wanted and atom.name not in found:
                    values = self._values(atom)
                    if len(values) == 1 and values[0][0] == values[0][1] and isinstance(values[0][0], int):
                        found[atom.name] = polynomial(values[0][0])
        return found

    def _is_known_alone(self, atoms: Sequence[Atom]) -> bool:
        """Whether no fact is about several variables and elements of which one is one of these."""
        alone = [*atoms, *(other for frame in self._frames for other in frame.alone)]
        others = [other for frame in self._frames for other in frame.others]
        return not any(
            any(_is_twin(other, atom) for other in alone) or any(_may_restrict(other, atom) for other in others)
            for atom in atoms
        )

    def decide_cheaply(self, guard: Guard | bool) -> bool | None:
        """As ``decide``, from literal facts and own bounds only."""
        if isinstance(guard, bool):
            return guard
        self._instantiate(guard.value)
        found = self.fact(guard)
        return found if found is not None else self._by_bounds(guard)

    def contradictory(self) -> bool:
        """Whether the facts cannot hold together."""
        return self._synchronise().impossible()

    def small_model(self, names: Iterable[str], most: int = 6) -> dict[str, int] | None:
        """Small integers for symbols under which the facts hold, as far as z3 can say."""
        return self._synchronise().small_model(names, most)

    def implied_real(self, guard: Guard, polarity: bool) -> bool:
        """Whether z3 finds that a guard has a truth value."""
        return self._synchronise().impossible([(guard, not polarity)])

    def _by_bounds(self, guard: Guard) -> bool | None:
        value = guard.value
        if guard.kind == "integer>=0":
            if self.nonnegative(value) or self._from_facts(value):
                return True
            return False if self.nonnegative(-value - 1) or self._from_facts(-value - 1) else None
        if guard.kind == "integer=0" and (self.nonnegative(value - 1) or self.nonnegative(-value - 1)):
            return False
        return None

    def _from_facts(self, value: Polynomial) -> bool:
        """Whether ``value >= 0`` because it is no less than what one fact says is not negative."""
        for frame in self._frames:
            for guard, polarity in frame.facts:
                if guard.kind != "integer>=0" or not (guard.free & value.free):
                    continue
                known = guard.value if polarity else -guard.value - 1
                if self.nonnegative(value - known):
                    return True
        return False

    def _by_solver(self, guard: Guard) -> bool | None:
        bridge = self._synchronise()
        if bridge.impossible([(guard, False)]):
            return True
        return False if bridge.impossible([(guard, True)]) else None

    def _synchronise(self) -> Bridge:
        """The solver with all facts of the path; facts are sent when the first question needs them."""
        self.tick()
        if self._bridge is None:
            self._bridge = Bridge(self.query_milliseconds)
        bridge = self._bridge
        left = int((self.deadline - time.process_time()) * 1000) + 1
        bridge.limit(min(self.query_milliseconds, left))
        for depth, frame in enumerate(self._frames):
            if depth > bridge.depth:
                bridge.push()
                frame.sent = 0
            if frame.sent < len(frame.facts):
                bridge.add(frame.facts[frame.sent :])
                frame.sent = len(frame.facts)
        return bridge

    def bounds(self, name: str) -> tuple[Polynomial, Polynomial] | None:
        """The range that was given to an index variable."""
        for frame in reversed(self._frames):
            if name in frame.ranges:
                return frame.ranges[name]
        return None

    def nonnegative(self, value: Polynomial) -> bool:
        """Own bounds, without z3: index variables at the worse end of their range, sizes at their lower bound.

        A variable goes to an end only if the sign of its coefficient is known the same way.
        """
        if not value.integer:
            return False
        for name in sorted(value.free, reverse=True):
            bounds = self.bounds(name)
            if bounds is None or name not in value.free:
                continue
            split = value.multiple(name)
            if split is None:
                return False
            factor, rest = split
            if self.nonnegative(factor):
                value = rest + factor * bounds[0]
            elif self.nonnegative(-factor):
                value = rest + factor * (bounds[1] - 1)
            else:
                return False
        return self._nonnegative_sizes(value)

    def _nonnegative_sizes(self, value: Polynomial) -> bool:
        total = polynomial(0)
        for monomial, coefficient in value.terms.items():
            product = polynomial(coefficient)
            for atom, exponent in monomial:
                if not isinstance(atom, Symbol) or atom.name not in self._lows:
                    return False
                shifted = polynomial(atom) + self._lows[atom.name]
                for _ in range(int(exponent)):
                    product = product * shifted
            total = total + product
        return all(c >= 0 for c in total.terms.values())

    def _instantiate(self, value: Polynomial) -> None:
        """Add what is known about all elements of a tensor for the elements that occur."""
        if not self.universal:
            return
        for atom in list(value.atoms()):
            if isinstance(atom, Element) and atom.tensor in self.universal:
                marker = ("element", atom.key)
                if self.memo(marker) is None:
                    self.remember(marker, True)
                    for make in self.universal[atom.tensor]:
                        for guard, polarity in make(atom):
                            self.add(guard, polarity)


def _is_twin(other: Atom, atom: Atom) -> bool:
    """Whether two atoms are elements of one tensor, so that they are equal where their indices are."""
    if not (isinstance(other, Element) and isinstance(atom, Element)):
        return False
    return other != atom and other.tensor == atom.tensor


def _may_restrict(guard: Guard, atom: Atom) -> bool:
    """Whether a fact about several variables and elements may say something about one of them."""
    if guard.kind == "true":
        return False
    if isinstance(atom, Symbol):
        return atom.name in guard.free
    return not all(isinstance(a, Symbol) or _is_of_another(a, atom) for a in guard.value.atoms())


def _is_of_another(atom: Atom, element: Atom) -> bool:
    """Whether an atom is an element of another tensor, at an index that looks nothing up."""
    return (
        isinstance(atom, Element)
        and isinstance(element, Element)
        and atom.tensor != element.tensor
        and all(isinstance(a, Symbol) for index in atom.index for a in index.atoms())
    )
