"""Floor division of polynomials over integers."""

from __future__ import annotations

from collections.abc import Iterator

from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import at_least_zero, less_than
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Floor,
    Monomial,
    Number,
    Polynomial,
    polynomial,
    sorted_monomial,
)


def floor_quotient(context: Context, numerator: Polynomial, divisor: Polynomial) -> Polynomial:
    """``floor(numerator / divisor)`` for a divisor that is at least one.

    Polynomial division gives a quotient and a rest; where the rest, the numerator, or the rest plus or minus the
    divisor is known to lie between zero and the divisor, the quotient is resolved, else a floor of the rest stays.
    Of ``64*t + r`` over 256, where r lies between zero and 64, it is that of ``t`` over 4. Where the rest has another
    floor, ``16*floor(x/8) + x`` over 24 for example, so may be what is left of it when one
    more of these is taken out: ``x - 8*floor(x/8)``. A floor of a floor is one of the product of both divisors.
    """
    if divisor == ONE:
        return numerator
    top, bottom = numerator.constant(), divisor.constant()
    if isinstance(top, int) and isinstance(bottom, int):
        return polynomial(top // bottom)
    quotient, rest = divide(numerator, divisor)
    if not rest.terms:
        return quotient
    nearby = (rest + divisor, quotient - 1), (rest - divisor, quotient + 1)
    for candidate, result in ((rest, quotient), (numerator, ZERO), *nearby, *_around(rest, quotient, bottom)):
        if context.holds(at_least_zero(candidate)) and context.holds(less_than(candidate, divisor)):
            return result
    if isinstance(bottom, int):
        for step in sorted({abs(c) for c in rest.terms.values() if isinstance(c, int) and c}, reverse=True):
            high = Polynomial({m: c for m, c in rest.terms.items() if isinstance(c, int) and c % step == 0})
            low = rest - high
            if not 1 < step < bottom or bottom % step or not rest.integer or not context.holds(at_least_zero(low)):
                continue
            if context.holds(less_than(low, polynomial(step))):
                return quotient + floor_quotient(context, divide(high, polynomial(step))[0], polynomial(bottom // step))
    leading = max((m for m in rest.terms if m), key=_degree, default=())
    if isinstance(bottom, int) and rest.integer and leading and 2 * rest.terms[leading] > bottom:
        return quotient - floor_quotient(context, -rest + (bottom - 1), divisor)  # ``-n`` is rounded as ``n`` is
    inner = _only_floor(rest) if divisor.integer else None
    if inner is not None:
        whole = inner.numerator + inner.divisor * (rest - polynomial(inner))
        return quotient + floor_quotient(context, whole, inner.divisor * divisor)
    return quotient + polynomial(Floor(rest, divisor))


def _only_floor(rest: Polynomial) -> Floor | None:
    """The floor of which a rest is the value, plus an integer number; None of others."""
    found = [(monomial, c) for monomial, c in rest.terms.items() if monomial]
    if len(found) != 1 or not isinstance(rest.terms.get((), 0), int):
        return None
    monomial, coefficient = found[0]
    atom, exponent = monomial[0]
    is_one = len(monomial) == 1 and exponent == 1 and coefficient == 1
    return atom if is_one and isinstance(atom, Floor) else None


def _around(rest: Polynomial, quotient: Polynomial, divisor: Number | None) -> Iterator[tuple[Polynomial, Polynomial]]:
    """The rest with one more of a floor in it taken out, and the quotient with it."""
    if not isinstance(divisor, int):
        return
    for monomial in rest.terms:
        if any(isinstance(atom, Floor) for atom, _ in monomial):
            whole = Polynomial({monomial: 1})
            if whole.integer:
                yield rest - whole * divisor, quotient + whole


def floor_remainder(context: Context, numerator: Polynomial, divisor: Polynomial) -> Polynomial:
    """``numerator - divisor * floor(numerator / divisor)``."""
    return numerator - divisor * floor_quotient(context, numerator, divisor)


def divide(numerator: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """``numerator = quotient * divisor + rest`` by the leading monomial, with integer coefficients."""
    number = divisor.constant()
    if isinstance(number, int):
        parts = {m: c // number if isinstance(c, int) else 0 for m, c in numerator.terms.items()}
        quotient = Polynomial({m: c for m, c in parts.items() if c})
        return quotient, numerator - quotient * number
    leading = max(divisor.terms, key=_degree)
    scale = divisor.terms[leading]
    quotient, rest = ZERO, numerator
    for _ in range(60):
        step = _step(rest, leading, scale)
        if step is None:
            break
        quotient = quotient + step
        rest = rest - step * divisor
    return quotient, rest


def _step(rest: Polynomial, leading: Monomial, scale: Number) -> Polynomial | None:
    """One term of the quotient: what a multiple of the leading monomial in the rest asks for."""
    for monomial, coefficient in sorted(rest.terms.items(), key=lambda term: _degree(term[0]), reverse=True):
        factor = _without(monomial, leading)
        if factor is None or not isinstance(coefficient, int) or not isinstance(scale, int):
            continue
        times = coefficient // scale
        if times:
            return Polynomial({factor: times})
    return None


def _without(monomial: Monomial, factors: Monomial) -> Monomial | None:
    left = dict(monomial)
    for atom, exponent in factors:
        remaining = left.get(atom, 0) - exponent
        if remaining < 0:
            return None
        if remaining:
            left[atom] = remaining
        else:
            del left[atom]
    return sorted_monomial(left.items())


def _degree(monomial: Monomial) -> tuple[Number, list[tuple[bytes, str]]]:
    total: Number = sum(e for _, e in monomial)
    return total, [(a.key, str(e)) for a, e in monomial]
