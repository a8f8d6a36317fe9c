"""Which needs follow from others, from what is known, or from a side that has a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewright.terms.normal.arithmetic.binders import read_alike
from rewright.terms.normal.arithmetic.division import floor_quotient
from rewright.terms.normal.arithmetic.substitution import substitute, substitute_guard
from rewright.terms.normal.decision.equality import equal_leaves
from rewright.terms.normal.denoting.needs import Kind, Need, holding
from rewright.terms.normal.facts.context import Context, Signed
from rewright.terms.normal.facts.guards import Choice, NotANumber, Value, at_least, at_least_zero, is_zero, less_than
from rewright.terms.normal.facts.signs import is_nonnegative, is_positive, power_sign
from rewright.terms.normal.folds.presence import counts_contradict, decide_count, vanishes
from rewright.terms.normal.polynomials.atoms import (
    ONE,
    Atom,
    Base,
    Element,
    Guard,
    Monomial,
    Number,
    Polynomial,
    content,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.ranged import inner_atoms


def fails(context: Context, needs: Iterable[Need]) -> bool:
    """Whether some need, which is about no variable of a fold, is known not to hold here."""
    return any(not need.variables and _fails(context, need) for need in needs)


def _fails(context: Context, need: Need) -> bool:
    if not all(context.decide(guard) is polarity for guard, polarity in need.path):
        return False
    if need.kind == "not zero" and vanishes(context, need.value):
        return True
    guard, polarity = holding(need)
    return context.decide(guard) is (not polarity)


def unmet(context: Context, wanted: list[Need], given: list[Need]) -> list[Need]:
    """The needs that neither hold for all that is known nor follow from given ones."""
    given = _of_both_cases(given)
    missing: dict[tuple[str, bytes], Need] = {}
    for need in wanted:
        if (need.kind, need.value.key) not in missing and not _is_met(context, need, given):
            missing[need.kind, need.value.key] = need
    return list(missing.values())


def met_where_a_number(context: Context, need: Need, given: list[Need], other: Value) -> bool:
    """Whether a need follows from given ones wherever the other side has a number."""
    if isinstance(other, NotANumber):
        return True
    if not isinstance(other, Choice):
        return not unmet(context, [need], given)
    for polarity, arm in ((True, other.yes), (False, other.no)):
        if context.decide(other.guard) is (not polarity):
            continue
        with context.assume(other.guard, polarity):
            if not met_where_a_number(context, need, given, arm):
                return False
    return True


def _is_met(context: Context, need: Need, given: list[Need]) -> bool:
    if need.kind == "not negative" and (number := need.value.constant()) is not None and number >= 0:
        return True
    if any(g.kind == need.kind and _says_the_same(context, g, need) for g in given):
        return True
    with context.scope():
        for name, low, high in need.variables:
            context.range(name, low, high)
        for guard, polarity in need.path:
            context.add(guard, polarity)
        if context.contradictory() or _follows(context, need, []):
            return True
        return _follows_by_cases(context, need, given, _MOST_CASES)


_MOST_NEEDS = 1000


_MOST_CASES = 3
"""Conditions of given needs that are tried both ways."""


def _follows_by_cases(context: Context, need: Need, given: list[Need], depth: int) -> bool:
    """Whether a need follows from those that apply here, else where a condition of one holds and where it does not."""
    available = [found for g in given for found in _applicable(context, g, need)]
    with context.scope():
        if _follows(context, need, available):
            return True
    guard = next(_undecided(context, need, given), None) if depth else None
    if guard is None:
        return False
    for polarity in (True, False):
        with context.assume(guard, polarity):
            if not (counts_contradict(context) or _follows_by_cases(context, need, given, depth - 1)):
                return False
    return True


def _undecided(context: Context, need: Need, given: list[Need]) -> Iterator[Guard]:
    """Conditions on values of the same kind that are about no variable of a fold, and open here."""
    for other in given:
        if other.kind != need.kind:
            continue
        for guard, _ in other.path:
            is_plain = guard.kind != "true" and not any(name.startswith("~k") for name in guard.free)
            if is_plain and decide_count(context, guard) is None:
                yield guard


def _of_both_cases(needs: list[Need]) -> list[Need]:
    """The needs, with those that hold where a condition does and where it does not without the condition."""
    found = {(n.kind, n.value.key, n.variables, frozenset(n.path)): n for n in needs}
    waiting = list(found.values())
    while waiting and len(found) <= _MOST_NEEDS:
        need = waiting.pop()
        for guard, polarity in need.path:
            kept = tuple(fact for fact in need.path if fact[0] != guard)
            key = (need.kind, need.value.key, need.variables, frozenset(kept))
            if (*key[:3], key[3] | {(guard, not polarity)}) in found and key not in found:
                found[key] = Need(need.kind, need.value, kept, need.variables, need.operation)
                waiting.append(found[key])
    return list(found.values())


def _says_the_same(context: Context, given: Need, need: Need) -> bool:
    """Whether two needs differ in the names of their variables alone."""
    if len(given.variables) != len(need.variables) or len(given.path) != len(need.path):
        return False
    names = {mine[0]: symbol(other[0]) for mine, other in zip(given.variables, need.variables, strict=True)}
    limits = [tuple(substitute(context, limit, names) for limit in limits) for _, *limits in given.variables]
    if (
        limits != [tuple(limits) for _, *limits in need.variables]
        or substitute(context, given.value, names) != need.value
    ):
        return False
    path = {(substitute_guard(context, guard, names), polarity) for guard, polarity in given.path}
    return path == set(need.path)


def _follows(context: Context, need: Need, available: list[tuple[Kind, Polynomial]]) -> bool:
    """Whether a need follows from others that hold here, which become facts."""
    for kind, value in available:
        if kind == "not zero":
            for factor in factors(value):
                context.add(is_zero(factor), False)
        elif kind == "not negative":
            context.add(at_least_zero(value))
        else:
            context.add(at_least_zero(-value), False)
            context.add(at_least_zero(-_strip(context, value)), False)
    if need.kind == "not zero":
        nonzero = [f for kind, value in available if kind != "not negative" for f in factors(value)]
        return all(_is_nonzero(context, f, nonzero) for f in factors(need.value))
    stripped = _strip(context, need.value)
    if need.kind == "positive":
        if is_positive(context, need.value) or is_positive(context, stripped):
            return True
        if context.decide(at_least_zero(-need.value)) is False:
            return True
        strong = [_strip(context, value) for kind, value in available if kind == "positive"]
        return any(_same(context, stripped, p) for p in strong)
    if is_nonnegative(context, need.value) or context.holds(at_least_zero(need.value)):
        return True
    weak = [_strip(context, value) for kind, value in available if kind != "not zero"]
    return any(_same(context, stripped, p) for p in weak)


def _is_nonzero(context: Context, factor: Polynomial, nonzero: list[Polynomial]) -> bool:
    if factor.constant() is not None:
        return factor.constant() != 0
    if is_positive(context, factor) or is_positive(context, -factor):
        return True
    if context.decide(is_zero(factor)) is False:
        return True
    return any(_same(context, factor, other) or _same(context, -factor, other) for other in nonzero)


def factors(value: Polynomial) -> Iterator[Polynomial]:
    """Polynomials whose product is the value up to a constant: it is zero only where one of them is."""
    if value.constant() is not None:
        yield value
        return
    _, common, rest = content(value)
    for atom, exponent in common:
        yield from _factor(atom, exponent)
    single = rest.single()
    if single is None:
        yield rest
        return
    for atom, exponent in single[0]:
        yield from _factor(atom, exponent)


def _factor(atom: Atom, exponent: Number) -> Iterator[Polynomial]:
    """A power is zero where the atom is; a negative one never is, because it is defined."""
    if exponent > 0:
        if isinstance(atom, Base):
            yield from factors(atom.value)
        else:
            yield polynomial(atom)


def _strip(context: Context, value: Polynomial) -> Polynomial:
    """The value without factors that are positive, and with a leading coefficient of one or minus one."""
    if not value.terms:
        return value
    coefficient, common, rest = content(value)
    kept: Monomial = tuple((a, e) for a, e in common if power_sign(context, a, e) != "positive")
    return rest * Polynomial({kept: 1}) * (1 if coefficient > 0 else -1)


def _same(context: Context, left: Polynomial, right: Polynomial) -> bool:
    return left == right or equal_leaves(context, left, right)


def _applicable(context: Context, given: Need, need: Need) -> Iterator[tuple[Kind, Polynomial]]:
    """A given need at this path: its variables matched with what the wanted value reads."""
    path = given.own_path
    names = [name for name, *_ in given.variables if name in given.value.free or any(name in g.free for g, _ in path)]
    for values in _bindings(context, names, (given.value, *_read(path)), (need.value, *_read(need.path))):
        if not all(_in_range(context, variable, values) for variable in given.variables):
            continue
        conditions = [(substitute_guard(context, guard, values), polarity) for guard, polarity in path]
        if all(decide_count(context, guard) is polarity for guard, polarity in conditions):
            yield given.kind, substitute(context, given.value, values)


def _in_range(context: Context, variable: tuple[str, Polynomial, Polynomial], values: dict[str, Polynomial]) -> bool:
    """Whether a variable's value is in its range; one that does not matter needs a range that is not empty."""
    name, low, high = variable
    low, high = substitute(context, low, values), substitute(context, high, values)
    if name not in values:
        return context.holds(at_least(high - low, 1))
    return context.holds(at_least(values[name], low)) and context.holds(less_than(values[name], high))


