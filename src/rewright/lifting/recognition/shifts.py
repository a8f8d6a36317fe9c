"""Exponentials of differences as quotients, and factors that stand still as factors of the whole sum.

A softmax subtracts a maximum that cancels, and attention that goes over the keys block by block subtracts another one
in every block and mends what it has so far: both are ``sum(exp(s) v) / sum(exp(s))``. That form needs three laws of
exponentials, ``exp(s - m) = exp(s) / exp(m)``, that ``exp(m)`` is not zero, and that a factor without the index of a
sum is a factor of the sum. They are used where a proof without them fails, because most programs need none of them and
are recognised faster as they were written.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from fractions import Fraction

from rewright.claims.language import Access, Add, Addend, Ranged, applies, folds
from rewright.lifting.masks.positions import factors_of, ranges_of
from rewright.lifting.recognition.signs import is_positive
from rewright.lifting.terms.index import variables_in
from rewright.lifting.terms.store import Operand, Terms


def is_maximum(terms: Terms, term: int) -> bool:
    """Whether a term is what programs shift exponents by: a maximum over an axis, or of two such."""
    label = terms.label(term)
    if isinstance(label, Ranged):
        return folds(terms.label(terms.children(term)[0]), "maximum")
    return applies(label, "maximum")


def is_shift(terms: Terms, term: int) -> bool:
    """Whether a term is the exponential of such a maximum, or one over it."""
    label = terms.label(term)
    if applies(label, "reciprocal"):
        return is_shift(terms, terms.children(term)[0])
    return applies(label, "exponential") and is_maximum(terms, terms.children(term)[0])


def shifts(terms: Terms, addend: Addend) -> tuple[dict[Operand, Fraction], list[tuple[Fraction, int, Access]]]:
    """The maxima that an exponent adds, with their factors, and the rest of the exponent.

    The factor of a maximum that one part of it subtracts and another adds is zero.
    """
    found: dict[Operand, Fraction] = {}
    rest: list[tuple[Fraction, int, Access]] = []
    for power, (term, access) in _addends(terms, addend.coefficient, (addend.term, addend.access)):
        if is_maximum(terms, term):
            found[term, access] = found.get((term, access), Fraction(0)) + power
        else:
            rest.append((power, term, access))
    return found, rest


def _addends(terms: Terms, power: Fraction, operand: Operand) -> Iterator[tuple[Fraction, Operand]]:
    """The addends of a sum, also of those that are sums of maxima: ``(x - max x) - log y``."""
    for factor, (term, access) in terms.expand(*operand):
        inner = terms.expand(term, access) if isinstance(terms.label(term), Add) else []
        if (term, access) != operand and any(is_maximum(terms, one) for _, (one, _) in inner):
            yield from _addends(terms, power * factor, (term, access))
        else:
            yield power * factor, (term, access)


def exponential_of(terms: Terms, power: Fraction, operand: Operand) -> Operand:
    """``exp(power * operand)``, as a reciprocal where the power is negative, so that opposite ones meet."""
    size = abs(power)
    inner = operand if size == 1 else terms.freeze(Addend(size, *operand))
    grown = terms.apply("exponential", [inner])
    return grown if power > 0 else terms.apply("reciprocal", [grown])


def inverse(terms: Terms, factor: Operand) -> Operand:
    """One over a factor; of one over something positive that is the positive."""
    inner = inverse_of(terms, factor)
    return terms.apply("reciprocal", [factor]) if inner is None else inner


def cancel_inverses(terms: Terms, factors: list[Operand]) -> list[Operand]:
    """A product without positive factors that stand beside their own inverse."""
    left = list(factors)
    for factor in factors:
        inner = inverse_of(terms, factor)
        if inner is not None and inner in left and factor in left:
            left.remove(inner)
            left.remove(factor)
    return left


def within_sums(terms: Terms, operands: list[Operand]) -> Addend | None:
    """A product whose shifts cancel in every addend of a sum beside them; None where it has no such.

    The gradient of a softmax is ``e/m (m a - m b)``.
    """
    factors = [factor for operand in operands for factor in factors_of(terms, operand)]
    moving = [f for f in factors if is_shift(terms, f[0])]
    for number, (term, access) in enumerate(factors):
        found = terms.expand(term, access)
        chosen = [f for f in moving if all(_cancels(terms, f, operand) for _, operand in found)]
        if len(found) < 2 or not chosen:
            continue
        total = terms.add([(c, *terms.multiply([operand, chosen[0]])) for c, operand in found])
        if total is None:
            return Addend(Fraction(0), terms.one, ())
        rest = [*factors[:number], *factors[number + 1 :]]
        rest.remove(chosen[0])
        left = [(total.term, total.access), *rest]
        again = within_sums(terms, left)
        if again is None:
            return Addend(total.coefficient, *terms.multiply(left))
        return Addend(total.coefficient * again.coefficient, again.term, again.access)
    return None


def _cancels(terms: Terms, factor: Operand, operand: Operand) -> bool:
    """Whether a factor stands beside its inverse in a product."""
    before = factors_of(terms, operand)
    opposite = inverse_of(terms, factor)
    return opposite in before if opposite is not None else any(inverse_of(terms, f) == factor for f in before)


def inverse_of(terms: Terms, factor: Operand) -> Operand | None:
    """The positive term that a factor is one over, if it is."""
    if not applies(terms.label(factor[0]), "reciprocal"):
        return None
    (inner,) = terms.operands(factor)
    return inner if is_positive(terms, inner, ranges_of(terms.window)) else None


def fraction(terms: Terms, addend: Addend) -> tuple[list[Addend], Operand] | None:
    """A sum of fractions as the addends of the numerator over one denominator, which is positive; None without any.

    Sums over a part of a range are open in the numerator, so that parts add up to the whole.
    """
    found = terms.expand(addend.term, addend.access)
    below = [inner for _, operand in found for f in factors_of(terms, operand) if (inner := inverse_of(terms, f))]
    if len(found) < 2 or not below:
        return None
    denominator = terms.multiply(list(dict.fromkeys(below)))
    above = [(c * addend.coefficient, terms.multiply([operand, denominator])) for c, operand in found]
    return [_open(terms, c, operand) for c, operand in above], denominator


def _open(terms: Terms, coefficient: Fraction, operand: Operand) -> Addend:
    """An addend with the one sum over a part of a range among its factors open."""
    factors = factors_of(terms, operand)
    sums = [f for f in factors if is_part(terms, f[0])]
    if len(sums) != 1:
        return Addend(coefficient, *operand)
    (term, access), hole = sums[0], terms.children(sums[0][0])[0]
    rest = [f for f in factors if f is not sums[0]]
    return Addend(coefficient, *terms.multiply([(hole, access), *rest]), ((hole, terms.region(term)),))


def is_part(terms: Terms, term: int) -> bool:
    return isinstance(terms.label(term), Ranged) and folds(terms.label(terms.children(term)[0]), "sum")


def standing(terms: Terms, addend: Addend, folded: Container[int]) -> tuple[Addend, Operand] | None:
    """A product as what a sum over some variables runs over, and the factors that stand still; None without such."""
    if not applies(terms.label(addend.term), "multiply") or addend.parts:
        return None
    factors = factors_of(terms, (addend.term, addend.access))
    still = [f for f in factors if not any(v in folded for v in variables_in(f[1]))]
    if not still or len(still) == len(factors):
        return None
    moving = [f for f in factors if f not in still]
    return Addend(addend.coefficient, *terms.multiply(moving)), terms.multiply(still)
