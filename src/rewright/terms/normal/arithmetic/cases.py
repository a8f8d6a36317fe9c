"""Case distinctions: functions of guarded values, evaluated path by path under the facts of the path."""

from __future__ import annotations

from collections.abc import Callable

from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import NOT_A_NUMBER, Choice, Leaf, Value, choice
from rewright.terms.normal.polynomials.atoms import ONE, ZERO, Guard, Polynomial, TooHard


def branch(context: Context, guard: Guard | bool, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
    """The one arm where the guard is decided, else both, each under its fact; equal arms merge."""
    context.tick()
    decided = context.decide(guard)
    if decided is not None or isinstance(guard, bool):
        return yes() if decided else no()
    with context.assume(guard, True):
        first = yes()
    with context.assume(guard, False):
        second = no()
    return choice(guard, first, second)


def each(context: Context, function: Callable[..., Value], *values: Value) -> Value:
    """The function of the leaves of guarded values."""
    for position, value in enumerate(values):
        if isinstance(value, Choice):
            return _split(context, function, values, position, value)
    return function(*values)


def _split(
    context: Context, function: Callable[..., Value], values: tuple[Value, ...], position: int, value: Choice
) -> Value:
    before, after = values[:position], values[position + 1 :]
    return branch(
        context,
        value.guard,
        lambda: each(context, function, *before, value.yes, *after),
        lambda: each(context, function, *before, value.no, *after),
    )


def finite(leaf: Leaf) -> Polynomial:
    """A leaf that is a number; raises TooHard for infinities and for absence."""
    if not isinstance(leaf, Polynomial):
        raise TooHard(f"arithmetic with {leaf}")
    return leaf


def plus(left: Leaf, right: Leaf) -> Value:
    """The sum of two numbers."""
    if NOT_A_NUMBER in (left, right):
        return NOT_A_NUMBER
    return finite(left) + finite(right)


def minus(left: Leaf, right: Leaf) -> Value:
    """The difference of two numbers."""
    return finite(left) - finite(right)


def only_where(context: Context, guard: Guard | bool, polarity: bool, value: Callable[[], Value]) -> Value:
    """The value where the guard has a truth value, zero elsewhere."""
    return branch(context, guard, value, _zero) if polarity else branch(context, guard, _zero, value)


def truth(context: Context, guard: Guard | bool) -> Value:
    """One where the guard holds, zero elsewhere."""
    return branch(context, guard, lambda: ONE, _zero)


def leaves(value: Value) -> list[Leaf]:
    """All leaves of a guarded value."""
    return [*leaves(value.yes), *leaves(value.no)] if isinstance(value, Choice) else [value]


def _zero() -> Value:
    return ZERO