def _read(path: Iterable[Signed]) -> list[Polynomial]:
    return [guard.value for guard, _ in path]


def _bindings(
    context: Context, names: list[str], given: Iterable[Polynomial], wanted: Iterable[Polynomial]
) -> Iterator[dict[str, Polynomial]]:
    """Values for the variables of a given need at which it reads an element that the wanted one reads."""
    if not names:
        yield {}
        return
    reads = [a for value in wanted for a in inner_atoms(value) if isinstance(a, Element)]
    for mine in (a for value in given for a in inner_atoms(value) if isinstance(a, Element)):
        for other in reads:
            found = read_alike(names, mine, other) or _digits(context, names, mine, other)
            if found is not None:
                yield found


def _digits(context: Context, names: list[str], mine: Element, other: Element) -> dict[str, Polynomial] | None:
    """Values of all variables where they are the digits of one place, as of axes that the other access has as one."""
    if mine.tensor != other.tensor or len(mine.index) != len(other.index):
        return None
    for rest, target in zip(mine.index, other.index, strict=True):
        weights: list[tuple[Number, str]] = []
        for name in names:
            if (split := rest.linear(name)) is not None and split[0] > 0:
                weights.append((split[0], name))
                rest = split[1]
        if len(weights) < len(names) or rest.free & set(names):
            continue
        found: dict[str, Polynomial] = {}
        value = target - rest
        for weight, name in sorted(weights, reverse=True):
            found[name] = floor_quotient(context, value, ONE * weight)
            value = value - found[name] * weight
        return found
    return None
