"""Rational powers, exponentials and logarithms of polynomials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Atom,
    Base,
    Curve,
    Exponential,
    Function,
    Monomial,
    Number,
    Polynomial,
    content,
    integer_power,
    polynomial,
    sorted_monomial,
    whole,
)
from rewright.terms.normal.polynomials.factors import prime_powers

_MOST_STEPS = 16
LOG = Curve(grows=True, parity="none", at_zero=None, root=1.0)


def power(value: Polynomial, exponent: Number) -> Polynomial:
    """A power; a fractional one needs a value that is not negative. Raises ZeroDivisionError for 0 to a negative."""
    exponent = whole(exponent)
    if isinstance(exponent, int):
        return integer_power(value, exponent)
    if value == ONE or not value.terms:
        return value
    floor = exponent.numerator // exponent.denominator
    return _fraction(value, exponent - floor) * integer_power(value, floor)


def _fraction(value: Polynomial, exponent: Number) -> Polynomial:
    """A power between zero and one: positive constants and exponentials leave, the rest is a base."""
    single = value.single()
    if single is not None and single[1] == 1 and _has_no_sign(single[0]):
        result = ONE
        for atom, inner in single[0]:
            result = result * Polynomial({((atom, whole(inner * exponent)),): 1})
        return result
    if single is not None and single[1] == 1 and len(single[0]) == 1 and single[0][0][1] == -1:
        # One over something is positive where that is.
        return power(polynomial(single[0][0][0]), -exponent)
    constant = value.constant()
    if constant is not None and constant > 0:
        return constant_power(constant, exponent)
    coefficient = _positive_content(value)
    if coefficient != 1:
        return constant_power(coefficient, exponent) * _fraction(value * (1 / Fraction(coefficient)), exponent)
    return Polynomial({((Base(value), whole(exponent)),): 1})


def _has_no_sign(factors: Monomial) -> bool:
    """Whether every factor is positive because the product is: all but one are powers that have no sign.

    The square of a sum is not: its root is an absolute value.
    """
    if not all(isinstance(a, (Exponential, Base)) for a, _ in factors):
        return False
    signed = [e for a, e in factors if isinstance(a, Base) and isinstance(e, int)]
    return not signed or (len(signed) == 1 and signed[0] % 2 == 1)


def _positive_content(value: Polynomial) -> Number:
    """The coefficient that a root can be taken of on its own, or one."""
    if value.constant() is not None:
        return 1
    return abs(content(value)[0])


def constant_power(value: Number, exponent: Number) -> Polynomial:
    """A positive number to a power between zero and one: a root is that of primes, times a number; else a base."""
    fraction = Fraction(value)
    if exponent != Fraction(1, 2):
        return Polynomial({((Base(polynomial(value)), whole(exponent)),): 1})
    result = polynomial(Fraction(1, fraction.denominator))
    for prime, often in prime_powers(fraction.numerator * fraction.denominator):
        result = result * prime ** (often // 2)
        if often % 2:
            result = result * Polynomial({((Base(polynomial(prime)), exponent),): 1})
    return result


def exponential(value: Polynomial) -> Polynomial:
    """``exp(log x)`` is x, and sums become products; ``z / (z + 1)`` is taken as ``1 - 1 / (z + 1)``."""
    result = ONE
    for monomial, coefficient in _divided(value).terms.items():
        inner = _logarithm_of(monomial)
        if inner is not None:
            result = result * power(inner, coefficient)
        else:
            result = result * Polynomial({((Exponential(Polynomial({monomial: 1})), coefficient),): 1})
    return result


def _divided(value: Polynomial) -> Polynomial:
    """A value in which no addend has the leading one of a sum that it is divided by; a few steps of it at most."""
    for _ in range(_MOST_STEPS):
        step = next(filter(None, map(_remainder, value.terms)), None)
        if step is None:
            break
        monomial, instead = step
        value = value + (instead - Polynomial({monomial: 1})) * value.terms[monomial]
    return value


def _remainder(monomial: Monomial) -> tuple[Monomial, Polynomial] | None:
    """``m * r / p`` with ``p = c * m + q`` as ``r / c - r * q / (c * p)``; None where there is no such quotient."""
    factors = dict(monomial)
    for base in (a for a, e in monomial if isinstance(a, Base) and e == -1):
        leading = max(base.value.terms, key=lambda m: (sum(e for _, e in m), [a.key for a, _ in m]))
        if not leading or any(e <= 0 or factors.get(a, 0) < e for a, e in leading):
            continue
        own = base.value.terms[leading]
        rest = Polynomial({sorted_monomial((a, e) for a, e in _less(factors, leading) if a != base): 1})
        others = base.value - Polynomial({leading: own})
        return monomial, (rest - rest * others * Polynomial({((base, -1),): 1})) * whole(1 / Fraction(own))
    return None


def _less(factors: Mapping[Atom, Number], leading: Monomial) -> Iterator[tuple[Atom, Number]]:
    """What is left of factors that are divided by others."""
    by = dict(leading)
    return ((a, whole(e - by.get(a, 0))) for a, e in factors.items() if e != by.get(a, 0))


def logarithm(value: Polynomial) -> Polynomial:
    """``log(p^e * rest)`` is ``e*log(p) + log(rest)`` for exponentials and for sums of such; the value is positive."""
    if value == ONE:
        return ZERO
    if not value.terms:
        raise ZeroDivisionError
    total = ZERO
    for sum_ in _positive_divisors(value):
        value, total = _multiplied_out(value, sum_), total - logarithm(sum_.value)
    for atom in dict.fromkeys(a for m in value.terms for a, e in m if isinstance(a, Exponential) and e < 0):
        least = min(dict(m).get(atom, 0) for m in value.terms)  # log(exp(y - x) + 1) is log(exp(y) + exp(x)) - x
        value, total = value * Polynomial({((atom, -least),): 1}), total + atom.exponent * least
    if value == ONE:
        return total
    coefficient, common, rest = content(value)
    rest = rest * coefficient
    for atom, exponent in common:
        if isinstance(atom, Exponential):
            total = total + atom.exponent * exponent
        else:
            rest = rest * Polynomial({((atom, exponent),): 1})
    single = rest.single()
    if single is not None and single[1] == 1 and len(single[0]) == 1 and single[0][0][1] == -1:
        # What is positive is one over something positive.
        atom = single[0][0][0]
        return total - logarithm(atom.value if isinstance(atom, Base) else polynomial(atom))
    return total if rest == ONE else total + polynomial(Function("log", (rest,), curve=LOG))


def is_positive_sum(value: Polynomial) -> bool:
    """Whether a value is a sum of products of exponentials, and of powers of such sums, with positive coefficients."""
    return bool(value.terms) and all(
        coefficient > 0
        and all(isinstance(a, Exponential) or (isinstance(a, Base) and is_positive_sum(a.value)) for a, _ in monomial)
        for monomial, coefficient in value.terms.items()
    )


def _positive_divisors(value: Polynomial) -> list[Base]:
    """The positive sums that some addend of a value is divided by, once."""
    found = [a for monomial in value.terms for a, exponent in monomial if isinstance(a, Base) and exponent == -1]
    return [a for a in dict.fromkeys(found) if is_positive_sum(a.value)]


def _multiplied_out(value: Polynomial, by: Base) -> Polynomial:
    """The value times a sum, which cancels where it is divided by it, and is multiplied out elsewhere."""
    total = ZERO
    for monomial, coefficient in value.terms.items():
        rest = Polynomial({tuple((a, e) for a, e in monomial if a != by or e != -1): coefficient})
        total = total + (rest if (by, -1) in monomial else rest * by.value)
    return total


def _logarithm_of(monomial: Monomial) -> Polynomial | None:
    """The argument, where the monomial is a logarithm."""
    if len(monomial) == 1 and monomial[0][1] == 1:
        atom = monomial[0][0]
        if isinstance(atom, Function) and atom.name == "log":
            return atom.arguments[0]
    return None
