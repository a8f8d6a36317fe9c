"""Sums over ranges in normal form: differences of prefix sums.

Guards on the variable become its range, factors without it leave, inner sums are pulled up, the rest falls into
connected components of variables, and a sum over ``[low, high)`` is stored as F(high) - F(low) with F(t) the sum over
``[0, t)``. Concatenation, slices, pads and splits of sums are then linear algebra.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import partial

from rewright.terms.normal.arithmetic.binders import (
    Binder,
    Guards,
    merge_digits,
    name_binders,
    open_binders,
    orders,
    placements,
    range_of_guard,
    split_digits,
    strided_binder,
    without,
)
from rewright.terms.normal.arithmetic.cases import branch, each, finite, leaves, minus, only_where, plus
from rewright.terms.normal.arithmetic.substitution import substitute, substitute_guard
from rewright.terms.normal.facts.context import Context, Values
from rewright.terms.normal.facts.guards import (
    MINUS_INFINITY,
    NOT_A_NUMBER,
    PLUS_INFINITY,
    Choice,
    Infinite,
    Leaf,
    NotANumber,
    Value,
    at_least,
    choice,
    less_than,
)
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Atom,
    Guard,
    Indicator,
    Monomial,
    Number,
    Polynomial,
    Symbol,
    TooHard,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.ranged import PrefixSum


def sum_over(context: Context, name: str, size: Polynomial, value: Value) -> Value:
    """The sum of a guarded value over ``0 <= name < size``; raises TooHard for terms that are absent.

    It is not a number where a term is not, or where two are the two infinities, and else infinite where a term is.
    """
    found = set(leaves(value))
    special = [kind for kind in (NOT_A_NUMBER, PLUS_INFINITY, MINUS_INFINITY) if kind in found]
    if not special:
        return _by_path(context, name, size, value, ())
    counts = [_by_path(context, name, size, _count(value, kind), ()) for kind in special]
    rest = _by_path(context, name, size, _finite_part(value), ())

    def leaf(rest: Leaf, *numbers: Leaf) -> Value:
        present = {kind: at_least(finite(n), 1) for kind, n in zip(special, numbers, strict=True)}

        no_number = present.get(NOT_A_NUMBER, False)
        plus, minus = present.get(PLUS_INFINITY, False), present.get(MINUS_INFINITY, False)
        below_plus = partial(branch, context, minus, lambda: NOT_A_NUMBER, lambda: PLUS_INFINITY)
        without_plus = partial(branch, context, minus, lambda: MINUS_INFINITY, lambda: rest)
        return branch(context, no_number, lambda: NOT_A_NUMBER, lambda: branch(context, plus, below_plus, without_plus))

    return each(context, leaf, rest, *counts)


def _count(value: Value, kind: Leaf) -> Value:
    """One where a value is of a kind, zero elsewhere."""
    if isinstance(value, Choice):
        return choice(value.guard, _count(value.yes, kind), _count(value.no, kind))
    return ONE if value == kind else ZERO


def _finite_part(value: Value) -> Value:
    """A value with zero where it is infinite or not a number."""
    if isinstance(value, Choice):
        return choice(value.guard, _finite_part(value.yes), _finite_part(value.no))
    return ZERO if isinstance(value, (Infinite, NotANumber)) else value


def _by_path(context: Context, name: str, size: Polynomial, value: Value, guards: Guards) -> Value:
    if not isinstance(value, Choice):
        if not isinstance(value, Polynomial):
            raise TooHard(f"a sum with the term {value}")
        return _under_guards(context, name, ZERO, size, value, guards)
    guard, yes, no = value.guard, value.yes, value.no
    go = partial(_by_path, context, name, size)
    if name not in guard.free:
        return branch(context, guard, lambda: go(yes, guards), lambda: go(no, guards))
    decided = context.decide(guard)
    if decided is not None:
        return go(yes if decided else no, guards)
    total: Value = ZERO
    for polarity, arm in ((True, yes), (False, no)):
        if arm == ZERO:
            continue
        # The facts about the variable hold inside the term only: what leaves the scope is a sum without it.
        total = add(context, total, go(arm, (*guards, (guard, polarity))))
    return total


def add(context: Context, left: Value, right: Value) -> Value:
    """The sum of two guarded values that are finite."""
    return each(context, plus, left, right)


def _under_guards(
    context: Context, name: str, low: Polynomial, high: Polynomial, value: Polynomial, guards: Guards
) -> Value:
    """The sum of one polynomial where all guards hold; each becomes a bound, or a factor."""
    if not value.terms:
        return ZERO
    for position, (guard, polarity) in enumerate(guards):
        rest = guards[:position] + guards[position + 1 :]

        def go(lo: Polynomial, hi: Polynomial, left: Guards = rest) -> Value:
            return _under_guards(context, name, lo, hi, value, left)

        if name not in guard.free:
            return only_where(context, guard, polarity, lambda: go(low, high))
        every = strided_binder(context, name, low, high, guard)
        if every is not None:
            return _every(context, name, (low, high), every, value, guards, position)
        found = range_of_guard(context, name, guard, polarity)
        if found is None:
            continue
        kind, limit = found
        if kind == ">=":
            return branch(context, at_least(limit, low), lambda: go(limit, high), lambda: go(low, high))  # noqa: B023
        if kind == "<":
            return branch(context, at_least(high, limit), lambda: go(low, limit), lambda: go(low, high))  # noqa: B023
        if kind == "=":
            return _single_term(context, name, low, high, value, limit, rest)
        skipped = _under_guards(context, name, low, high, value, (*rest, (guard, True)))
        return each(context, minus, go(low, high), skipped)
    for guard, polarity in _irredundant(context, (name, low, high), guards):
        indicator = polynomial(Indicator(guard))
        value = value * (indicator if polarity else ONE - indicator)
    summed = value
    if _has_ragged_ends(name, summed) and context.holds(at_least(low + 1, high)):
        return branch(context, at_least(high, low + 1), lambda: substitute(context, summed, {name: low}), lambda: ZERO)
    return branch(
        context,
        at_least(high, low),
        lambda: sum_terms(context, [(name, low, high)], summed),
        lambda: ZERO,
    )


def _has_ragged_ends(name: str, value: Polynomial) -> bool:
    """Whether how long a sum inside is depends on a variable, as at the edge of a mask in tiles."""
    return any(name in bound.free for atom in value.atoms() if isinstance(atom, PrefixSum) for bound in atom.bounds)


def _irredundant(context: Context, binder: Binder, guards: Guards) -> Guards:
    """The guards without those that follow from the others, in one order."""
    kept = sorted(dict.fromkeys(guards), key=lambda fact: (fact[0].key, fact[1]))
    if len(kept) < 2:
        return tuple(kept)
    for guard, polarity in list(kept):
        with context.ranges([binder]):
            for other, truth in kept:
                if other != guard:
                    context.add(other, truth)
            if context.decide(guard) is polarity:
                kept.remove((guard, polarity))
    return tuple(kept)


def _every(
    context: Context,
    name: str,
    limits: tuple[Polynomial, Polynomial],
    every: tuple[Binder, Polynomial],
    value: Polynomial,
    guards: Guards,
    position: int,
) -> Value:
    """The sum over the multiples that a guard selects, or over all but those."""
    (multiple, low, high), place = every
    rest = guards[:position] + guards[position + 1 :]
    values = {name: place}
    with context.ranges([(multiple, low, high)]):
        moved = substitute(context, value, values)
        conditions = [(substitute_guard(context, guard, values), polarity) for guard, polarity in rest]
    if any(isinstance(guard, bool) and guard is not polarity for guard, polarity in conditions):
        selected: Value = ZERO
    else:
        kept = tuple((guard, polarity) for guard, polarity in conditions if not isinstance(guard, bool))
        selected = _under_guards(context, multiple, low, high, moved, kept)
    if guards[position][1]:
        return selected
    return each(context, minus, _under_guards(context, name, *limits, value, rest), selected)


def _single_term(
    context: Context,
    name: str,
    low: Polynomial,
    high: Polynomial,
    value: Polynomial,
    place: Polynomial,
    guards: Guards,
) -> Value:
    """A sum with the one term at a place, if that is in range and the guards hold there."""
    values = {name: place}
    conditions: list[tuple[Guard | bool, bool]] = [(at_least(place, low), True), (less_than(place, high), True)]
    conditions += [(substitute_guard(context, g, values), polarity) for g, polarity in guards]

    def go(left: Sequence[tuple[Guard | bool, bool]]) -> Value:
        if not left:
            return substitute(context, value, values)
        return only_where(context, left[0][0], left[0][1], lambda: go(left[1:]))

    return go(conditions)


def sum_terms(context: Context, binders: list[Binder], value: Polynomial) -> Polynomial:
    """The sum of a polynomial over ranges that are not reversed, monomial by monomial."""
    total = ZERO
    for monomial, coefficient in value.terms.items():
        context.tick()
        total = total + _sum_monomial(context, binders, monomial) * coefficient
    return total


def _sum_monomial(context: Context, binders: list[Binder], monomial: Monomial) -> Polynomial:
    outside, inside, binders = _prenex(context, list(binders), monomial)
    used: set[str] = set()
    for factors, names in _components(inside, frozenset(b[0] for b in binders)):
        used |= names
        product = ONE
        for factor in factors:
            product = product * Polynomial({(factor,): 1})
        outside = outside * _component(context, [b for b in binders if b[0] in names], product)
    for name, low, high in binders:
        if name not in used:
            outside = outside * (high - low)
    return outside


def _prenex(
    context: Context, binders: list[Binder], monomial: Monomial
) -> tuple[Polynomial, list[tuple[Atom, Number]], list[Binder]]:
    """Factors without a variable, the others, and the binders with those of inner sums."""
    outside, inside = ONE, list[tuple[Atom, Number]]()
    names = frozenset(b[0] for b in binders)
    work = list(monomial)
    while work:
        atom, exponent = work.pop()
        if not (atom.free & names):
            outside = outside * Polynomial({((atom, exponent),): 1})
        elif isinstance(atom, PrefixSum) and _opens(atom, exponent, names):
            for _ in range(int(exponent)):
                new, body = open_sum(context, atom)
                single = body.single()
                if single is None:
                    raise TooHard("a sum whose body is no single term")
                binders += new
                names |= {b[0] for b in new}
                outside = outside * single[1]
                work += single[0]
        else:
            inside.append((atom, exponent))
    return outside, inside, binders


def _opens(atom: PrefixSum, exponent: Number, names: frozenset[str]) -> bool:
    return isinstance(exponent, int) and exponent > 0 and not any(b.free & names for b in atom.bounds)


def open_sum(context: Context, atom: PrefixSum, body: Polynomial | None = None) -> tuple[list[Binder], Polynomial]:
    """The ranges and the body of a prefix sum, or another body in its place, under fresh names."""
    names, values = open_binders(context, len(atom.bounds), atom.depth)
    body = substitute(context, body or atom.body, values)
    return [(name, ZERO, bound) for name, bound in zip(names, atom.bounds, strict=True)], body


def _components(
    factors: Sequence[tuple[Atom, Number]], names: frozenset[str]
) -> list[tuple[list[tuple[Atom, Number]], frozenset[str]]]:
    """Factors grouped by the variables that connect them."""
    found: list[tuple[list[tuple[Atom, Number]], frozenset[str]]] = []
    for factor in factors:
        members, used = [factor], factor[0].free & names
        apart: list[tuple[list[tuple[Atom, Number]], frozenset[str]]] = []
        for group in found:
            if group[1] & used:
                members, used = members + group[0], used | group[1]
            else:
                apart.append(group)
        found = [*apart, (members, used)]
    return found


def _component(context: Context, binders: list[Binder], body: Polynomial) -> Polynomial:
    """One connected sum: each step finishes, or goes on with a simpler sum."""
    context.tick()
    if len(body.terms) != 1:
        return sum_terms(context, binders, body)
    for step in (_narrow, _short_range, _one_term, _closed_form, _split, _merge):
        found = step(context, binders, body)
        if found is not None:
            return found
    return _prefix_sums(context, binders, body)


def _narrow(context: Context, binders: list[Binder], body: Polynomial) -> Polynomial | None:
    """An indicator that bounds a variable becomes part of its range, where it is known which bound is the tighter."""
    single = body.single()
    if single is None:
        return None
    for atom, exponent in single[0]:
        if not isinstance(atom, Indicator) or exponent <= 0:
            continue
        for name, low, high in binders:
            found = range_of_guard(context, name, atom.guard, True) if name in atom.guard.free else None
            if found is None or found[1].free & {b[0] for b in binders}:
                continue
            rest = Polynomial({tuple(factor for factor in single[0] if factor[0] != atom): single[1]})
            bounds = _tighten(context, low, high, *found)
            if bounds == (ZERO, ZERO):
                return ZERO
            if bounds is not None:
                fresh = context.fresh("b")
                narrowed = [(fresh, *bounds) if b == name else (b, low, high) for b, low, high in binders]
                with context.ranges(narrowed):
                    # Quotients are built again: in the smaller range they may be known.
                    rest = substitute(context, rest, {name: symbol(fresh)})
                return sum_terms(context, narrowed, _decide(context, narrowed, rest))
    return None


def _decide(context: Context, binders: Sequence[Binder], body: Polynomial) -> Polynomial:
    """A product without the indicators that the ranges of the binders decide."""
    single = body.single()
    if single is None:
        return body
    kept: list[tuple[Atom, Number]] = []
    with context.ranges(binders):
        for atom, exponent in single[0]:
            known = context.decide(atom.guard) if isinstance(atom, Indicator) and exponent > 0 else None
            if known is False:
                return ZERO
            if known is None:
                kept.append((atom, exponent))
    return Polynomial({tuple(kept): single[1]})


def _tighten(
    context: Context, low: Polynomial, high: Polynomial, kind: str, limit: Polynomial
) -> tuple[Polynomial, Polynomial] | None:
    """A range within a bound; an empty one is ``(0, 0)``, and None where it stays open how the ends are ordered."""
    if kind == ">=":
        inside, beyond = at_least(limit, low), at_least(limit, high)
    elif kind == "<":
        inside, beyond = at_least(high, limit), at_least(low, limit)
    else:
        return None
    known = context.decide(inside), context.decide(beyond)
    if known[0] is None or known[1] is None:
        return None
    if known[1]:
        return ZERO, ZERO
    if not known[0]:
        return low, high
    return (limit, high) if kind == ">=" else (low, limit)


def _short_range(context: Context, binders: list[Binder], body: Polynomial) -> Polynomial | None:
    """Ranges of a small constant size are written out."""
    for name, low, high in binders:
        count = (high - low).constant()
        if count == 0:
            return ZERO
        if count is not None and 1 <= count <= context.written_out:
            total = ZERO
            for step in range(int(count)):
                term = substitute(context, body, {name: low + step})
                total = total + sum_terms(context, without(binders, name), term)
            return total
    return None


def _one_term(context: Context, binders: list[Binder], body: Polynomial) -> Polynomial | None:
    """A variable on which the length of a sum inside depends, where that is not empty for one value alone."""
    sums = [a for m in body.terms for a, n in m if isinstance(a, PrefixSum) and _opens(a, n, frozenset())]
    for name, low, high in binders:
        for length in (b for a in sums for b in a.bounds if name in b.free):
            some = at_least(length, 1)
            found = range_of_guard(context, name, some, True) if isinstance(some, Guard) else None
            with context.ranges([(name, low, high)]):
                is_length = context.holds(at_least(length, ZERO))
            last = found[1] if found is not None and found[0] == "<" and is_length else high
            if context.equal(last - low, ONE) and context.holds(at_least(high, last)):
                return sum_terms(context, without(binders, name), substitute(context, body, {name: low}))
    return None


def _closed_form(context: Context, binders: list[Binder], body: Polynomial) -> Polynomial | None:
    """The sums of k and of k^2."""
    single = body.single()
    if len(binders) != 1 or single is None or len(single[0]) != 1:
        return None
    (atom, exponent), coefficient = single[0][0], single[1]
    name, low, high = binders[0]
    if not isinstance(atom, Symbol) or atom.name != name or exponent not in (1, 2):
        return None
    if exponent == 1:
        return (high * high - high - low * low + low) * (Fraction(1, 2) * coefficient)

    def squares(t: Polynomial) -> Polynomial:
        return (t * t * t * 2 - t * t * 3 + t) * Fraction(1, 6)

    return (squares(high) - squares(low)) * coefficient


def _split(context: Context, binders: list[Binder], body: Polynomial) -> Polynomial | None:
    found = split_digits(context, binders, body)
    if found is None:
        return None
    everything, new, changed = found
    with context.ranges(new):
        return sum_terms(context, everything, changed)


def _merge(context: Context, binders: list[Binder], body: Polynomial) -> Polynomial | None:
    found = merge_digits(context, binders, body)
    return sum_terms(context, *found) if found is not None else None


def _prefix_sums(context: Context, binders: list[Binder], body: Polynomial) -> Polynomial:
    """The least of all ways to place and order the binders, then a difference of prefix sums for each."""
    best: tuple[tuple[bytes, tuple[bytes, ...]], Polynomial, Polynomial, list[tuple[Polynomial, Polynomial]]] | None
    best = None
    several = placements(context, binders, body, 16)
    for placed, value in several:
        outside, inside = _invariant(placed, value)
        for order in orders(context, placed, inside):
            single = name_binders(context, placed, order, inside).single()
            if single is None:
                continue
            term = Polynomial({single[0]: 1})
            limits = [placed[b][1:] for b in order]
            key = (term.key, tuple(p.key for pair in limits for p in pair))
            if best is None or key < best[0]:
                best = (key, term, outside * single[1], limits)
    if best is None:
        # A factor such as k itself falls into several terms where k is moved; each is summed where it now stands.
        placed, value = several[0]
        if {b[0] for b in placed} == {b[0] for b in binders}:
            raise TooHard("a sum whose body is no single term")
        return sum_terms(context, placed, value)
    _, term, outside, limits = best
    total = ZERO
    for ends in itertools.product((0, 1), repeat=len(limits)):
        bounds = tuple(pair[end] for pair, end in zip(limits, ends, strict=True))
        if all(bound.terms for bound in bounds):
            sign = -1 if ends.count(0) % 2 else 1
            total = total + _prefix(context, PrefixSum(bounds, term)) * sign
    return total * outside


def _invariant(binders: Sequence[Binder], value: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The factors of a product without a variable, which moving a variable leaves behind, and the others."""
    single = value.single()
    names = frozenset(b[0] for b in binders)
    if single is None or all(atom.free & names for atom, _ in single[0]):
        return ONE, value
    parts = [tuple(f for f in single[0] if bool(f[0].free & names) is inside) for inside in (False, True)]
    return Polynomial({parts[0]: single[1]}), Polynomial({parts[1]: 1})


