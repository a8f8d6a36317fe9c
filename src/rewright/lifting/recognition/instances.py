"""Terms of the sequential program that a rank's sum, product or function is an instance of.

A rank that holds some rows of one head reads one tensor at that head and those rows, and another one at rows that are
numbered over all heads. The sequential program reads both with a variable for the head. Which of its terms this is an
instance of is found by the operands that they share, and where it is read is solved for, digit by digit. A solution is
compared with all that is read, so that a wrong digit costs a proof and never soundness.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, combinations, islice, permutations, product
from math import gcd, lcm

from rewright.claims.language import Access, Add, Addend, Apply, Content, Index, applies, read_at
from rewright.ir.dims import Dim, divide
from rewright.lifting.terms.index import (
    at_zero,
    build,
    compose,
    identity,
    magnitude,
    split_constant,
    substitute,
    variables_in,
)
from rewright.lifting.terms.store import COMMUTATIVE, ONE, POINTWISE, Named, Operand, Terms

_MOST_TERMS = 32
"""Terms of the sequential program over one operand that are looked at."""

_MOST_SINGLE = 3
"""More indices of one value than this are all read, or none of them."""

_MOST_ORDERS = 24
"""Orders of operands that are read at several places that are tried."""


def instance(terms: Terms, addend: Addend) -> Addend | None:
    """The same numbers as a term of the sequential program read elsewhere; None where no term is known to be that."""
    found = _found(terms, (addend.term, addend.access))
    if found is None:
        return None
    factor, (term, place) = found
    return Addend(addend.coefficient * factor, term, place, addend.parts)


def instance_of_any(terms: Terms, addend: Addend) -> Addend | None:
    """The same, whatever the variables are those of."""
    found = _instance(terms, (addend.term, addend.access))
    if found is None:
        return None
    factor, (term, place) = found
    return Addend(addend.coefficient * factor, term, place, addend.parts)


def elsewhere(terms: Terms, operand: Operand) -> Operand | None:
    """The same for a guard or a function, which has no coefficient."""
    found = _found(terms, operand)
    return None if found is None else found[1]


def _found(terms: Terms, operand: Operand) -> tuple[Fraction, Operand] | None:
    """A term, a factor and where to read it; of indices of one value as few as may be are taken for that value."""
    term, access = operand
    single = {v for v, n in enumerate(terms.window or ()) if n == 1}
    mine = sorted(single & variables_in(access))
    for count in range(len(mine) + 1) if len(mine) <= _MOST_SINGLE else (0, len(mine)):
        for chosen in combinations(mine, count):
            found = _instance(terms, (term, at_zero(access, chosen)))
            if found is not None:
                return found
    return None


def _is_like(one: Content, other: Content | Named) -> bool:
    """Whether two terms are sums, guards, or the same function."""
    if isinstance(one, Apply):
        return applies(other, one.function)
    return type(one) is type(other)


def _instance(terms: Terms, operand: Operand) -> tuple[Fraction, Operand] | None:
    term, access = operand
    own = terms.label(term)
    children = terms.children(term) if isinstance(own, POINTWISE) else ()
    if len(children) < 2 or not isinstance(own, POINTWISE):
        return None
    reads = [compose(read, access) for read in terms.accesses(term)]
    coefficients: Sequence[Fraction] = terms.coefficients(term) if isinstance(own, Add) else ()
    direction = _direction(coefficients)
    commutes = isinstance(own, Add) or (isinstance(own, Apply) and own.function in COMMUTATIVE)
    for other in islice(terms.users.get(max(children), ()), _MOST_TERMS):
        content = terms.node_label(other).content
        if terms.graph.node(other)[1] != children or not _is_like(own, content) or not isinstance(content, POINTWISE):
            continue
        wanted = content.accesses
        factors = content.coefficients if isinstance(content, Add) else ()
        there = _direction(factors)
        if sorted(map(abs, direction)) != sorted(map(abs, there)):
            continue
        opposite = tuple(-c for c in there)
        for order in _orders(children) if commutes else (range(len(children)),):
            if direction and tuple(direction[k] for k in order) not in (there, opposite):
                continue
            place = _solve(wanted, [reads[k] for k in order], terms.arity[other])
            if place is None:
                continue
            axes = identity(terms.arity[other])
            made = [(child, compose(read, axes)) for child, read in zip(children, wanted, strict=True)]
            # So that a trace has it.
            found, _ = terms.make(partial(read_at, content), made)
            if found == other:
                return (coefficients[order[0]] / factors[0] if factors else ONE), (other, place)
    return None


def _direction(coefficients: Sequence[Fraction]) -> tuple[int, ...]:
    """Whole numbers without a common factor that are in proportion to these, with their signs."""
    denominator = lcm(*(c.denominator for c in coefficients))
    whole = [c.numerator * (denominator // c.denominator) for c in coefficients]
    common = gcd(*whole) or 1
    return tuple(c // common for c in whole)


@lru_cache(1 << 12)
def _orders(children: tuple[int, ...]) -> tuple[Sequence[int], ...]:
    """The orders of operands that leave every term where it is: equal terms change places."""
    places = [[k for k, child in enumerate(children) if child == own] for own in dict.fromkeys(children)]
    flat = [k for group in places for k in group]
    found: list[Sequence[int]] = []
    for moved in islice(product(*(islice(permutations(group), _MOST_ORDERS) for group in places)), _MOST_ORDERS):
        order = dict(zip(flat, chain.from_iterable(moved), strict=True))
        found.append([order[k] for k in range(len(children))])
    return tuple(found)


def _solve(wanted: Sequence[Access], reads: Sequence[Access], arity: int) -> Access | None:
    """Indices for the variables of a term at which it reads its operands as they are read here."""
    found: dict[int, Index] = {}
    pairs = [pair for own, read in zip(wanted, reads, strict=True) for pair in zip(own, read, strict=True)]
    for (low, strides), (there, others) in sorted(pairs, key=lambda pair: len(pair[0][1])):
        fresh = [(v, s) for v, s in strides if v not in found]
        if fresh and not solve(found, (low, strides), (there, others), fresh):
            return None
    if len(found) != arity:
        return None
    if any(compose(own, found) != read for own, read in zip(wanted, reads, strict=True)):
        return None
    return tuple(found[v] for v in range(arity))


def _turns(stride: Dim) -> bool:
    return isinstance(stride, int) and stride < 0


def solve(found: dict[int, Index], own: Index, read: Index, fresh: Sequence[tuple[int, Dim]]) -> bool:
    """Find variables of one index: what is a multiple of the largest stride is that variable's, as of a digit."""
    known = substitute((own[0], tuple((v, s) for v, s in own[1] if v in found)), found)
    constant, strides = read[0] - known[0], dict(read[1])
    for v, s in known[1]:
        strides[v] = strides.get(v, 0) - s
    if any(v < 0 for v in strides) or any(v < 0 for v, _ in fresh):
        return False
    if any(_turns(s) and not _turns(dict(read[1]).get(v, 0)) for v, s in strides.items()):
        return False  # right where that variable has one value, and another way to read it is simpler
    for v, stride in sorted(fresh, key=lambda item: magnitude(item[1]), reverse=True):
        quotient, constant = split_constant(constant, stride)
        mine = {u: whole for u, s in strides.items() if s != 0 and (whole := divide(s, stride)) is not None}
        found[v] = build(quotient, mine)
        strides = {u: s for u, s in strides.items() if u not in mine}
    return True
