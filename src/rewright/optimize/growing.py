"""Sums that follow running values by a factor and by other sums of the same pass, as that of an entropy does.

A sum of ``f(x, m)``, where m are running extrema, can follow them exactly when

    f(x, m') = g(m, m') * (f(x, m) + each(m, m') + h_1(m, m') b_1(x, m) + h_2(m, m') b_2(x, m) + ...)

where b_j are the bodies of other sums of the pass, because then its state S moves with theirs, and with how many
elements were seen: ``S' = g * (S + seen * each + h_1 S_1 + h_2 S_2 + ...)``. A factor alone is the case without
addends (``derive``). Bodies are a product of exponentials, of which g is what is left at m', and of a polynomial in
m; what moves of that is matched with the bodies, exponentials included. So ``exp(s - m) (s - m)`` moves by
``m - m'`` times the sum of ``exp(s - m)``, and ``x - m`` by ``m - m'`` for every element.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rewright.optimize.expressions import Expression, Table
from rewright.optimize.shifting import Monomial, Polynomial, Reader, moved, written


@dataclass(frozen=True, slots=True)
class Growth:
    """What is added to a state before its factor: ``each`` for all that was seen, and multiples of other states.

    Coefficients are over the old and new values of what is followed, as the factor is.
    """

    each: Expression | None
    others: tuple[tuple[Expression, Expression], ...]
    """Coefficients, each with the sum of the same pass that it multiplies."""

    def text(self, closed: Callable[[Expression], str]) -> str:
        """The sum of what is added, in a language in which a state was ``old`` and its number, and ``begin`` were seen.

        ``closed`` writes a coefficient.
        """
        parts = [f"old{other.number} * {closed(coefficient)}" for coefficient, other in self.others]
        if self.each is not None:
            parts.append(f"begin * {closed(self.each)}")
        return f"({' + '.join(parts)})"

    def following(self, depends: Sequence[Expression]) -> list[Expression]:
        """Of what the state depends on, the values that are followed; the others are those of ``others``."""
        sums = {other.number for _, other in self.others}
        return [e for e in depends if e.number not in sums]


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
    parts: dict[Monomial, Polynomial] = {}
    for monomial, coefficient in moved(whole, {e.number: gap.number for e, gap in gaps.items()}).items():
        varying = tuple((n, p) for n, p in monomial if n in reader.varying)
        kept = tuple(one for one in monomial if one not in varying)
        parts.setdefault(varying, {})[kept] = coefficient
    leaves = {**reader.leaves, **{e.number: e for e in new}, **{gap.number: gap for gap in gaps.values()}}
    each: Expression | None = None
    others: list[tuple[Expression, Expression]] = []
    for varying, coefficients in parts.items():
        found = written(table, coefficients, leaves, polynomial[0])
        if found is None or any(e in new for e in _plain(found, gaps.values())):
            return None  # more than a difference of what is followed: large terms would cancel
        factors = dict(rest)
        for number, power in varying:
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
