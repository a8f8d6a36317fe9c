"""What has to hold for an element to be defined: divisors are not zero, roots and logarithms have an argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rewright.terms.normal.arithmetic.cases import branch
from rewright.terms.normal.facts.context import Context, Signed
from rewright.terms.normal.facts.guards import Value, at_least, at_least_zero, is_zero, less_than
from rewright.terms.normal.facts.signs import is_positive
from rewright.terms.normal.polynomials.atoms import Guard, Polynomial, symbol

Kind = Literal["not zero", "positive", "not negative"]
Variables = tuple[tuple[str, Polynomial, Polynomial], ...]


@dataclass(frozen=True)
class Need:
    """A value that must have a sign, on a path, for all values of the variables of the folds around it."""

    kind: Kind
    value: Polynomial
    path: tuple[Signed, ...]
    variables: Variables
    operation: str

    def __str__(self) -> str:
        return f"{self.value} is {self.kind}"

    @cached_property
    def own_path(self) -> list[Signed]:
        """The facts besides the ranges of its variables."""
        ranges = {
            guard.key
            for name, low, high in self.variables
            for guard in (at_least(symbol(name), low), less_than(symbol(name), high))
            if isinstance(guard, Guard)
        }
        return [fact for fact in self.path if fact[0].key not in ranges]


def is_trivial(context: Context, kind: Kind, value: Polynomial) -> bool:
    """Whether a need is met by the form of its value."""
    return is_positive(context, value) or (kind == "not zero" and is_positive(context, -value))


def where_met(
    context: Context,
    needs: Sequence[Need],
    known: Sequence[Signed],
    met: Callable[[], Value],
    otherwise: Callable[[], Value],
) -> Value:
    """One value where all needs hold, which are of paths after what is known, and another where one does not."""
    if not needs:
        return met()
    need = needs[0]
    path = [fact for fact in need.path if fact not in known]

    def rest() -> Value:
        return where_met(context, needs[1:], known, met, otherwise)

    def after(position: int) -> Value:
        if position < len(path):
            return _by(context, path[position], lambda: after(position + 1), rest)
        return _by(context, holding(need), rest, otherwise)

    return after(0)


def _by(context: Context, fact: tuple[Guard | bool, bool], yes: Callable[[], Value], no: Callable[[], Value]) -> Value:
    guard, polarity = fact
    return branch(context, guard, yes, no) if polarity else branch(context, guard, no, yes)


def holding(need: Need) -> tuple[Guard | bool, bool]:
    """The guard that has to have a truth value for a need to be met."""
    if need.kind == "not zero":
        return is_zero(need.value), False
    return (at_least_zero(need.value), True) if need.kind == "not negative" else (at_least_zero(-need.value), False)
