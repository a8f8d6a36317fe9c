"""Guards in their one form, and guarded values: decision trees over conditions with polynomials as leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Union

from rewright.terms.normal.polynomials.atoms import (
    NO_NAMES,
    Element,
    Guard,
    Monomial,
    Number,
    Polynomial,
    digest,
    leading_monomial,
    polynomial,
    whole,
)
from rewright.terms.normal.polynomials.curves import same_sign


def at_least_zero(value: Polynomial) -> Guard | bool:
    """``value >= 0``; over integers where the value is one."""
    value = same_sign(value)
    constant = value.constant()
    if constant is not None:
        return constant >= 0
    cleared = value if value.integer else value * _denominators(value)
    if cleared.integer:
        return _integer_guard(cleared)
    return Guard("real>=0", value * whole(Fraction(1) / abs(value.terms[leading_monomial(value)])))


def is_zero(value: Polynomial) -> Guard | bool:
    """``value = 0``."""
    value = same_sign(value)
    constant = value.constant()
    if constant is not None:
        return constant == 0
    cleared = value * _denominators(value)
    if cleared.integer:
        divisor = math.gcd(*(int(c) for m, c in cleared.terms.items() if m))
        offset = int(cleared.terms.get((), 0))
        if offset % divisor:
            return False
        return Guard("integer=0", _positive_lead(cleared * Fraction(1, divisor)))
    return Guard("real=0", _positive_lead(value, normed=True))


def at_least(left: Polynomial, right: Polynomial | Number) -> Guard | bool:
    """``left >= right``."""
    return at_least_zero(left - right)


def less_than(left: Polynomial, right: Polynomial) -> Guard | bool:
    """``left < right`` for integers."""
    return at_least_zero(right - left - 1)


def boolean(element: Element) -> Guard:
    """That an element of a boolean tensor is true."""
    return Guard("true", Polynomial({((element, 1),): 1}))


def with_value(guard: Guard, value: Polynomial) -> Guard | bool:
    """The same kind of guard about another value."""
    if guard.kind == "true":
        return Guard("true", value)
    return at_least_zero(value) if guard.kind.endswith(">=0") else is_zero(value)


def _denominators(value: Polynomial) -> int:
    return math.lcm(*[c.denominator for c in value.terms.values()])


def _integer_guard(value: Polynomial) -> Guard:
    """``value >= 0`` with coprime coefficients and the constant rounded to what integers can reach."""
    divisor = math.gcd(*(int(c) for m, c in value.terms.items() if m))
    if divisor != 1:
        terms: dict[Monomial, Number] = {m: int(c) // divisor for m, c in value.terms.items()}
        value = Polynomial({m: c for m, c in terms.items() if c})
    return Guard("integer>=0", value)


def _positive_lead(value: Polynomial, normed: bool = False) -> Polynomial:
    leading = value.terms[leading_monomial(value)]
    if normed:
        return value * whole(Fraction(1) / leading)
    return -value if leading < 0 else value


@dataclass(frozen=True, slots=True)
class Infinite:
    """Plus or minus infinity: no element of the field, so that it never cancels."""

    sign: Literal[1, -1]
    free: ClassVar[frozenset[str]] = NO_NAMES

    @property
    def key(self) -> bytes:
        """The digest of the structure."""
        return digest("infinite", str(self.sign))

    def __str__(self) -> str:
        return "inf" if self.sign > 0 else "-inf"


@dataclass(frozen=True, slots=True)
class Missing:
    """No value: the identity of a fold of kind ``last``."""

    key: ClassVar[bytes] = digest("missing")
    free: ClassVar[frozenset[str]] = NO_NAMES

    def __str__(self) -> str:
        return "absent"


@dataclass(frozen=True, slots=True)
class NotANumber:
    """What two infinities that cancel give, and all that is computed from it."""

    key: ClassVar[bytes] = digest("not a number")
    free: ClassVar[frozenset[str]] = NO_NAMES

    def __str__(self) -> str:
        return "nan"


MINUS_INFINITY = Infinite(-1)
PLUS_INFINITY = Infinite(1)
MISSING = Missing()
NOT_A_NUMBER = NotANumber()


class Choice:
    """One value where a guard holds, else another."""

    __slots__ = ("free", "guard", "key", "no", "yes")

    def __init__(self, guard: Guard, yes: Value, no: Value) -> None:
        self.guard = guard
        self.yes = yes
        self.no = no
        self.key = digest("choice", guard.key, yes.key, no.key)
        self.free = guard.free | yes.free | no.free

    def __str__(self) -> str:
        return f"(if {self.guard} then {self.yes} else {self.no})"


Leaf = Union[Polynomial, Infinite, Missing, NotANumber]
Value = Union[Leaf, Choice]


def constant(value: float | int | bool) -> Leaf:
    """A constant: a number, an infinity, or not a number."""
    if isinstance(value, float):
        if math.isnan(value):
            return NOT_A_NUMBER
        if math.isinf(value):
            return PLUS_INFINITY if value > 0 else MINUS_INFINITY
        return polynomial(Fraction(value))
    return polynomial(int(value))


def choice(guard: Guard, yes: Value, no: Value) -> Value:
    """A choice, or one of the values where they are the same."""
    return yes if yes.key == no.key else Choice(guard, yes, no)
