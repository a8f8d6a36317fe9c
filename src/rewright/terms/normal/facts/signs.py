"""What is known about the sign of a real polynomial without asking z3."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import at_least, at_least_zero
from rewright.terms.normal.facts.squares import is_never_negative
from rewright.terms.normal.polynomials.atoms import (
    Atom,
    Base,
    Exponential,
    Function,
    Indicator,
    Monomial,
    Number,
    Polynomial,
    Symbol,
    polynomial,
)
from rewright.terms.normal.polynomials.ranged import Largest, PrefixSum

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
    constant = value.terms.get((), 0)
    if constant > 0 and is_nonnegative(context, value - constant):
        return "positive"
    for rule in (_joined_sums, _longer_sums, _without_first_terms):
        found = rule(context, value)
        if found != "unknown":
            return found
    if is_never_negative(value) or _nonnegative_by_cases(context, value):
        return "nonnegative"
    if context.decide_cheaply(at_least_zero(-value)) is False:
        return "positive"
    return "nonnegative" if context.decide_cheaply(at_least_zero(value)) is True else "unknown"


def _joined_sums(context: Context, value: Polynomial) -> Sign:
    """The sign where sums over the same ranges add up to sums of what is not negative, as ``2 [x >= 0] x - x`` is."""
    bodies: dict[tuple[bytes, ...], Polynomial] = {}
    ranges: dict[tuple[bytes, ...], tuple[Polynomial, ...]] = {}
    rest = value
    for monomial, coefficient in value.terms.items():
        atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
        if isinstance(atom, PrefixSum):
            key = tuple(bound.key for bound in atom.bounds)
            ranges[key] = atom.bounds
            bodies[key] = bodies.get(key, Polynomial({})) + atom.body * coefficient
            rest = rest - Polynomial({monomial: coefficient})
    if not bodies or len(bodies) == len(value.terms):
        return "unknown"
    if not all(context.nonnegative(bound) for bounds in ranges.values() for bound in bounds):
        return "unknown"
    return _sign(context, rest) if all(is_nonnegative(context, body) for body in bodies.values()) else "unknown"


def _longer_sums(context: Context, value: Polynomial) -> Sign:
    """The sign where a sum is taken from a longer one of the same terms, such as ``x[0] + x[1] - x[0]``."""
    for monomial, coefficient in value.terms.items():
        taken = [atom for atom, exponent in monomial if isinstance(atom, PrefixSum) and exponent == 1]
        if coefficient >= 0 or not taken:
            continue
        for longer, most in value.terms.items():
            found = "unknown" if most <= 0 else _rest_of_sum(context, longer, monomial, taken)
            if found == "unknown":
                continue
            times = min(most, -coefficient)
            others = _sign(context, value - Polynomial({longer: times, monomial: -times}))
            return found if others == "nonnegative" else others
    return "unknown"


def _rest_of_sum(context: Context, longer: Monomial, monomial: Monomial, taken: Sequence[PrefixSum]) -> Sign:
    """The sign of a monomial minus another one, with a shorter sum in it of what is not negative."""
    for atom in taken:
        others = [factor for factor in monomial if factor[0] != atom]
        rest = [factor for factor in longer if factor not in others]
        if len(longer) != len(monomial) or len(rest) != 1 or rest[0][1] != 1 or not isinstance(rest[0][0], PrefixSum):
            continue
        whole = rest[0][0]
        if whole.body.key != atom.body.key or len(whole.bounds) != len(atom.bounds):
            continue
        signs = {_sign(context, atom.body), *(power_sign(context, *factor) for factor in others)}
        ends = list(zip(atom.bounds, whole.bounds, strict=True))
        if "unknown" in signs or not all(
            context.holds(at_least_zero(a)) and context.holds(at_least_zero(b - a)) for a, b in ends
        ):
            continue
        is_proper = len(ends) == 1 and context.holds(at_least(ends[0][1] - ends[0][0], 1))
        return "positive" if is_proper and signs == {"positive"} else "nonnegative"
    return "unknown"


def _without_first_terms(context: Context, value: Polynomial) -> Sign:
    """The sign where the first terms of a sum, which are written out, are taken from it."""
    for monomial, coefficient in value.terms.items():
        for atom in (a for a, exponent in monomial if isinstance(a, PrefixSum) and exponent == 1 and coefficient > 0):
            rest = Polynomial({tuple(factor for factor in monomial if factor[0] != atom): coefficient})
            signs = {_sign(context, atom.body), _sign(context, rest)}
            if len(atom.bounds) != 1 or "unknown" in signs:
                continue
            for count in range(1, context.written_out + 1):
                if not context.holds(at_least(atom.bounds[0], count)):
                    break
                first = context.rebuild[PrefixSum](context, PrefixSum((polynomial(count),), atom.body), {})
                others = value + first * rest - Polynomial({monomial: coefficient})
                found = _sign(context, others) if len(others.terms) < len(value.terms) else "unknown"
                if found != "unknown":
                    is_longer = signs == {"positive"} and context.holds(at_least(atom.bounds[0], count + 1))
                    return "positive" if is_longer else found
    return "unknown"


def _nonnegative_by_cases(context: Context, value: Polynomial, depth: int = 3) -> bool:
    """Whether a polynomial is not negative whichever of its conditions on reals hold."""
    indicator = next((a for a in value.atoms() if isinstance(a, Indicator) and a.guard.kind == "real>=0"), None)
    if indicator is None or depth == 0 or any(isinstance(a, PrefixSum | Largest) for a in value.atoms()):
        return False
    for holds in (True, False):
        kept = {m: c for m, c in value.terms.items() if holds or all(a != indicator for a, _ in m)}
        case = Polynomial({})
        for monomial, coefficient in kept.items():
            case = case + Polynomial({tuple(f for f in monomial if f[0] != indicator): coefficient})
        if not case.terms:
            continue
        with context.assume(indicator.guard, holds):
            guard = at_least_zero(case)
            known = guard if isinstance(guard, bool) else context.implied_real(guard, True)
            if not known and not _nonnegative_by_cases(context, case, depth - 1):
                return False
    return True


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
        return _largest(context, atom)
    if isinstance(atom, Function) and atom.name == "log":
        constant = atom.arguments[0].constant()
        if constant is not None and constant > 1:
            return "positive"
    if context.decide_cheaply(at_least_zero(-Polynomial({((atom, 1),): 1}))) is False:
        return "positive"
    if context.decide_cheaply(at_least_zero(Polynomial({((atom, 1),): 1}))) is True:
        return "nonnegative"
    return "unknown"


def _sum(context: Context, atom: PrefixSum) -> Sign:
    body = _sign(context, atom.body)
    full = body != "unknown" and all(context.holds(at_least(bound, 1)) for bound in atom.bounds)
    if body == "unknown" or not (full or all(context.holds(at_least_zero(bound)) for bound in atom.bounds)):
        return "unknown"
    return "positive" if full and body == "positive" else "nonnegative"


def _largest(context: Context, atom: Largest) -> Sign:
    """The sign of a maximum, from the items that are always there or else from all."""
    always = {_sign(context, item.body) for item in atom.items if item.always}
    every = {_sign(context, item.body) for item in atom.items}
    if "positive" in always or every == {"positive"}:
        return "positive"
    return "nonnegative" if "nonnegative" in always or "unknown" not in every else "unknown"
