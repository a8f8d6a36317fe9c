"""How states of reductions take in a tile, follow the others and end, as scalars: the same for every target.

Before a tile a state is ``old<number>``, after it ``new``; an extremum that has seen nothing is an infinity, of which
differences are NaN, so that others follow it by ``safe<number>`` (after) and ``from<number>`` (before), where it is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rewright.ir.types import DType
from rewright.optimize.kernel import Running, Sweep
from rewright.optimize.online.update import Estimate, Growth
from rewright.optimize.printing.statements import (
    Assign,
    Let,
    Name,
    Number,
    Scalar,
    Statement,
    Value,
    call,
    equal,
    fold_left,
    select,
    unequal,
    whole,
)
from rewright.optimize.scalars.expressions import Expression, Table, walk
from rewright.optimize.scalars.values import identity

_JOIN = {"sum": "add", "product": "multiply", "maximum": "maximum", "minimum": "minimum", "or": "or", "and": "and"}
Moved = tuple[tuple[Let, ...], Scalar]
"""A value, after variables that it needs."""
Names = Mapping[int, Scalar]
"""Values by the numbers of the expressions that they are of."""


@dataclass(frozen=True, slots=True)
class Writer:
    """How a target lowers values where it is, and one operation of operands that were lowered in another way."""

    value: Value
    operate: Callable[[Expression, Value], Scalar]
    real: DType
    """The dtype that floats are computed in."""

    def inline(self, e: Expression, names: Names) -> Scalar:
        """An expression over named values as one scalar; what it does not name is lowered where it belongs."""
        if e.number in names:
            return names[e.number]
        if not any(x.number in names for x in walk(e)):
            return self.value(e)
        return self.operate(e, lambda a: self.inline(a, names))

    def zero(self) -> Number:
        """Zero as a float."""
        return Number(0.0, self.real)

    def first(self, e: Expression) -> Number:
        """What a reduction has before its first element."""
        assert e.bound is not None
        return Number(identity(e.bound.kind), self.real if e.dtype.is_float else e.dtype)

    def is_empty(self, state: Scalar, extremum: Expression) -> Scalar:
        """Whether an extremum has seen nothing but its own neutral element."""
        return equal(state, self.first(extremum))

    def grow(self, growth: Growth, names: Names, state: Value, seen: Scalar) -> Scalar:
        """What a state grows by: multiples of other states, and something for each element that was seen."""
        parts = [call("multiply", state(other), self.inline(factor, names)) for factor, other in growth.others]
        if growth.each is not None:
            parts.append(call("multiply", call("counted", seen, dtype=self.real), self.inline(growth.each, names)))
        return fold_left("add", parts)

    def factor(self, running: Running) -> Scalar | None:
        """What a state is multiplied by when the extrema that it follows have changed: 0 if they had seen nothing."""
        update = running.update
        if update.factor is None:
            return None
        tests = [self.is_empty(old(e), e) for e in update.extrema]
        return select(fold_left("or", tests), self.zero(), self.inline(update.factor, followed(running, "old", "safe")))

    def finish(self, running: Running, text: Scalar, state: Value) -> Scalar:
        """A finished reduction, but for the factor at its end: NaN where what it follows has seen nothing."""
        nothing = Number(float("nan"), self.real)
        for weight in running.update.weights:
            text = select(equal(state(weight), self.zero()), nothing, text)
        for e in running.update.undefined:
            text = select(self.is_empty(state(e), e), nothing, text)
        return text

    def move(self, running: Running, memory: Scalar, factor: Scalar | None, new: Value, begin: Scalar) -> Moved:
        """A state taken to what it follows now, before the results of the tile: grown, scaled, or started again."""
        update, found = running.update, memory
        if update.growth is not None:
            found = call("add", found, self.grow(update.growth, known_to_growth(running), old, begin))
        found = found if factor is None else call("multiply", found, factor)
        if update.reset is None:
            return (), found
        (e,), kept = update.depends, Name(f"kept{running.value.number}")
        is_same = call("or", equal(new(e), old(e)), unequal(old(e), old(e)))  # NaN stays
        let = Let(kept.text, call("or", is_same, call("is_zero", begin)), DType.BOOL)
        return (let,), select(kept, found, self.value(update.reset.value))

    def reading(self, sweep: Sweep, e: Expression, new: Scalar) -> Moved:
        """What the other states of a pass read of a state, which is ``new`` after the tile."""
        assert e.bound is not None
        if e.bound.kind not in ("maximum", "minimum") or not e.dtype.is_float:
            return (), new
        named = [("safe", new)] + ([("from", old(e))] if e.number in sweep.grown else [])
        lets = (Let(f"{n}{e.number}", select(self.is_empty(s, e), self.zero(), s), self.real) for n, s in named)
        return tuple(lets), Name(f"safe{e.number}")

    def settle(self, table: Table, sweep: Sweep, state: Callable[[Expression], Name]) -> Iterator[Statement]:
        """The states at the end of a sweep, moved from the last estimates of means to the means."""
        size, names = whole(sweep.lane.size), gaps(table, sweep)
        for estimate, left in sweep.remainders:
            yield Let(f"rest{estimate.leaf.number}", call("divide", state(left.value), size))
        for running in sweep.settled:
            assert running.update.growth is not None
            memory = state(running.value)
            yield Assign(memory, call("add", memory, self.grow(running.update.growth, names, state, size)))
        for estimate, _ in sweep.remainders:
            mean = call("add", Name(f"guess{estimate.leaf.number}"), Name(f"rest{estimate.leaf.number}"))
            yield Assign(state(estimate.sum), call("multiply", mean, size))

    def guesses(self, estimate: Estimate, new: Value, before: Value, seen: Scalar, begin: Scalar) -> tuple[Let, Let]:
        """What is taken, after a tile and before it, for a value that is known at the end only."""

        def guess(name: str, state: Value, count: Scalar) -> Let:
            top = state(estimate.sum)
            if estimate.weight is None:
                scale = call("divide", Number(estimate.count, self.real), call("counted", count, dtype=self.real))
                value = call("multiply", top, scale)
            else:
                bottom = state(estimate.weight)
                value = select(equal(bottom, self.zero()), self.zero(), call("divide", top, bottom))
            return Let(f"{name}{estimate.leaf.number}", value, self.real)

        return guess("guess", new, seen), guess("was", before, call("at_least_one", begin))


def old(e: Expression) -> Scalar:
    """A state before the tile."""
    return Name(f"old{e.number}")


def join_results(kind: str, a: Scalar, b: Scalar, dtype: DType) -> Scalar:
    """Two results of a reduction as one."""
    return call(_JOIN[kind], a, b, dtype=dtype)


def followed(running: Running, before: str, after: str) -> dict[int, Scalar]:
    """The names of the values that a state follows, from before and after the tile."""
    pairs = list(zip(running.update.depends, running.update.renewed, strict=True))
    named: dict[int, Scalar] = {e.number: Name(f"{before}{e.number}") for e, _ in pairs}
    return named | {new.number: Name(f"{after}{e.number}") for e, new in pairs}


def known_to_growth(running: Running) -> dict[int, Scalar]:
    """The names of what the growth of a state is written over: extrema and estimates, before and after the tile."""
    assert running.update.growth is not None
    names = followed(running, "from", "safe")
    for e in running.update.growth.estimates:
        names[e.leaf.number], names[e.renewed.number] = Name(f"was{e.leaf.number}"), Name(f"guess{e.leaf.number}")
    return names


def gaps(table: Table, sweep: Sweep) -> dict[int, Scalar]:
    """The names of what is left of estimated means at the end of a sweep, by which states are moved to the means."""
    pairs = [(e, table.plain("subtract", (e.renewed, e.leaf))) for e, _ in sweep.remainders]
    return {gap.number: Name(f"rest{e.leaf.number}") for e, gap in pairs}
