"""Sums that follow running values by a factor and by other sums of the same pass, as that of an entropy does.

A sum of ``f(x, m)``, where m are running extrema, can follow them exactly when

    f(x, m') = g(m, m') * (f(x, m) + each(m, m') + h_1(m, m') b_1(x, m) + h_2(m, m') b_2(x, m) + ...)

where b_j are the bodies of other sums of the pass, because then its state S moves with theirs, and with how many
elements were seen: ``S' = g * (S + seen * each + h_1 S_1 + h_2 S_2 + ...)``. A factor alone is the case without
addends (``derive``). Bodies are a product of exponentials, of which g is what is left at m', and of a polynomial in
m; what moves of that is matched with the bodies, exponentials included. So ``exp(s - m) (s - m)`` moves by
``m - m'`` times the sum of ``exp(s - m)``, and ``x - m`` by ``m - m'`` for every element.

What is followed may also be an estimate of a mean (``estimates``). Central moments are such sums: that of
``(x - e)^3`` moves by ``3 (e - e') (x - e)^2 + 3 (e - e')^2 (x - e) + (e - e')^3`` (P. Pebay, Formulas for robust,
one-pass parallel computation of covariances and arbitrary-order statistical moments, Sandia report 2008-6212). The sum
of ``x - e`` is zero but for the rounding of e, which is why it is kept: the identity holds for any e, and an error of
the estimate is none of the state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from rewright.optimize.online.polynomials import Leaf, Reader, degree, difference, express, multiply, powers
from rewright.optimize.online.update import Estimate, Growth
from rewright.optimize.scalars.expressions import Expression, Table, contains, is_plain_cast
from rewright.terms.normal.polynomials.atoms import ONE, Monomial, Number, Polynomial

Factors = frozenset[tuple[int, int, int]]
"""A product as the numbers of its factors, their exponents, and how often they occur."""


def growth(
    table: Table,
    lane: str,
    polynomial: Sequence[Expression],
    rest: Mapping[tuple[int, int], int],
    new: Mapping[Expression, Expression],
    bodies: Mapping[Factors, Expression],
) -> Growth | None:
    """How a sum of a product grows when what it follows moves; None where no other sum moves so.

    Args:
        polynomial: the factors that are polynomials in what is followed.
        rest: the other factors, by number and exponent, with how often they occur.
        new: for each followed value its placeholder.
        bodies: the other sums of the pass by their bodies.
    """
    reader = Reader(frozenset(new), lane)
    whole: Polynomial | None = reader.product(polynomial)
    if whole is None:
        return None
    gaps = {e: table.plain("subtract", (renewed, e)) for e, renewed in new.items()}
    parts: dict[Monomial, dict[Monomial, Number]] = {}
    for monomial, coefficient in difference(whole, {e.number: gap.number for e, gap in gaps.items()}).terms.items():
        varying = _varying(monomial, reader)
        kept = tuple(one for one in monomial if one not in varying)
        parts.setdefault(varying, {})[kept] = coefficient
    leaves = {**reader.leaves, **{e.number: e for e in new}, **{gap.number: gap for gap in gaps.values()}}
    each: Expression | None = None
    others: list[tuple[Expression, Expression]] = []
    for varying, coefficients in parts.items():
        found = express(table, Polynomial(coefficients), leaves, polynomial[0])
        if found is None or any(e in new for e in _plain(found, gaps.values())):
            return None  # more than a difference of what is followed: large terms would cancel
        factors = dict(rest)
        for number, power in powers(varying):
            factors[number, 1] = factors.get((number, 1), 0) + power
        if not factors:
            each = found
            continue
        other = bodies.get(frozenset((n, sign, count) for (n, sign), count in factors.items()))
        if other is None:
            return None
        others.append((found, other))
    return Growth(each, tuple(others))


def _plain(value: Expression, gaps: Collection[Expression]) -> Iterator[Expression]:
    """The parts of a value that are in no gap."""
    if value not in gaps:
        yield value
        for argument in value.arguments:
            yield from _plain(argument, gaps)


Bodies = Sequence[tuple[Expression, Sequence[tuple[Expression, int]]]]
"""The sums of a pass, each with the factors and exponents of what its state is the sum of."""


def growth_of_estimates(
    table: Table,
    lane: str,
    factors: Sequence[tuple[Expression, int]],
    new: Mapping[Expression, Expression],
    found: Sequence[Estimate],
    bodies: Bodies,
) -> Growth | None:
    """How a sum of a product grows when estimates, and extrema, move; None where the sums of the pass do not say it.

    Args:
        factors: of the body, with exponents 1 and -1.
        new: for each followed extremum its placeholder.
        found: the estimates in the body.
        bodies: the sums of the pass.
    """
    renewed = {**new, **{e.leaf: e.renewed for e in found}}
    gaps = {e: table.plain("subtract", (after, e)) for e, after in renewed.items()}
    reader = _Products(table, frozenset(renewed), lane)
    whole = reader.of_factors(factors)
    if whole is None:
        return None
    # The sum of x - e, be it zero but for rounding, rather than that of x: what is small has a small error.
    order = sorted(bodies, key=lambda body: not any(contains(f, e.leaf) for f, _ in body[1] for e in found))
    units = [(e, unit) for e, own in order if (unit := reader.of_factors(own)) is not None]
    taken = _taken_apart(difference(whole, {e.number: gap.number for e, gap in gaps.items()}), units, reader)
    if taken is None:
        return None
    leaves = {**reader.leaves, **{e.number: e for e in renewed}, **{gap.number: gap for gap in gaps.values()}}
    each, others = _write(table, *taken, leaves, factors[0][0]) or (None, ())
    coefficients = [c for c, _ in others] + ([] if each is None else [each])
    if not coefficients or any(e in renewed for c in coefficients for e in _plain(c, gaps.values())):
        return None  # more than a difference of what is followed: large terms would cancel
    return Growth(each, others, tuple(found))


class _Products(Reader):
    """Bodies as polynomials in which what holds nothing that is followed is taken apart into factors alone."""

    def __init__(self, table: Table, followed: frozenset[Expression], lane: str) -> None:
        super().__init__(followed, lane)
        self._table = table

    def of_factors(self, factors: Sequence[tuple[Expression, int]]) -> Polynomial | None:
        """A product of powers; exponentials are one variable each, whatever is in them."""
        total: Polynomial | None = ONE
        for factor, sign in factors:
            if sign < 0:
                one = self._table.constant(1.0, factor.dtype)
                factor = self._table.plain("divide", (one, factor))
            exponential = factor.op == "exponential"
            part = self.leaf(factor) if exponential or sign < 0 else self.polynomial(factor)
            if part is None or total is None or (sign < 0 and self.follows(factor)):
                return None
            total = multiply(total, part)
        return total

    def polynomial(self, e: Expression) -> Polynomial | None:
        """The value as a polynomial; None where it is none."""
        while is_plain_cast(e):
            (e,) = e.arguments
        if e.op in ("add", "subtract", "negate", "divide") and not self.follows(e):
            return self.leaf(e)
        return super().polynomial(e)


def _varying(monomial: Monomial, reader: Reader) -> Monomial:
    return tuple((leaf, p) for leaf, p in monomial if isinstance(leaf, Leaf) and leaf.number in reader.varying)


def _taken_apart(
    value: Polynomial, units: Sequence[tuple[Expression, Polynomial]], reader: Reader
) -> tuple[Polynomial, dict[Expression, Polynomial]] | None:
    """``constant`` and coefficients with ``value = constant + sum of coefficient * unit``, none of which varies."""
    left, found = value, dict[Expression, Polynomial]()
    leads = {lead: (e, unit) for e, unit in reversed(units) if (lead := _lead(unit, reader)) is not None}
    while varying := {_varying(m, reader) for m in left.terms} - {()}:
        top = max(varying, key=lambda m: (degree(m), powers(m)))
        if top not in leads:
            return None
        e, unit = leads[top]
        own = {leaf for leaf, _ in top}
        tops = {m: c for m, c in left.terms.items() if _varying(m, reader) == top}
        share = Polynomial({tuple(x for x in m if x[0] not in own): c for m, c in tops.items()})
        share = share * (Fraction(1) / unit.terms[top])
        product = multiply(share, unit)
        if product is None:
            return None
        found[e] = share
        left = left - product
    return left, found


def _lead(unit: Polynomial, reader: Reader) -> Monomial | None:
    """What varies in the one part of highest degree of a polynomial, where a number is before it; None without one."""
    degrees = {m: degree(_varying(m, reader)) for m in unit.terms}
    highest = max(degrees.values(), default=0)
    tops = [m for m, degree in degrees.items() if degree == highest]
    return tops[0] if highest and len(tops) == 1 and _varying(tops[0], reader) == tops[0] else None


def _write(
    table: Table,
    constant: Polynomial,
    others: Mapping[Expression, Polynomial],
    leaves: Mapping[int, Expression],
    like: Expression,
) -> tuple[Expression | None, tuple[tuple[Expression, Expression], ...]] | None:
    """What is added for each element and the multiples of other sums; None where a number is no quotient of floats."""
    each = express(table, constant, leaves, like) if constant.terms else None
    parts = [(express(table, p, leaves, like), e) for e, p in others.items() if p.terms]
    if (constant.terms and each is None) or any(c is None for c, _ in parts):
        return None
    return each, tuple((c, e) for c, e in parts if c is not None)
