"""Maxima that may be taken of nothing, as of scores that are all masked: where they are taken of something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from rewright.terms.normal.arithmetic.binders import Binder, open_binders, read_alike
from rewright.terms.normal.arithmetic.cases import each
from rewright.terms.normal.arithmetic.substitution import substitute, substitute_guard, substitute_value
from rewright.terms.normal.facts.context import Context, Values
from rewright.terms.normal.facts.guards import (
    MINUS_INFINITY,
    PLUS_INFINITY,
    Infinite,
    Leaf,
    Value,
    at_least,
    is_zero,
    less_than,
)
from rewright.terms.normal.facts.signs import is_nonnegative
from rewright.terms.normal.folds.sums import add, sum_over
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    ZERO,
    Atom,
    Element,
    Guard,
    Indicator,
    Monomial,
    Number,
    Polynomial,
    TooHard,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.ranged import Item, Largest, PrefixSum, Range


def may_be_infinite(value: Value) -> Largest | None:
    """The maximum that a value is a multiple of, where it may be one of nothing."""
    single = value.single() if isinstance(value, Polynomial) else None
    if single is None or len(single[0]) != 1:
        return None
    atom, exponent = single[0][0]
    return atom if exponent == 1 and isinstance(atom, Largest) and not atom.always else None


def of_nothing(value: Polynomial) -> Infinite:
    """What a multiple of a maximum is where that is one of nothing: by the sign of the factor."""
    (factor,) = value.terms.values()
    return MINUS_INFINITY if factor > 0 else PLUS_INFINITY


def count_present(context: Context, atom: Largest) -> Polynomial:
    """How many values a maximum is taken of; raises TooHard where that is no single number."""
    key = ("count", atom.key)
    found = context.memo(key)
    if found is None:
        total: Value = ZERO
        for item in atom.items:
            binders, _, value = _open(context, item)
            for name, low, high in binders:
                value = sum_over(context, name, high - low, map_leaves(context, value, {name: symbol(name) + low}))
            total = add(context, total, value)
        if not isinstance(total, Polynomial):
            raise TooHard(f"the number of values of {atom}")
        context.remember(key, found := total)
    return found


def is_present(context: Context, atom: Largest) -> bool:
    """Whether a maximum is known to be taken of something: a fact says that a value is there, or of how many."""
    if atom.always or any(_has_witness(context, item.ranges, item.depth, item.present) for item in atom.items):
        return True
    return decide_count(context, is_zero(count_present(context, atom))) is False


def decide_count(context: Context, guard: Guard | bool) -> bool | None:
    """What is known of a guard, also that a number is not zero because a smaller one is not."""
    found = context.decide(guard)
    if found is not None or not isinstance(guard, Guard) or guard.kind != "integer=0":
        return found
    counts = (guard.value, -guard.value)
    if any(_is_at_least(context, count, fewer) for count in counts for fewer in _known_counts(context)):
        return False
    return None


def _open(context: Context, item: Item) -> tuple[list[Binder], dict[str, Polynomial], Value]:
    names, values = open_binders(context, len(item.ranges), item.depth)
    binders = [(name, *limits) for name, limits in zip(names, item.ranges, strict=True)]
    return binders, values, substitute(context, item.present, values)


def _has_witness(context: Context, ranges: Sequence[Range], depth: int, present: Polynomial) -> bool:
    """Whether facts say of some index within ranges that all conditions hold there whose product is ``present``."""
    single = present.single()
    if single is None or not single[0] or not all(isinstance(a, Indicator) for a, _ in single[0]):
        return False
    names, values = open_binders(context, len(ranges), depth)
    binders = [(name, *limits) for name, limits in zip(names, ranges, strict=True)]
    guards = [substitute_guard(context, a.guard, values) for a, _ in single[0] if isinstance(a, Indicator)]
    if not all(isinstance(guard, Guard) for guard in guards):
        return False
    for places in _places(context, [b[0] for b in binders], [g for g in guards if isinstance(g, Guard)]):
        inside = all(
            context.holds(at_least(places[name], low)) and context.holds(less_than(places[name], high))
            for name, low, high in binders
        )
        if inside and all(
            context.holds(substitute_guard(context, g, places) if isinstance(g, Guard) else g) for g in guards
        ):
            return True
    return False


def _places(context: Context, names: list[str], guards: list[Guard]) -> Iterator[dict[str, Polynomial]]:
    """Values of variables at which some condition reads what a fact of the same kind reads, or a thing twice."""
    if not names:
        yield {}
        return
    pairs = [(guard, fact) for fact, polarity in context.trail for guard in guards if polarity]
    for guard, fact in (*pairs, *((guard, guard) for guard in guards if guard.kind == "integer=0")):
        for mine, other in product(guard.value.atoms(), fact.value.atoms() if fact.kind == guard.kind else ()):
            if isinstance(mine, Element) and isinstance(other, Element) and other.free.isdisjoint(names):
                found = read_alike(names, mine, other)
                if found is not None:
                    yield found


def _known_counts(context: Context) -> Iterator[Polynomial]:
    """Numbers that facts say are not zero, and how many values there are."""
    for guard, polarity in context.trail:
        if guard.kind == "integer=0" and not polarity:
            yield guard.value
            yield -guard.value


def counts_contradict(context: Context) -> bool:
    """Whether facts say that some of what is not there is there."""
    truths = list(_truths(context))
    zero = [guard.value for guard, polarity in context.trail if guard.kind == "integer=0" and polarity]
    zero += [count for count, holds in truths if not holds]
    none = [value for count in zero for value in (count, -count) if _is_a_count(context, value)]
    below = [guard.value + 1 for guard, polarity in context.trail if guard.kind == "integer>=0" and not polarity]
    none += [count for count in below if count.constant() is None and _is_a_count(context, count)]
    known = (*_known_counts(context), *(count for count, holds in truths if holds))
    if any(_is_at_least(context, count, fewer) for fewer in known for count in none):
        return True
    false = [e for guard, polarity in context.trail if not polarity and (e := _element(guard)) is not None]
    return _is_one_of(context, false) or any(_has_some(context, count) for count in none)


def _truths(context: Context) -> Iterator[tuple[Polynomial, bool]]:
    """Of maxima of truth values, whether facts say that one of them holds, and how many do."""
    for guard, polarity in context.trail:
        atom = next((a for a in guard.value.atoms() if isinstance(a, Largest)), None)
        if guard.kind != "integer=0" or atom is None or not all(map(is_truth_value, atom.items)):
            continue
        value = polynomial(atom)
        if guard.value in (value, -value, value - 1, -value + 1):
            counted = [Item(item.ranges, ONE, item.body) for item in atom.items if item.body != ZERO]
            is_zero_there = guard.value in (value, -value)
            yield count_present(context, Largest(counted)) if counted else ZERO, polarity is not is_zero_there


def is_truth_value(item: Item) -> bool:
    """Whether an item of a maximum is of truth values."""
    return item.always and (item.body in (ZERO, ONE) or isinstance(item.body.atom(), Indicator))


def _has_some(context: Context, count: Polynomial) -> bool:
    """Whether facts say of one index that what a sum of indicators counts is there."""
    if any(coefficient < 0 for coefficient in count.terms.values()):
        return False
    sums = [atom for monomial in count.terms if isinstance(atom := _alone(monomial), PrefixSum)]
    listed = [e for m in count.terms if isinstance(a := _alone(m), Indicator) and (e := _element(a.guard)) is not None]
    return _is_one_of(context, listed) or any(
        _has_witness(context, [(ZERO, bound) for bound in atom.bounds], atom.depth, atom.body) for atom in sums
    )


def _is_one_of(context: Context, listed: Sequence[Element]) -> bool:
    """Whether facts say that one of some truth values holds: of ``x[0]`` to ``x[3]`` one if ``x[i]``, i in range."""
    for guard, polarity in context.trail:
        fact = _element(guard) if polarity else None
        for axis in range(0 if fact is None else len(fact.index)):
            assert fact is not None
            apart = {e.index[axis].constant() for e in listed if _differs_at(axis, e, fact)}
            numbers = sorted(n for n in apart if isinstance(n, int))
            place = fact.index[axis]
            if (
                numbers
                and numbers == list(range(numbers[0], numbers[-1] + 1))
                and all(
                    map(context.holds, (at_least(place, numbers[0]), less_than(place, polynomial(numbers[-1] + 1))))
                )
            ):
                return True
    return False


def _element(guard: Guard) -> Element | None:
    """The truth value that a guard is."""
    atom = guard.value.atom() if guard.kind == "true" else None
    return atom if isinstance(atom, Element) else None


def _differs_at(axis: int, one: Element, other: Element) -> bool:
    """Whether two accesses read one tensor at indices that differ along one axis at most."""
    if one.tensor != other.tensor or len(one.index) != len(other.index):
        return False
    return all(n == axis or a == b for n, (a, b) in enumerate(zip(one.index, other.index, strict=True)))


def _is_at_least(context: Context, more: Polynomial, fewer: Polynomial) -> bool:
    """Whether a difference of counts is a sum of what is not negative, and the smaller one is too."""
    return _is_a_count(context, fewer) and _is_a_count(context, more - fewer)


def _is_a_count(context: Context, value: Polynomial) -> bool:
    """Whether a value is a sum of indicators, and of such over ranges between one bound and a later one."""
    sums: dict[bytes, list[tuple[PrefixSum, Number]]] = {}
    rest: dict[Monomial, Number] = {}
    for monomial, coefficient in value.terms.items():
        atom = _alone(monomial)
        if isinstance(atom, PrefixSum) and len(atom.bounds) == 1:
            sums.setdefault(atom.body.key, []).append((atom, coefficient))
        else:
            rest[monomial] = coefficient
    return is_nonnegative(context, Polynomial(rest)) and all(_is_growing(context, s) for s in sums.values())


def _alone(monomial: Monomial) -> Atom | None:
    return monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None


def _is_growing(context: Context, sums: list[tuple[PrefixSum, Number]]) -> bool:
    """Whether sums of one body that is not negative, each up to its bound, are together not negative."""
    if not is_nonnegative(context, sums[0][0].body):
        return False
    added = [atom.bounds[0] for atom, coefficient in sums if coefficient == 1]
    taken = [atom.bounds[0] for atom, coefficient in sums if coefficient == -1]
    if len(added) + len(taken) < len(sums) or len(taken) > len(added):
        return False
    for bound in taken:
        later = next((other for other in added if context.holds(at_least(other, bound))), None)
        if later is None:
            return False
        added.remove(later)
    return all(context.holds(at_least(bound, polynomial(0))) for bound in added)


def vanishes(context: Context, value: Polynomial) -> bool:
    """Whether a value is made of sums over what facts say is not there."""
    counts = [_by_body(guard.value) for guard, polarity in context.trail if guard.kind == "integer=0" and polarity]
    groups = _by_body(value)
    return groups is not None and all(
        any(known is not None and _is_multiple(group, body, known) for known in counts)
        for body, group in groups.items()
    )


_Bounds = dict[tuple[Polynomial, ...], Number]


def _by_body(value: Polynomial) -> dict[tuple[Polynomial, Monomial], _Bounds] | None:
    """The sums in a value by what they sum and are multiplied by; None where there is something else."""
    found: dict[tuple[Polynomial, Monomial], _Bounds] = {}
    for monomial, coefficient in value.terms.items():
        sums = [a for a, exponent in monomial if isinstance(a, PrefixSum) and exponent == 1]
        if len(sums) != 1:
            return None
        rest = tuple(factor for factor in monomial if factor[0] != sums[0])
        found.setdefault((sums[0].body, rest), {})[sums[0].bounds] = coefficient
    return found


def _is_multiple(
    bounds: _Bounds, summed: tuple[Polynomial, Monomial], known: dict[tuple[Polynomial, Monomial], _Bounds]
) -> bool:
    """Whether sums over some bounds vanish as a count over the same does, of which each term has the condition."""
    if len(known) != 1:
        return False
    (((present, rest), counted),) = known.items()
    condition = present.single()
    if rest or condition is None or condition[1] != 1 or set(bounds) != set(counted):
        return False
    ratios = {Fraction(bounds[key]) / Fraction(counted[key]) for key in bounds}
    return len(ratios) == 1 and all(set(condition[0]) <= set(monomial) for monomial in summed[0].terms)


def map_leaves(context: Context, value: Value, values: Values) -> Value:
    """Substitution under the facts of the current path, which decide guards that become closed."""
    return each(context, _same, substitute_value(context, value, values))


def _same(leaf: Leaf) -> Value:
    return leaf
