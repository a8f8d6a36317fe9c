"""What is known about the sign of a real polynomial without asking z3."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from rewright.terms.normal.atoms import (
    Atom,
    Base,
    Exponential,
    Indicator,
    Largest,
    Number,
    Polynomial,
    PrefixSum,
    Symbol,
)
from rewright.terms.normal.context import Context
from rewright.terms.normal.guards import at_least, at_least_zero

Sign = Literal["positive", "nonnegative", "unknown"]


def is_positive(context: Context, value: Polynomial) -> bool:
    """Whether the value is above zero: exponentials, sizes, roots, sums of such, what facts say literally."""
    return _sign(context, value) == "positive"


def is_nonnegative(context: Context, value: Polynomial) -> bool:
    """Whether the value is not below zero."""
    return _sign(context, value) != "unknown"


def _sign(context: Context, value: Polynomial) -> Sign:
    if not value.terms:
        return "nonnegative"
    signs = [_term(context, m, c) for m, c in value.terms.items()]
    if "unknown" not in signs:
        return "positive" if "positive" in signs else "nonnegative"
    if context.decide_cheaply(at_least_zero(-value)) is False:
        return "positive"
    return "nonnegative" if context.decide_cheaply(at_least_zero(value)) is True else "unknown"


def _term(context: Context, monomial: tuple[tuple[Atom, Number], ...], coefficient: Number) -> Sign:
    signs = [power_sign(context, atom, exponent) for atom, exponent in monomial]
    if coefficient < 0 or "unknown" in signs:
        return "unknown"
    return "nonnegative" if "nonnegative" in signs else "positive"


def power_sign(context: Context, atom: Atom, exponent: Number) -> Sign:
    """The sign of a power of an atom; powers are defined, so a negative one is of a value that is not zero."""
    sign = _atom(context, atom)
    if sign != "unknown":
        return "positive" if exponent < 0 else sign
    if isinstance(exponent, Fraction):
        return "positive" if exponent < 0 else "nonnegative"
    if exponent % 2 == 0:
        return "positive" if exponent < 0 else "nonnegative"
    return "unknown"


def _atom(context: Context, atom: Atom) -> Sign:
    if isinstance(atom, Exponential) or (isinstance(atom, Symbol) and context.is_size(atom.name)):
        return "positive"
    if isinstance(atom, Indicator):
        return "nonnegative"
    if isinstance(atom, Base):
        return _sign(context, atom.value)
    if isinstance(atom, PrefixSum):
        return _sum(context, atom)
    if isinstance(atom, Largest):
        return "positive" if any(is_positive(context, item.body) for item in atom.items) else "unknown"
    if context.decide_cheaply(at_least_zero(-Polynomial({((atom, 1),): 1}))) is False:
        return "positive"
    if context.decide_cheaply(at_least_zero(Polynomial({((atom, 1),): 1}))) is True:
        return "nonnegative"
    return "unknown"


def _sum(context: Context, atom: PrefixSum) -> Sign:
    body = _sign(context, atom.body)
    if body == "unknown" or not all(context.nonnegative(bound) for bound in atom.bounds):
        return "unknown"
    full = all(context.holds(at_least(bound, 1)) for bound in atom.bounds)
    return "positive" if full and body == "positive" else "nonnegative"
