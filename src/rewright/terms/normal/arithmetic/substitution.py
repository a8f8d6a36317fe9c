"""Replacing symbols; what is built again is in normal form."""

from __future__ import annotations

from rewright.terms.normal.facts.context import Context, Values
from rewright.terms.normal.facts.guards import Choice, Value, choice, with_value
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    Atom,
    Base,
    Guard,
    Indicator,
    Monomial,
    Number,
    Polynomial,
    Symbol,
    polynomial,
)
from rewright.terms.normal.polynomials.powers import power


def substitute(context: Context, value: Polynomial, values: Values) -> Polynomial:
    """The polynomial with symbols replaced; raises ZeroDivisionError where a divisor becomes zero."""
    if value.free.isdisjoint(values):
        return value
    kept: dict[Monomial, Number] = {}
    total = polynomial(0)
    for monomial, coefficient in value.terms.items():
        if all(atom.free.isdisjoint(values) for atom, _ in monomial):
            kept[monomial] = coefficient
            continue
        product = polynomial(coefficient)
        for atom, exponent in monomial:
            if isinstance(atom, Base):
                factor = power(substitute(context, atom.value, values), exponent)
            else:
                factor = power(substitute_atom(context, atom, values), exponent)
            product = product * factor
        total = total + product
    return total + Polynomial(kept)


def substitute_atom(context: Context, atom: Atom, values: Values) -> Polynomial:
    """The value of an atom with symbols replaced."""
    if atom.free.isdisjoint(values):
        return polynomial(atom)
    if isinstance(atom, Symbol):
        return values[atom.name]
    return context.rebuild[type(atom)](context, atom, values)


def substitute_guard(context: Context, guard: Guard, values: Values) -> Guard | bool:
    """The guard with symbols replaced."""
    if guard.free.isdisjoint(values):
        return guard
    return with_value(guard, substitute(context, guard.value, values))


def substitute_value(context: Context, value: Value, values: Values) -> Value:
    """A guarded value with symbols replaced."""
    if value.free.isdisjoint(values):
        return value
    if isinstance(value, Choice):
        guard = substitute_guard(context, value.guard, values)
        yes, no = (substitute_value(context, v, values) for v in (value.yes, value.no))
        if isinstance(guard, bool):
            return yes if guard else no
        return choice(guard, yes, no)
    return substitute(context, value, values) if isinstance(value, Polynomial) else value


def indicated(context: Context, guard: Guard | bool) -> Polynomial:
    """One where the guard holds, else zero, as a polynomial."""
    decided = context.decide(guard)
    if decided is not None or isinstance(guard, bool):
        return ONE if decided else polynomial(0)
    return polynomial(Indicator(guard))


def collapse(context: Context, value: Value) -> Polynomial | None:
    """A guarded value as one polynomial over indicators; None where a leaf is infinite or missing."""
    if not isinstance(value, Choice):
        return value if isinstance(value, Polynomial) else None
    yes, no = collapse(context, value.yes), collapse(context, value.no)
    if yes is None or no is None:
        return None
    return no + polynomial(Indicator(value.guard)) * (yes - no)
