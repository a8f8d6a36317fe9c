"""Products over ranges in normal form, by the sums of their factors.

A product depends on how often each factor occurs: on an element of the free commutative monoid over the numbers. That
monoid lies in a group, so ``sum of factor(f(k))`` over a range has the normal form of sums, with differences of prefix
sums, and two products are equal where these sums are. A product of several atoms counts each of them. Nothing is
divided, so that factors may be zero; and no factor is known to be equal to another but where it is the same term.
"""

from __future__ import annotations

from rewright.terms.normal.arithmetic.bits import CONJUNCTION, conjunction
from rewright.terms.normal.arithmetic.cases import each, finite
from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.facts.context import Context, Values
from rewright.terms.normal.facts.guards import Leaf, Value, at_least_zero
from rewright.terms.normal.folds.sums import sum_over
from rewright.terms.normal.polynomials.atoms import (
    FACTOR,
    ONE,
    ZERO,
    Atom,
    Base,
    Exponential,
    Function,
    Indicator,
    Monomial,
    Number,
    Polynomial,
    Product,
    polynomial,
)
from rewright.terms.normal.polynomials.curves import apply_uninterpreted
from rewright.terms.normal.polynomials.powers import exponential, integer_power, logarithm
from rewright.terms.normal.polynomials.ranged import PrefixSum


def product_over(context: Context, name: str, size: Polynomial, value: Value, integer: bool) -> Value:
    """The product of a guarded value over ``0 <= name < size``; raises TooHard for infinite factors.

    Exponentials leave as the exponential of a sum.
    """

    def counted(leaf: Leaf) -> Value:
        return _count(_plain(finite(leaf))[0])

    def exponent(leaf: Leaf) -> Value:
        return _plain(finite(leaf))[1]

    def leaf(factors: Leaf, exponents: Leaf) -> Value:
        return multiplied(context, finite(factors), integer) * exponential(finite(exponents))

    sums = [sum_over(context, name, size, each(context, part, value)) for part in (counted, exponent)]
    return each(context, leaf, *sums)


def multiplied(context: Context, factors: Polynomial, integer: bool) -> Polynomial:
    """The product of what a sum counts; single factors are written out where no other part divides."""
    single: dict[Monomial, Number] = {}
    rest: dict[Monomial, Number] = {}
    for monomial, count in factors.terms.items():
        (single if _is_factor(monomial) else rest)[monomial] = count
    if not all(isinstance(c, int) and c > 0 for c in single.values()) or not _never_divides(context, rest):
        return polynomial(Product(factors, integer))
    result = polynomial(Product(Polynomial(rest), integer)) if rest else ONE
    for ((atom, _),), count in single.items():
        assert isinstance(atom, Function) and isinstance(count, int)
        result = result * integer_power(atom.arguments[0], count)
    return result


def rebuild_function(context: Context, atom: Function, values: Values) -> Polynomial:
    """A function with symbols replaced."""
    return rebuild(context, atom, tuple(substitute(context, a, values) for a in atom.arguments))


def rebuild(context: Context, atom: Function, arguments: tuple[Polynomial, ...]) -> Polynomial:
    """A function of other arguments, in normal form."""
    if atom.name == "log":
        return logarithm(arguments[0])
    if atom.name == FACTOR:
        return _count(arguments[0])
    if atom.name == CONJUNCTION:
        return conjunction(context, arguments)
    if isinstance(atom, Product):
        return multiplied(context, arguments[0], atom.integer)
    return apply_uninterpreted(atom.name, arguments, atom.integer, atom.curve)


def _plain(value: Polynomial) -> tuple[Polynomial, Polynomial]:
    """A single term without its exponentials, and their exponent."""
    single = value.single()
    if single is None:
        return value, ZERO
    monomial, coefficient = single
    kept = tuple((a, e) for a, e in monomial if not isinstance(a, Exponential))
    exponents = (a.exponent * e for a, e in monomial if isinstance(a, Exponential))
    return Polynomial({kept: coefficient}), sum(exponents, start=ZERO)


def _count(value: Polynomial) -> Polynomial:
    """The factors of a value: of a single term its atoms as often as they occur."""
    single = value.single()
    if single is None:
        return _factor(value)
    monomial, coefficient = single
    total = ZERO if coefficient == 1 else _factor(polynomial(coefficient))
    for atom, exponent in monomial:
        total = total + _of_power(atom, exponent)
    return total


def _of_power(atom: Atom, exponent: Number) -> Polynomial:
    if isinstance(exponent, int) and not isinstance(atom, Base):
        if isinstance(atom, Product) and exponent > 0:
            return atom.arguments[0] * exponent
        # One over an atom is a factor of its own.
        return _factor(Polynomial({((atom, 1 if exponent > 0 else -1),): 1})) * abs(exponent)
    return _factor(Polynomial({((atom, exponent),): 1}))


def _factor(value: Polynomial) -> Polynomial:
    return polynomial(Function(FACTOR, (value,)))


def _is_factor(monomial: Monomial) -> bool:
    if len(monomial) != 1 or monomial[0][1] != 1:
        return False
    atom = monomial[0][0]
    return isinstance(atom, Function) and atom.name == FACTOR


def _never_divides(context: Context, terms: dict[Monomial, Number]) -> bool:
    """Whether every count is that of a sum over a range that is not reversed."""
    return all(
        count > 0 and all(isinstance(atom, Indicator) or _counts_up(context, atom) for atom, _ in monomial)
        for monomial, count in terms.items()
    )


def _counts_up(context: Context, atom: Atom) -> bool:
    if not isinstance(atom, PrefixSum) or not all(context.holds(at_least_zero(bound)) for bound in atom.bounds):
        return False
    return all(
        count > 0 and all(isinstance(a, Indicator) or _is_factor(((a, 1),)) for a, _ in monomial)
        for monomial, count in atom.body.terms.items()
    )
