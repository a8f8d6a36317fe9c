"""Sums and the terms at their ends as sums over longer, or shorter, ranges."""

from __future__ import annotations

from itertools import product

from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import Leaf, at_least_zero
from rewright.terms.normal.folds.sums import open_sum, sum_terms
from rewright.terms.normal.polynomials.atoms import Monomial, Polynomial, TooHard
from rewright.terms.normal.polynomials.ranged import PrefixSum


def joined(context: Context, value: Leaf) -> Leaf:
    """What was summed in parts, with what the short ones are written out as put back into the long one."""
    return with_last_terms(context, value) if isinstance(value, Polynomial) else value


def with_last_terms(context: Context, value: Polynomial) -> Polynomial:
    """A sum up to n and the term at n as one up to ``n + 1``; and one without its last term as one up to ``n - 1``."""
    while True:  # each time there is a monomial less
        found = next((new for m in value.terms if (new := _with_term(context, value, m)) is not None), None)
        if found is None:
            return value
        value = found


def _with_term(context: Context, value: Polynomial, monomial: Monomial) -> Polynomial | None:
    """The value with one more, or one less, term in a sum of a monomial, where that term is there too."""
    coefficient = value.terms[monomial]
    for atom, exponent in monomial:
        if not isinstance(atom, PrefixSum) or exponent != 1 or len(value.terms) < 2:
            continue
        rest = Polynomial({tuple(f for f in monomial if f[0] != atom): coefficient})
        for position, step in product(range(len(atom.bounds)), (1, -1)):
            try:
                term, other = _last_term(context, atom, position, step)
            except (ZeroDivisionError, TooHard):
                continue
            single = (term * rest).single()
            if single is None or value.terms.get(single[0]) != single[1] or single[0] == monomial:
                continue
            ends = [bound - int(step < 0 and n == position) for n, bound in enumerate(atom.bounds)]
            if all(context.holds(at_least_zero(end)) for end in ends):  # no range is reversed
                return value - term * rest - Polynomial({monomial: coefficient}) + other * rest
    return None


def _last_term(context: Context, atom: PrefixSum, position: int, step: int) -> tuple[Polynomial, Polynomial]:
    """What a sum has more, or less, with one more term along a range, or with one less, and that sum."""
    binders, body = open_sum(context, atom)
    name, low, high = binders[position]
    term = substitute(context, body, {name: high if step > 0 else high - 1})
    longer = [b if b[0] != name else (name, low, high + step) for b in binders]
    others = [b for b in binders if b[0] != name]
    return sum_terms(context, others, term) * step, sum_terms(context, longer, body)