def _prefix(context: Context, atom: PrefixSum) -> Polynomial:
    """A prefix sum, written out where it is short, as it would be if its bounds had been known all along.

    Up to a bound below zero it is minus the sum of what lies between, so that differences telescope.
    """
    counts = [bound.constant() for bound in atom.bounds]
    if not any(isinstance(count, int) and 1 <= abs(count) <= context.written_out for count in counts):
        return polynomial(atom)
    opened_binders, body = open_sum(context, atom)
    sign = 1
    binders: list[Binder] = []
    for (name, low, high), count in zip(opened_binders, counts, strict=True):
        backwards = isinstance(count, int) and count < 0
        binders.append((name, high, low) if backwards else (name, low, high))
        sign = -sign if backwards else sign
    return sum_terms(context, binders, body) * sign


def rebuild_sum(context: Context, atom: PrefixSum, values: Values) -> Polynomial:
    """A prefix sum with symbols replaced: opened, replaced inside, and summed again."""
    names, inner = open_binders(context, len(atom.bounds), atom.depth)
    merged = {**{name: value for name, value in values.items() if name not in inner}, **inner}
    body = substitute(context, atom.body, merged)
    bounds = [substitute(context, bound, values) for bound in atom.bounds]
    return sum_terms(context, [(name, ZERO, bound) for name, bound in zip(names, bounds, strict=True)], body)
