"""Other ways to write a difference, for where the normal forms of equal values are not the same."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import TypeGuard

from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.facts.context import Context
from rewright.terms.normal.facts.guards import Guard, at_least, at_least_zero, is_zero
from rewright.terms.normal.facts.signs import is_positive
from rewright.terms.normal.folds.items import largest, mapped_largest, parts_of_item, split_item
from rewright.terms.normal.folds.sums import open_sum, sum_terms
from rewright.terms.normal.polynomials.atoms import (
    FACTOR,
    ONE,
    ZERO,
    Atom,
    Base,
    Element,
    Exponential,
    Floor,
    Function,
    Indicator,
    Monomial,
    Number,
    Polynomial,
    Product,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.curves import Growing, apply_uninterpreted, outermost, same_sign
from rewright.terms.normal.polynomials.powers import exponential, power
from rewright.terms.normal.polynomials.ranged import Item, Largest, PrefixSum, bound_name, inner_atoms

_MOST_TERMS = 4
"""So many terms at the end of a sum are taken out of it."""
_MOST_PARTS = 4
"""A range is dealt out into this many parts."""


def regroupings(context: Context, value: Polynomial) -> Iterator[Polynomial]:
    """The value in other ways, each with fewer terms in its ranges or fewer functions under a maximum."""
    for way in (_dealt_out, _factors_outside, _functions_outside, _turned_around):
        found = way(context, value)
        if found != value:
            yield found


def without_last_terms(context: Context, value: Polynomial) -> Polynomial:
    """A sum up to ``n + 1`` is the one up to ``n`` and the term at ``n``."""
    alike: dict[tuple[bytes, bytes], dict[int, PrefixSum]] = {}
    for atom in outside_of_binders(value):
        if isinstance(atom, PrefixSum) and len(atom.bounds) == 1:
            last = atom.bounds[0].terms.get((), 0)
            if isinstance(last, int):
                alike.setdefault((atom.body.key, (atom.bounds[0] - last).key), {})[last] = atom
    for sums in alike.values():
        first = min(sums)
        for last in sorted(sums):
            if first < last <= first + _MOST_TERMS:
                body, name = sums[first].body, bound_name(sums[first].depth, 0)
                terms = [substitute(context, body, {name: sums[first].bounds[0] + k}) for k in range(last - first)]
                value = with_atom(value, sums[last], sum(terms, start=polynomial(sums[first])))
    return value


def in_tiles(context: Context, atom: PrefixSum | Largest) -> Polynomial | None:
    """A sum over k of what has ``floor(k / c)`` in it as one for each tile, a maximum as one of whole tiles and a rest.

    None where the ends are not whole tiles, and not known to be so many of them and a rest.
    """
    if isinstance(atom, Largest):
        items = [part for item in atom.items for part in _item_in_tiles(context, item)]
        return largest(context, items) if len(items) > len(atom.items) else None
    found = _tiles(context, atom.body, bound_name(atom.depth, 0), atom.bounds[0]) if len(atom.bounds) == 1 else None
    if found is None:
        return None
    size, count = found
    binders, body = open_sum(context, atom)
    name, high = binders[0][0], binders[0][2]
    total = ZERO
    for tile in range(count + 1):
        binder = (name, ZERO, polynomial(size) if tile < count else high - count * size)
        with context.ranges([binder]):
            moved = substitute(context, body, {name: symbol(name) + tile * size})
            total = total + sum_terms(context, [binder], moved)
    return total


def _item_in_tiles(context: Context, item: Item) -> list[Item]:
    for number, (low, high) in enumerate(item.ranges):
        found = None if low.terms else _tiles(context, item.body, bound_name(item.depth, number), high)
        whole = ZERO if found is None else polynomial(found[0] * found[1])
        if found is not None and context.holds(at_least(high, whole + 1)):  # no part is empty
            return parts_of_item(context, item, number, ((ZERO, whole), (whole, high)))
    return [item]


def _tiles(context: Context, body: Polynomial, name: str, high: Polynomial) -> tuple[int, int] | None:
    """The size of the tiles in which a variable below an end is divided, and how many are whole; None elsewhere."""
    sizes = (a.divisor.constant() for a in inner_atoms(body) if _is_digit(a, name))
    size, count = max((c for c in sizes if isinstance(c, int)), default=0), 0
    if size < 2:
        return None
    while count < _MOST_TILES and context.holds(at_least_zero(high - (count + 1) * size)):
        count += 1
    is_known = count and context.holds(at_least_zero(polynomial((count + 1) * size) - high))
    return (size, count) if is_known else None


_MOST_TILES = 16
"""Tiles that a sum is dealt out in."""


def _is_digit(atom: Atom, name: str) -> TypeGuard[Floor]:
    """Whether an atom is the quotient of a variable by a number."""
    return isinstance(atom, Floor) and atom.numerator == symbol(name)


# --- every k-th term


def _dealt_out(context: Context, value: Polynomial) -> Polynomial:
    """What goes over ``k n`` terms as k times what goes over n of them, where something else goes over n."""
    atoms = {atom.key: atom for atom in inner_atoms(value) if isinstance(atom, (PrefixSum, Largest))}
    sizes = {size.key for atom in atoms.values() for size in _sizes(atom)}
    for atom in atoms.values():
        if _is_bound(atom):
            continue
        if isinstance(atom, PrefixSum):
            several = _sum_dealt_out(context, atom, sizes)
            value = value if several.atom() == atom else with_atom(value, atom, several)
        else:
            items = [part for item in atom.items for part in _item_dealt_out(context, item, sizes)]
            if len(items) > len(atom.items):
                value = with_atom(value, atom, largest(context, items))
    return value


def _sizes(atom: PrefixSum | Largest) -> Iterator[Polynomial]:
    if isinstance(atom, PrefixSum):
        yield from atom.bounds
    else:
        yield from (high - low for item in atom.items for low, high in item.ranges)


def _parts(size: Polynomial, sizes: set[bytes]) -> int:
    """Into how many parts a range is dealt out, so that one of them has a size that is there."""
    if not size.integer or not size.terms or size.constant() is not None:
        return 1
    divisor = math.gcd(*(int(c) for c in size.terms.values()))
    ways = (k for k in range(2, _MOST_PARTS + 1) if divisor % k == 0)
    return next((k for k in ways if _divide(size, k).key in sizes), 1)


def _divide(size: Polynomial, parts: int) -> Polynomial:
    terms: dict[tuple[tuple[Atom, Number], ...], Number] = {m: int(c) // parts for m, c in size.terms.items()}
    return Polynomial(terms)


def _sum_dealt_out(context: Context, atom: PrefixSum, sizes: set[bytes]) -> Polynomial:
    position, parts = next(((n, k) for n, b in enumerate(atom.bounds) if (k := _parts(b, sizes)) > 1), (0, 1))
    # Terms are simplified as those of a range that is not reversed, which a sum is over only then.
    if parts == 1 or not all(context.holds(at_least_zero(bound)) for bound in atom.bounds):
        return polynomial(atom)
    binders, body = open_sum(context, atom)
    name, low, high = binders[position]
    binders[position] = (name, low, _divide(high, parts))
    total = ZERO
    with context.ranges(binders):
        for part in range(parts):
            total = total + sum_terms(context, binders, substitute(context, body, {name: symbol(name) * parts + part}))
    return total


def _item_dealt_out(context: Context, item: Item, sizes: set[bytes]) -> list[Item]:
    for number, (low, high) in enumerate(item.ranges):
        parts = _parts(high - low, sizes)
        if parts > 1:
            return split_item(context, item, number, parts, _divide(high - low, parts))
    return [item]


# --- functions that grow


def _factors_outside(context: Context, value: Polynomial) -> Polynomial:
    """The largest of some values, all times one that is positive, is that one times the largest of the others."""
    for atom in {a.key: a for a in inner_atoms(value) if isinstance(a, Largest)}.values():
        factor = _shared_factor(atom)
        if not _is_bound(atom) and factor != ONE and is_positive(context, factor):
            value = with_atom(value, atom, factor * mapped_largest(context, atom, partial(_divided_by, factor)))
    return value


def _shared_factor(atom: Largest) -> Polynomial:
    """The product of what all values of a maximum have as a factor, whatever the variables of their ranges are."""
    shared: Monomial | None = None
    for item in atom.items:
        single = item.body.single()
        if single is None or not item.always:
            return ONE
        shared = tuple(f for f in single[0] if not _is_bound(f[0]) and (shared is None or f in shared))
    return Polynomial({shared: 1}) if shared else ONE


def _divided_by(factor: Polynomial, value: Polynomial) -> Polynomial:
    return value * power(factor, -1)


def _is_bound(atom: Atom) -> bool:
    return any(name.startswith("%") for name in atom.free)


def _functions_outside(context: Context, value: Polynomial) -> Polynomial:
    """The largest of one growing function is that function of the largest."""
    for atom in {a.key: a for a in inner_atoms(value) if isinstance(a, Largest)}.values():
        if not all(item.always for item in atom.items) or _is_bound(atom):
            continue
        found = [outermost(item.body) for item in atom.items]
        if all(found) and len({kind for kind, _ in filter(None, found)}) == 1:
            value = with_atom(value, atom, _function_outside(context, atom))
        else:
            value = with_atom(value, atom, _monotone_outside(context, atom))
    return value


def _function_outside(context: Context, atom: Largest) -> Polynomial:
    kinds: list[Growing] = []

    def argument(body: Polynomial) -> Polynomial:
        found = outermost(body)
        assert found is not None, "a function under fresh names is the same function"
        kinds.append(found[0])
        return found[1]

    inner = mapped_largest(context, atom, argument)
    return kinds[0].of(inner)


_ARGUMENT, _OTHER = (Function(name, ()) for name in ("?argument", "?other"))


def _monotone_outside(context: Context, atom: Largest) -> Polynomial:
    """The largest value of an expression in one term that grows with it, or falls: that of its largest, or smallest."""
    first = atom.items[0].body
    for inner in inner_atoms(first):
        expression = with_atom(first, inner, polynomial(_ARGUMENT))
        ways = [_terms_of(item.body, expression) for item in atom.items]
        if not _is_bound(inner) or _depends(expression) or expression.atom() == _ARGUMENT or not all(ways):
            continue
        direction = _direction(expression)
        if direction:

            def argument(body: Polynomial, direction: int = direction, form: Polynomial = expression) -> Polynomial:
                return polynomial(_terms_of(body, form)[0]) * direction

            best = mapped_largest(context, atom, argument) * direction
            return with_atom(expression, _ARGUMENT, best)
    return polynomial(atom)


def _depends(value: Polynomial) -> bool:
    return any(name.startswith("%") for name in value.free)


def _terms_of(body: Polynomial, expression: Polynomial) -> list[Atom]:
    """The terms that a body is an expression of."""
    return [a for a in inner_atoms(body) if with_atom(body, a, polynomial(_ARGUMENT)) == expression]


def _direction(expression: Polynomial) -> int:
    """1 for an expression that grows with its argument, -1 for one that falls, 0 where neither is known."""
    argument, other = polynomial(_ARGUMENT), polynomial(_OTHER)
    difference = same_sign(expression - with_atom(expression, _ARGUMENT, other))
    slope = difference.terms.get(((_ARGUMENT, 1),), 0)
    if not slope or difference != (argument - other) * slope:
        return 0
    return 1 if slope > 0 else -1


# --- conditions the other way around


def _turned_around(context: Context, value: Polynomial) -> Polynomial:
    """Sums with ``1 - [g >= 0] + [g = 0]`` for ``[-g >= 0]``, where ``[g >= 0]`` is a condition of others.

    Of two equal numbers either may be the larger one, and what is made of them is the same.
    """
    guards = {a.guard for a in inner_atoms(value) if isinstance(a, Indicator) and a.guard.kind == "real>=0"}
    turned = [guard for guard in guards if _turned(guard) in guards and _turned(guard).key < guard.key]
    for atom in {a.key: a for a in outside_of_binders(value) if turned and isinstance(a, PrefixSum)}.values():
        body = atom.body
        for guard in sorted(turned, key=lambda guard: guard.key):
            body = _the_other_way(body, guard)
        if body != atom.body:
            binders, opened = open_sum(context, atom, body)
            with context.ranges(binders):
                value = with_atom(value, atom, sum_terms(context, binders, opened))
    return value


def _turned(guard: Guard) -> Guard:
    """The condition on a real number the other way around."""
    found = at_least_zero(-guard.value)
    return found if isinstance(found, Guard) else guard


def _the_other_way(body: Polynomial, guard: Guard) -> Polynomial:
    """A body without a condition: where that is another one than the opposite, its number is zero."""
    old, opposite, tie = Indicator(guard), polynomial(Indicator(_turned(guard))), is_zero(guard.value)
    total = ZERO
    for monomial, coefficient in body.terms.items():
        others = tuple(factor for factor in monomial if factor[0] != old)
        rest = Polynomial({others: coefficient})
        if len(others) == len(monomial) or isinstance(tie, bool):
            total = total + rest
        else:
            total = total + rest - rest * opposite + _where_zero(rest, guard.value) * polynomial(Indicator(tie))
    return total


def _where_zero(value: Polynomial, number: Polynomial) -> Polynomial:
    """A value where a number is zero, which then says what one of the elements is that it is a sum of."""
    alone = [(m[0][0], c) for m, c in number.terms.items() if len(m) == 1 and m[0][1] == 1]
    for atom, coefficient in sorted(alone, key=lambda pair: (not _is_bound(pair[0]), pair[0].key)):
        known = polynomial(atom) - number * (Fraction(1) / coefficient)
        if isinstance(atom, Element) and atom not in inner_atoms(known):
            return with_atom(value, atom, known)
    return value


# --- denominators


def clear_denominators(value: Polynomial) -> Polynomial:
    """The value times the negative powers of sums in it: it vanishes where the value does."""
    for _ in range(8):
        worst: dict[Atom, Number] = {}
        for monomial in value.terms:
            for atom, exponent in monomial:
                if isinstance(atom, Base) and exponent < 0:
                    worst[atom] = min(worst.get(atom, 0), exponent)
        if not worst:
            break
        for atom in sorted(worst, key=lambda a: a.key):
            ceiling = -(Fraction(worst[atom]).numerator // Fraction(worst[atom]).denominator)
            value = value * Polynomial({((atom, ceiling),): 1})
    return value


# --- atoms replaced


def with_atom(value: Polynomial, old: Atom, new: Polynomial) -> Polynomial:
    """The value with an atom replaced, outside of binders."""
    kept = {m: c for m, c in value.terms.items() if not any(_may_change(a, e, old) for a, e in m)}
    total = Polynomial(kept)
    for monomial, coefficient in value.terms.items():
        if monomial in kept:
            continue
        product = polynomial(coefficient)
        for atom, exponent in monomial:
            product = product * power(_replace_atom(atom, old, new), exponent)
        total = total + product
    return total


def _may_change(atom: Atom, exponent: Number, old: Atom) -> bool:
    """Whether a factor has the atom in it, or is a power of a sum that the next product multiplies out."""
    is_product = isinstance(atom, Base) and exponent >= 1
    return is_product or any(inner == old for inner in outside_of_binders(polynomial(atom)))


def outside_of_binders(value: Polynomial) -> Iterator[Atom]:
    """The atoms of a value that :func:`with_atom` replaces, at any depth."""
    for atom in value.atoms():
        yield atom
        if isinstance(atom, Exponential):
            inside = [atom.exponent]
        elif isinstance(atom, Base):
            inside = [atom.value]
        else:
            inside = list(atom.arguments) if _is_rewritten(atom) else []
        for inner in inside:
            yield from outside_of_binders(inner)


def _is_rewritten(atom: Atom) -> TypeGuard[Function]:
    return isinstance(atom, Function) and atom.name not in ("log", FACTOR) and not isinstance(atom, Product)


def _replace_atom(atom: Atom, old: Atom, new: Polynomial) -> Polynomial:
    if atom == old:
        return new
    if isinstance(atom, Exponential):
        return exponential(with_atom(atom.exponent, old, new))
    if isinstance(atom, Base):
        return with_atom(atom.value, old, new)
    if _is_rewritten(atom):
        arguments = tuple(with_atom(a, old, new) for a in atom.arguments)
        return apply_uninterpreted(atom.name, arguments, atom.integer, atom.curve)
    return polynomial(atom)
