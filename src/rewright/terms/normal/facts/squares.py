"""Polynomials that are sums of squares: ``x^2 + 2 x y + y^2`` is never negative, whatever x and y are."""

from __future__ import annotations

import math
from fractions import Fraction

from rewright.terms.normal.polynomials.atoms import Atom, Monomial, Number, Polynomial, sorted_monomial
from rewright.terms.normal.polynomials.ranged import PrefixSum

_MOST = 12
"""Squares in a polynomial that is looked at."""
_Matrix = list[list[Fraction]]


def is_never_negative(value: Polynomial) -> bool:
    """Whether a polynomial is a sum of squares, or is one where sums of n squares are the least that they can be.

    By Cauchy and Schwarz ``sum(x^2)`` is not below ``sum(x)^2 / n``, so a variance is not negative.
    """
    least = _with_least_squares(value)
    return not least.terms or any(map(is_sum_of_squares, (value, least)))


def _with_least_squares(value: Polynomial) -> Polynomial:
    """What a polynomial is not below: ``sum(x)^2 / n`` stands for a sum of n squares, where the sum of x is there."""
    sums = {atom for atom in value.atoms() if isinstance(atom, PrefixSum)}
    for monomial, coefficient in value.terms.items():
        atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
        single = atom.body.single() if isinstance(atom, PrefixSum) and coefficient > 0 else None
        root = _root(single[0]) if single is not None and single[1] == 1 else None
        if root is None or not isinstance(atom, PrefixSum):
            continue
        plain, count = PrefixSum(atom.bounds, Polynomial({root: 1})), _count(atom)
        if plain in sums and count:
            least = Polynomial({((plain, 2),): Fraction(coefficient) / count})
            value = value - Polynomial({monomial: coefficient}) + least
    return value


def _count(atom: PrefixSum) -> int:
    """Over how many terms a sum goes; nought where that is no number."""
    ends = [bound.constant() for bound in atom.bounds]
    return math.prod(end if isinstance(end, int) and end > 0 else 0 for end in ends)


def is_sum_of_squares(value: Polynomial) -> bool:
    """Whether a polynomial is ``v' G v`` for the roots v of its squares and a G that is positive semidefinite.

    A product that is that of several pairs of roots is put in one place of G. Atoms are real numbers here.
    """
    roots = [root for root in map(_root, value.terms) if root is not None]
    if not 0 < len(roots) <= _MOST:
        return False
    pairs = {_product(a, b): (i, j) for i, a in enumerate(roots) for j, b in enumerate(roots[: i + 1])}
    pairs |= {_product(root, root): (i, i) for i, root in enumerate(roots)}
    gram = [[Fraction(0)] * len(roots) for _ in roots]
    for monomial, coefficient in value.terms.items():
        place = pairs.get(monomial)
        if place is None:
            return False
        i, j = place
        gram[i][j] += Fraction(coefficient) / (1 if i == j else 2)
        gram[j][i] = gram[i][j]
    return _is_semidefinite(gram)


def _root(monomial: Monomial) -> Monomial | None:
    """The monomial of which another one is the square; None where there is none."""
    if any(not isinstance(exponent, int) or exponent % 2 or exponent < 0 for _, exponent in monomial):
        return None
    return tuple((atom, exponent // 2) for atom, exponent in monomial)


def _product(left: Monomial, right: Monomial) -> Monomial:
    exponents: dict[Atom, Number] = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return sorted_monomial(exponents.items())


def _is_semidefinite(matrix: _Matrix) -> bool:
    """Whether a symmetric matrix of rationals has no negative eigenvalue, by elimination."""
    rest = [list(row) for row in matrix]
    while rest:
        pivot, row = rest[0][0], rest[0]
        if pivot < 0 or (pivot == 0 and any(row)):
            return False
        scale = [x / pivot if pivot else Fraction(0) for x in row]
        rest = [[rest[i][j] - scale[i] * row[j] for j in range(1, len(row))] for i in range(1, len(row))]
    return True
