"""Functions of which only the name and the curve are known: even, odd or growing ones.

Of all values with one sign :func:`same_sign` is the simplest, so that ``exp(a) >= exp(b)`` is ``a >= b``.

Functions are compared where they have a value; that they have one is required where they are made.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    leading_monomial,
    polynomial,
    sorted_monomial,
)
from rewright.terms.normal.polynomials.powers import exponential, is_positive_sum, logarithm, power

_STEPS = 8
_MOST_TERMS = 8
"""Longer sums are not multiplied out."""


def apply_uninterpreted(
    name: str, arguments: tuple[Polynomial, ...], integer: bool = False, curve: Curve | None = None
) -> Polynomial:
    """A function of arguments: of one that is even or odd the argument has the sign that sorts first."""

    def applied(*values: Polynomial) -> Polynomial:
        return polynomial(Function(name, values, integer, curve))

    if curve is None or curve.parity == "none":
        return applied(*arguments)
    (argument,) = arguments
    if not argument.terms:
        return applied(argument) if curve.at_zero is None else ONE * Fraction(curve.at_zero)
    if argument.terms[leading_monomial(argument)] > 0:
        return applied(argument)
    return applied(-argument) * (-1 if curve.parity == "odd" else 1)


@dataclass(frozen=True)
class Named:
    """A function that grows."""

    name: str
    curve: Curve


_EXP = Named("exp", Curve(grows=True, parity="none", at_zero=1.0, root=None))


@dataclass(frozen=True)
class Growing:
    """``outside * f(inside * u)``, which grows with u; f has a name, or is a power with this exponent."""

    function: Named | Fraction
    outside: int
    inside: int

    def of(self, value: Polynomial) -> Polynomial:
        """The function of a value."""
        return _apply(self.function, value * self.inside) * self.outside


def same_sign(value: Polynomial) -> Polynomial:
    """A value that is positive, zero or negative where this one is, with fewer functions in it where that is known."""
    for _ in range(_STEPS):
        if value.integer or len(value.terms) > _MOST_TERMS:
            break
        found = _without_positive_factors(value)
        found = _without_functions(found) or found
        if found == value:
            break
        value = found
    return value


def _without_positive_factors(value: Polynomial) -> Polynomial:
    """The value divided by what is positive in all of its addends, and multiplied by positive denominators."""
    least: dict[Atom, Number] = {}
    for atom in {a.key: a for monomial in value.terms for a, _ in monomial if _is_positive(a)}.values():
        exponents = [dict(monomial).get(atom, 0) for monomial in value.terms]
        if isinstance(atom, Base) and all(isinstance(e, int) for e in exponents):
            least[atom] = min(exponents)
        elif min(exponents) > 0 or max(exponents) < 0:
            least[atom] = min(exponents) if min(exponents) > 0 else max(exponents)
    factor = sorted_monomial((a, -e) for a, e in least.items() if e)
    return value * Polynomial({factor: 1}) if factor else value


def _is_positive(atom: Atom) -> bool:
    return isinstance(atom, Exponential) or (isinstance(atom, Base) and is_positive_sum(atom.value))


def _without_functions(value: Polynomial) -> Polynomial | None:
    """What is left where both addends are one growing function, or the only addend is one."""
    terms = list(value.terms.items())
    if not terms or len(terms) > 2:
        return None
    (monomial, coefficient), (other, last) = (*terms, ((), 0))[:2]
    sign = 1 if coefficient > 0 else -1
    if not monomial:
        (monomial, coefficient), (other, last), sign = (other, last), (monomial, coefficient), 1 if last > 0 else -1
    threshold = -Fraction(last) / Fraction(coefficient) if coefficient else Fraction(0)
    if threshold == 1:
        found = _difference(monomial, other)
    elif threshold == -1 and other:
        found = _sum(monomial, other)
    else:
        found = _against_number(monomial, threshold) if not other else None
    return found * sign if found is not None else None


def _difference(left: Monomial, right: Monomial) -> Polynomial | None:
    """``a - b``, or what has its sign, for two products that are one monotone function of a and of b."""
    one, other = _function_of(left), _function_of(right)
    if one is not None and other is not None and one[0] == other[0]:
        return (one[1] - other[1]) * _growth(one[0])
    return None if right else _against_number(left, Fraction(1))


def _sum(left: Monomial, right: Monomial) -> Polynomial | None:
    """``a + b`` for two products that are one growing function of a and of b, which is odd: ``f(b) = -f(-b)``."""
    one, other = _function_of(left), _function_of(right)
    if one is None or other is None or one[0] != other[0] or isinstance(one[0], Fraction):
        return None
    return one[1] + other[1] if one[0].curve.parity == "odd" else None


def _against_number(monomial: Monomial, threshold: Fraction) -> Polynomial | None:
    """A value with the sign of a function of one argument minus a number."""
    found = _function_of(monomial)
    if found is None:
        return None
    function, argument = found
    if isinstance(function, Named) and threshold == 0:
        root = function.curve.root
        return None if root is None else argument - Fraction(root)
    if isinstance(function, Fraction) and abs(function) == Fraction(1, 2) and threshold > 0:
        return (argument - (threshold if function > 0 else 1 / threshold) ** 2) * _growth(function)
    return None


def _function_of(monomial: Monomial) -> tuple[Named | Fraction, Polynomial] | None:
    """The strictly monotone function that a product is, and of what; one is the exponential of nothing."""
    if all(isinstance(atom, Exponential) for atom, _ in monomial):
        return _EXP, sum((a.exponent * e for a, e in monomial if isinstance(a, Exponential)), start=ZERO)
    atom, exponent = monomial[0]
    if len(monomial) == 1 and isinstance(exponent, Fraction):
        return exponent, atom.value if isinstance(atom, Base) else polynomial(atom)
    if len(monomial) == 1 and exponent == 1 and isinstance(atom, Function) and atom.curve and atom.curve.grows:
        return Named(atom.name, atom.curve), atom.arguments[0]
    return _power_of_atom(monomial) if len(monomial) == 2 else None


def _power_of_atom(monomial: Monomial) -> tuple[Fraction, Polynomial] | None:
    """A power of one atom that is written as a root and a whole power."""
    for (root, fraction), (atom, exponent) in (monomial, monomial[::-1]):
        if isinstance(root, Base) and isinstance(fraction, Fraction) and root.value.atom() == atom:
            return fraction + exponent, root.value
    return None


def _growth(function: Named | Fraction) -> int:
    """Whether a function grows, 1, or falls, -1."""
    return -1 if isinstance(function, Fraction) and function < 0 else 1


def outermost(value: Polynomial) -> tuple[Growing, Polynomial] | None:
    """The growing function that a value is, and of what; None where it is none that is known to grow."""
    single = value.single()
    if single is None or abs(single[1]) != 1 or not single[0]:
        return None
    found = _function_of(single[0])
    if found is None:
        return None
    outside = 1 if single[1] > 0 else -1
    inside = outside * _growth(found[0])
    return Growing(found[0], outside, inside), found[1] * inside


def _apply(function: Named | Fraction, value: Polynomial) -> Polynomial:
    if isinstance(function, Fraction):
        return power(value, function)
    if function == _EXP:
        return exponential(value)
    if function.name == "log":
        return logarithm(value)
    return apply_uninterpreted(function.name, (value,), curve=function.curve)
