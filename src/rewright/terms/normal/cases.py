"""Case distinctions: functions of guarded values, evaluated path by path under the facts of the path."""

from __future__ import annotations

from collections.abc import Callable

from rewright.terms.normal.atoms import ONE, ZERO, Guard
from rewright.terms.normal.context import Context
from rewright.terms.normal.guards import Choice, Leaf, Value, choice


def branch(context: Context, guard: Guard | bool, yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
    """The one arm where the guard is decided, else both, each under its fact; equal arms merge."""
    context.tick()
    decided = context.decide(guard)
    if decided is not None or isinstance(guard, bool):
        return yes() if decided else no()
    with context.under(guard, True):
        first = yes()
    with context.under(guard, False):
        second = no()
    return choice(guard, first, second)


def each(context: Context, function: Callable[..., Value], *values: Value) -> Value:
    """The function of the leaves of guarded values."""
    for position, value in enumerate(values):
        if isinstance(value, Choice):
            before, after = values[:position], values[position + 1 :]

            def arm(chosen: Value, before: tuple[Value, ...] = before, after: tuple[Value, ...] = after) -> Value:
                return each(context, function, *before, chosen, *after)

            yes, no = value.yes, value.no
            return branch(context, value.guard, lambda: arm(yes), lambda: arm(no))
    return function(*values)


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
