"""Bodies of sums as polynomials in running values, in which what cancels is gone before code is printed.

So the squared deviation from a mean moves by the square of the difference of two means, as in T. F. Chan, G. H. Golub
and R. J. LeVeque, Algorithms for computing the sample variance, The American Statistician 37 (1983).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import comb, isfinite

from rewright.optimize.scalars.expressions import Expression, Table, contains

POLYNOMIAL = ("add", "subtract", "multiply", "divide", "negate")
"""The functions that a polynomial is made of."""
_HIGHEST = 8
"""Degree of a polynomial that is taken apart."""
_LARGEST = 2**100
"""Numerators and denominators that a float32 can hold the size of."""

Monomial = tuple[tuple[int, int], ...]
"""Powers by the numbers of expressions, in order."""
Polynomial = dict[Monomial, Fraction]


class Reader:
    """Bodies as polynomials over running values and the largest parts that contain none of them."""

    def __init__(self, running: Collection[Expression], lane: str) -> None:
        self._running, self._lane = running, lane
        self.leaves: dict[int, Expression] = {}
        self.varying: set[int] = set()
        """The leaves that depend on the lane."""

    def polynomial(self, e: Expression) -> Polynomial | None:
        """The value as a polynomial; None where it is none."""
        if e in self._running:
            return {((e.number, 1),): Fraction(1)}
        if e.op == "constant" and e.dtype.is_float:
            return {(): Fraction(e.value)} if isfinite(e.value) else None
        if e.op.startswith("convert_") and e.dtype.is_float and e.arguments[0].dtype.is_float:
            return self.polynomial(e.arguments[0])
        if e.op in POLYNOMIAL and e.dtype.is_float:
            parts = [self.polynomial(a) for a in e.arguments]
            return _combined(e.op, [p for p in parts if p is not None]) if None not in parts else None
        return None if self.follows(e) else self.leaf(e)

    def follows(self, e: Expression) -> bool:
        """Whether a value has a running one in it."""
        return any(contains(e, x) for x in self._running)

    def leaf(self, e: Expression) -> Polynomial:
        """A value as a variable."""
        self.leaves[e.number] = e
        if self._lane in e.free:
            self.varying.add(e.number)
        return {((e.number, 1),): Fraction(1)}

    def product(self, factors: Sequence[Expression]) -> Polynomial | None:
        """The product of values as a polynomial; None where it is none."""
        total: Polynomial | None = {(): Fraction(1)}
        for factor in factors:
            found = self.polynomial(factor)
            total = None if found is None or total is None else multiply(total, found)
        return total


def _combined(op: str, parts: list[Polynomial]) -> Polynomial | None:
    left, right = parts[0], parts[-1]
    if op == "negate":
        return {m: -c for m, c in left.items()}
    if op == "multiply":
        return multiply(left, right)
    if op == "divide":
        if len(right) != 1:
            return None
        ((monomial, coefficient),) = right.items()
        return multiply(left, {(): 1 / coefficient}) if monomial == () and coefficient else None
    total = dict(left)
    for monomial, coefficient in right.items():
        _add(total, monomial, coefficient if op == "add" else -coefficient)
    return total


def multiply(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """The product of two polynomials; None where its degree is too high."""
    total: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            _add(total, _times(a, b), x * y)
    return None if any(sum(p for _, p in m) > _HIGHEST for m in total) else total


def add(left: Polynomial, right: Polynomial, times: int = 1) -> Polynomial:
    """The sum of a polynomial and a multiple of another one."""
    total = dict(left)
    for monomial, coefficient in right.items():
        _add(total, monomial, coefficient * times)
    return total


def _times(a: Monomial, b: Monomial) -> Monomial:
    powers = dict(a)
    for number, power in b:
        powers[number] = powers.get(number, 0) + power
    return tuple(sorted(powers.items()))


def _add(total: Polynomial, monomial: Monomial, coefficient: Fraction) -> None:
    total[monomial] = total.get(monomial, Fraction(0)) + coefficient
    if not total[monomial]:
        del total[monomial]


def difference(whole: Polynomial, gaps: Mapping[int, int]) -> Polynomial:
    """``f(x, e + gap) - f(x, e)``, for every e that has a gap."""
    total = whole
    for number, gap in gaps.items():
        total = _shifted(total, number, gap)
    total = dict(total)
    for monomial, coefficient in whole.items():
        _add(total, monomial, -coefficient)
    return total


def _shifted(whole: Polynomial, number: int, gap: int) -> Polynomial:
    """``f(x, e + gap)``."""
    total: Polynomial = {}
    for monomial, coefficient in whole.items():
        power = dict(monomial).get(number, 0)
        rest = tuple((n, p) for n, p in monomial if n != number)
        for k in range(power + 1):
            kept: Monomial = ((number, power - k),) if power > k else ()
            new: Monomial = ((gap, k),) if k else ()
            _add(total, _times(_times(rest, kept), new), coefficient * comb(power, k))
    return total


def express(table: Table, value: Polynomial, leaves: Mapping[int, Expression], like: Expression) -> Expression | None:
    """The polynomial as an expression; None where a coefficient is no quotient of two floats."""
    total: Expression | None = None
    for monomial, coefficient in value.items():
        top, bottom = coefficient.numerator, coefficient.denominator
        if max(abs(top), bottom) > _LARGEST or Fraction(float(top)) != top or Fraction(float(bottom)) != bottom:
            return None
        term = table.constant(float(top), like.dtype)
        for number, power in monomial:
            for _ in range(power):
                term = table.apply("multiply", term, leaves[number])
        if bottom != 1:
            term = table.apply("divide", term, table.constant(float(bottom), like.dtype))
        total = term if total is None else table.apply("add", total, term)
    return total if total is not None else table.constant(0.0, like.dtype)
