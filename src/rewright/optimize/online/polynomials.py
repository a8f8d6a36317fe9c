"""Bodies of sums as polynomials in running values, in which what cancels is gone before code is printed.

So the squared deviation from a mean moves by the square of the difference of two means, as in T. F. Chan, G. H. Golub
and R. J. LeVeque, Algorithms for computing the sample variance, The American Statistician 37 (1983).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import isfinite

from rewright.optimize.scalars.expressions import Expression, Table, contains, is_plain_cast
from rewright.terms.normal.polynomials.atoms import (
    NO_NAMES,
    ONE,
    ZERO,
    Atom,
    Monomial,
    Number,
    Polynomial,
    TooHard,
    integer_power,
    polynomial,
)

POLYNOMIAL = ("add", "subtract", "multiply", "divide", "negate")
"""The functions that a polynomial is made of."""
_HIGHEST = 8
"""Degree of a polynomial that is taken apart."""
_LARGEST = 2**100
"""Numerators and denominators that a float32 can hold the size of."""


class Leaf(Atom):
    """An expression as a variable; variables stand in the order in which expressions were made."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        super().__init__(number.to_bytes(8, "big"), NO_NAMES, 0, False)
        self.number = number

    def __str__(self) -> str:
        return f"#{self.number}"


def powers(monomial: Monomial) -> tuple[tuple[int, int], ...]:
    """The expressions of a monomial by number, with their powers."""
    return tuple((atom.number, int(power)) for atom, power in monomial if isinstance(atom, Leaf))


def degree(monomial: Monomial) -> Number:
    """The sum of the powers."""
    return sum(power for _, power in monomial)


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
            return polynomial(Leaf(e.number))
        if e.op == "constant" and e.dtype.is_float:
            return polynomial(Fraction(e.value)) if isfinite(e.value) else None
        if is_plain_cast(e):
            return self.polynomial(e.arguments[0])
        if e.op in POLYNOMIAL and e.dtype.is_float:
            parts = [self.polynomial(a) for a in e.arguments]
            return _combine(e.op, [p for p in parts if p is not None]) if None not in parts else None
        return None if self.follows(e) else self.leaf(e)

    def follows(self, e: Expression) -> bool:
        """Whether a value has a running one in it."""
        return any(contains(e, x) for x in self._running)

    def leaf(self, e: Expression) -> Polynomial:
        """A value as a variable."""
        self.leaves[e.number] = e
        if self._lane in e.free:
            self.varying.add(e.number)
        return polynomial(Leaf(e.number))

    def product(self, factors: Sequence[Expression]) -> Polynomial | None:
        """The product of values as a polynomial; None where it is none."""
        total: Polynomial | None = ONE
        for factor in factors:
            found = self.polynomial(factor)
            total = None if found is None or total is None else multiply(total, found)
        return total


def _combine(op: str, parts: list[Polynomial]) -> Polynomial | None:
    left, right = parts[0], parts[-1]
    if op == "negate":
        return -left
    if op == "multiply":
        return multiply(left, right)
    if op == "divide":
        number = right.constant()
        return left * (Fraction(1) / number) if number else None
    return left + right if op == "add" else left - right


def multiply(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """The product of two polynomials; None where its degree is too high."""
    try:
        product = left * right
    except TooHard:
        return None
    return None if any(degree(m) > _HIGHEST for m in product.terms) else product


def difference(whole: Polynomial, gaps: Mapping[int, int]) -> Polynomial:
    """``f(x, e + gap) - f(x, e)``, for every e that has a gap."""
    total = ZERO
    for monomial, coefficient in whole.terms.items():
        product = polynomial(coefficient)
        for number, power in powers(monomial):
            moved = polynomial(Leaf(number))
            if number in gaps:
                moved = moved + polynomial(Leaf(gaps[number]))
            product = product * integer_power(moved, power)
        total = total + product
    return total - whole


def express(table: Table, value: Polynomial, leaves: Mapping[int, Expression], like: Expression) -> Expression | None:
    """The polynomial as an expression; None where a coefficient is no quotient of two floats."""
    total: Expression | None = None
    for monomial, coefficient in value.terms.items():
        top, bottom = coefficient.numerator, coefficient.denominator
        if max(abs(top), bottom) > _LARGEST or Fraction(float(top)) != top or Fraction(float(bottom)) != bottom:
            return None
        term = table.constant(float(top), like.dtype)
        for number, power in powers(monomial):
            for _ in range(power):
                term = table.apply("multiply", term, leaves[number])
        if bottom != 1:
            term = table.apply("divide", term, table.constant(float(bottom), like.dtype))
        total = term if total is None else table.apply("add", total, term)
    return total if total is not None else table.constant(0.0, like.dtype)
