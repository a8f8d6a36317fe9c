"""What has to hold for an element to be defined: divisors are not zero, roots and logarithms have an argument."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rewright.terms.normal.atoms import (
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
from rewright.terms.normal.binders import inner_atoms
from rewright.terms.normal.context import Context, Signed
from rewright.terms.normal.equality import equal_leaves
from rewright.terms.normal.guards import at_least, at_least_zero, below, is_zero
from rewright.terms.normal.signs import is_nonnegative, is_positive, power_sign
from rewright.terms.normal.substitution import substitute, substitute_guard

Kind = Literal["not zero", "positive", "not negative"]
Variables = tuple[tuple[str, Polynomial, Polynomial], ...]


@dataclass(frozen=True)
class Need:
    """A value that must have a sign, on a path, for all values of the variables of the folds around it."""

    kind: Kind
    value: Polynomial
    path: tuple[Signed, ...]
    variables: Variables
    operation: str

    def __str__(self) -> str:
        return f"{self.value} is {self.kind}"


def unmet(context: Context, wanted: list[Need], given: list[Need]) -> list[Need]:
    """The needs that neither hold for all that is known nor follow from given ones."""
    missing: dict[tuple[str, bytes], Need] = {}
    for need in wanted:
        if (need.kind, need.value.key) not in missing and not _met(context, need, given):
            missing[need.kind, need.value.key] = need
    return list(missing.values())


def _met(context: Context, need: Need, given: list[Need]) -> bool:
    if any(g.kind == need.kind and g.value == need.value and g.path == need.path for g in given):
        return True
    with context.scope():
        for name, low, high in need.variables:
            context.range(name, low, high)
        for guard, polarity in need.path:
            context.add(guard, polarity)
        if context.contradictory():
            return True
        available = [found for g in given for found in _applicable(context, g, need)]
        return _follows(context, need, available)


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
            context.add(at_least_zero(-_stripped(context, value)), False)
    if need.kind == "not zero":
        nonzero = [f for kind, value in available if kind != "not negative" for f in factors(value)]
        return all(_is_nonzero(context, f, nonzero) for f in factors(need.value))
    stripped = _stripped(context, need.value)
    if need.kind == "positive":
        if is_positive(context, need.value) or is_positive(context, stripped):
            return True
        if context.decide(at_least_zero(-need.value)) is False:
            return True
        strong = [_stripped(context, value) for kind, value in available if kind == "positive"]
        return any(_same(context, stripped, p) for p in strong)
    if is_nonnegative(context, need.value) or context.holds(at_least_zero(need.value)):
        return True
    weak = [_stripped(context, value) for kind, value in available if kind != "not zero"]
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


def _stripped(context: Context, value: Polynomial) -> Polynomial:
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
    path = _own_path(given)
    names = [name for name, *_ in given.variables if name in given.value.free or any(name in g.free for g, _ in path)]
    for values in _bindings(given, names, need.value):
        if not all(_in_range(context, variable, values) for variable in given.variables):
            continue
        conditions = [(substitute_guard(context, guard, values), polarity) for guard, polarity in path]
        if all(context.decide(guard) is polarity for guard, polarity in conditions):
            yield given.kind, substitute(context, given.value, values)


def _own_path(need: Need) -> list[Signed]:
    """The facts of a need besides the ranges of its variables."""
    ranges = {
        guard.key
        for name, low, high in need.variables
        for guard in (at_least(symbol(name), low), below(symbol(name), high))
        if isinstance(guard, Guard)
    }
    return [fact for fact in need.path if fact[0].key not in ranges]


def _in_range(context: Context, variable: tuple[str, Polynomial, Polynomial], values: dict[str, Polynomial]) -> bool:
    """Whether a variable's value is in its range; one that does not matter needs a range that is not empty."""
    name, low, high = variable
    low, high = substitute(context, low, values), substitute(context, high, values)
    if name not in values:
        return context.holds(at_least(high - low, 1))
    return context.holds(at_least(values[name], low)) and context.holds(below(values[name], high))


def _bindings(given: Need, names: list[str], value: Polynomial) -> Iterator[dict[str, Polynomial]]:
    """Values for the variables of a given need at which it reads an element that the wanted value reads."""
    if not names:
        yield {}
        return
    reads = [a for a in inner_atoms(value) if isinstance(a, Element)]
    for mine in (a for a in inner_atoms(given.value) if isinstance(a, Element)):
        for other in reads:
            found = _unify(names, mine, other)
            if found is not None:
                yield found


def _unify(names: list[str], mine: Element, other: Element) -> dict[str, Polynomial] | None:
    if mine.tensor != other.tensor or len(mine.index) != len(other.index):
        return None
    found: dict[str, Polynomial] = {}
    for place, target in zip(mine.index, other.index, strict=True):
        for name in names:
            split = place.linear(name)
            if split is not None and split[0] in (1, -1) and not (split[1].free & set(names)):
                found.setdefault(name, (target - split[1]) * split[0])
    return found if len(found) == len(names) else None
