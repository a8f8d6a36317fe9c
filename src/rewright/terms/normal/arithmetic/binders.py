"""Steps that sums and maxima share: how a bound variable is split, merged, moved and named."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from rewright.terms.normal.arithmetic.division import divide, floor_quotient
from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.facts.context import Context, Signed
from rewright.terms.normal.facts.guards import at_least
from rewright.terms.normal.polynomials.atoms import (
    Element,
    Floor,
    Function,
    Guard,
    Polynomial,
    TooHard,
    polynomial,
    symbol,
)
from rewright.terms.normal.polynomials.ranged import bound_name, children, inner_atoms

Binder = tuple[str, Polynomial, Polynomial]
"""Name, lower bound, upper bound (exclusive)."""

_ANY_ORDER, _MOST_ORDERS = 4, 24
"""So many binders are tried in every order; of more, so many orders of those that nothing tells apart."""


def without(binders: Sequence[Binder], *names: str) -> list[Binder]:
    """The other binders."""
    return [b for b in binders if b[0] not in names]


def split_digits(
    context: Context, binders: Sequence[Binder], body: Polynomial
) -> tuple[list[Binder], list[Binder], Polynomial] | None:
    """A variable over ``[m*q, n*q)`` used through its quotient by q becomes two: (all binders, the two, body)."""
    for name, low, high in binders:
        for atom in inner_atoms(body, frozenset((name,))):
            if not isinstance(atom, Floor) or name not in atom.numerator.free:
                continue
            divisor = atom.divisor
            (first, before), (last, rest) = divide(low, divisor), divide(high, divisor)
            if rest.terms or before.terms or not last.terms or last == first + 1:
                continue
            if divisor.free & {b[0] for b in binders}:
                continue
            if not (context.holds(at_least(last, first)) and context.holds(at_least(divisor, 1))):
                continue
            new: list[Binder] = [(context.fresh("b"), first, last), (context.fresh("b"), Polynomial({}), divisor)]
            with context.ranges(new):
                changed = substitute(context, body, {name: symbol(new[0][0]) * divisor + symbol(new[1][0])})
            names = frozenset(b[0] for b in new)
            stuck = (a for a in inner_atoms(changed, names) if isinstance(a, Floor) and a.divisor == divisor)
            if next(stuck, None) is None:
                return [*without(binders, name), *new], new, changed
    return None


def merge_digits(
    context: Context, binders: Sequence[Binder], body: Polynomial
) -> tuple[list[Binder], Polynomial] | None:
    """Variables i and j over ``[0, n)`` that are only used as ``i*n + j`` become one."""
    for j, low, high in binders:
        if low.terms:
            continue
        for i, first, last in binders:
            if i == j or j in (last.free | first.free) or i in high.free or not _occur_together(body, i, j):
                continue
            name = context.fresh("b")
            changed = substitute(context, body, {j: symbol(name) - high * symbol(i)})
            if i not in changed.free:
                return [*without(binders, i, j), (name, high * first, high * last)], changed
    return None


def _occur_together(body: Polynomial, i: str, j: str) -> bool:
    """Whether both variables occur together in every innermost use: a cheap test before a substitution."""
    for atom in inner_atoms(body, frozenset((i, j))):
        for child in children(atom):
            used = child.free & {i, j}
            if len(used) == 1 and not any(isinstance(a, (Element, Function)) for a in child.atoms()):
                return False
    return True


def offsets(body: Polynomial, name: str, bound: frozenset[str]) -> list[tuple[int, Polynomial]]:
    """The ways ``(c, r)`` in which the first (tensor, axis) that uses a variable as ``c*name + r`` does so.

    c is one or minus one, and r has no bound variable.
    """
    found: dict[tuple[str, int], dict[tuple[int, bytes], tuple[int, Polynomial]]] = {}
    for atom in inner_atoms(body, frozenset((name,))):
        if isinstance(atom, Element):
            places = [(atom.tensor, axis, index) for axis, index in enumerate(atom.index)]
        elif isinstance(atom, Floor):
            places = [("~floor", 0, atom.numerator)]
        else:
            continue
        for tensor, axis, index in places:
            use = index.linear(name)
            if use is None or use[0] not in (1, -1) or use[1].free & bound or _has_bound(use[1]):
                continue
            way = (int(use[0]), use[1])
            found.setdefault((tensor, axis), {})[way[0], way[1].key] = way
    if not found:
        return []
    ways = found[min(found)]
    return [ways[key] for key in sorted(ways)]


def _has_bound(value: Polynomial) -> bool:
    return any(name.startswith(("%", "~b", "~k")) for name in value.free)


def moved(context: Context, binder: Binder, sign: int, offset: Polynomial) -> tuple[Binder, Polynomial]:
    """The binder renamed so that its use ``sign*name + offset`` is the new variable, with the old one's value."""
    _, low, high = binder
    name = context.fresh("b")
    if sign == 1:
        return (name, low + offset, high + offset), symbol(name) - offset
    return (name, offset - high + 1, offset - low + 1), offset - symbol(name)


def placements(
    context: Context, binders: list[Binder], body: Polynomial, most: int
) -> list[tuple[list[Binder], Polynomial]]:
    """The binders moved so that the first use of each has offset zero, in every way up to ``most``."""
    bound = frozenset(b[0] for b in binders)
    found = [(list(binders), body)]
    for position in range(len(binders)):
        grown: list[tuple[list[Binder], Polynomial]] = []
        for current, value in found:
            ways = offsets(value, current[position][0], bound | {b[0] for b in current})
            if not ways:
                grown.append((current, value))
            for sign, offset in ways:
                if sign == 1 and not offset.terms:
                    grown.append((current, value))
                    continue
                binder, old = moved(context, current[position], sign, offset)
                changed = substitute(context, value, {current[position][0]: old})
                grown.append(([*current[:position], binder, *current[position + 1 :]], changed))
        found = grown[:most]
    return found


def orders(context: Context, binders: Sequence[Binder], body: Polynomial) -> Iterator[tuple[int, ...]]:
    """All orders of up to four binders; of more, those that put first what the body says first of them.

    Binders that only their names tell apart take all orders among them, up to a bound.
    """
    if len(binders) <= _ANY_ORDER:
        yield from itertools.permutations(range(len(binders)))
        return
    alike: dict[int, list[int]] = {}
    for number, rank in enumerate(_ranks(context, binders, body)):
        alike.setdefault(rank, []).append(number)
    ways = itertools.product(*(itertools.permutations(alike[rank]) for rank in sorted(alike)))
    for way in itertools.islice(ways, _MOST_ORDERS):
        yield tuple(itertools.chain.from_iterable(way))


def _ranks(context: Context, binders: Sequence[Binder], body: Polynomial) -> list[int]:
    """Ranks of binders that do not depend on their names: by their ranges and uses, then by the ranks of those beside.

    The colours of McKay's canonical labelling of graphs, without its search.
    """
    ranks = [0] * len(binders)
    for _ in binders:
        uses = [_uses(context, binders, number, ranks, body) for number in range(len(binders))]
        said = [(r, low.key, high.key, own) for r, (_, low, high), own in zip(ranks, binders, uses, strict=True)]
        order = sorted(set(said))
        finer = [order.index(own) for own in said]
        if finer == ranks:
            break
        ranks = finer
    return ranks


def _uses(
    context: Context, binders: Sequence[Binder], number: int, ranks: Sequence[int], body: Polynomial
) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """The factors that read a binder, with its rank for every other one."""
    own = binders[number][0]
    names = {name: symbol(f"~rank{rank}") for (name, _, _), rank in zip(binders, ranks, strict=True)}
    names[own] = symbol("~own")
    found: list[tuple[str, tuple[bytes, ...]]] = []
    for monomial, coefficient in body.terms.items():
        factors = [Polynomial({(factor,): 1}) for factor in monomial if own in factor[0].free]
        if factors:
            found.append((str(coefficient), tuple(sorted(substitute(context, f, names).key for f in factors))))
    return tuple(sorted(found))


def name_binders(context: Context, binders: Sequence[Binder], order: Sequence[int], body: Polynomial) -> Polynomial:
    """The body with binders named by level, in an order; raises TooHard where renaming changes the level."""
    level = 1 + body.level
    for _ in range(3):
        renamed = {binders[b][0]: symbol(bound_name(level, number)) for number, b in enumerate(order)}
        found = substitute(context, body, renamed)
        # The names say the level, and inner sums are built again when names change.
        if found.level + 1 == level:
            return found
        level = found.level + 1
    raise TooHard("a sum whose depth depends on the names of its variables")


def open_binders(context: Context, count: int, level: int) -> tuple[list[str], dict[str, Polynomial]]:
    """Fresh names for bound variables of a level, and the substitution that puts them in."""
    names = [context.fresh("b") for _ in range(count)]
    return names, {bound_name(level, number): symbol(name) for number, name in enumerate(names)}


def read_alike(names: Sequence[str], mine: Element, other: Element) -> dict[str, Polynomial] | None:
    """Values of all variables at which an access reads what another one reads, as far as one axis each says."""
    if mine.tensor != other.tensor or len(mine.index) != len(other.index):
        return None
    found: dict[str, Polynomial] = {}
    for place, target in zip(mine.index, other.index, strict=True):
        for name in names:
            split = place.linear(name)
            if split is not None and split[0] in (1, -1) and not (split[1].free & set(names)):
                found.setdefault(name, (target - split[1]) * split[0])
    return found if len(found) == len(names) else None


Guards = tuple[Signed, ...]


def range_of_guard(context: Context, name: str, guard: Guard, polarity: bool) -> tuple[str, Polynomial] | None:
    """What a guard says about a variable: ``(">=", e)``, ``("<", e)``, ``("=", e)``, ``("!=", e)``, or None."""
    if not guard.kind.startswith("integer"):
        return None
    if guard.kind == "integer=0":
        split = guard.value.multiple(name)
        sign = None if split is None else split[0].constant()
        if split is None or sign not in (1, -1):
            return None
        return ("=" if polarity else "!="), split[1] * -sign
    split = _without_quotient(guard.value if polarity else -guard.value - 1, name).multiple(name)
    if split is None:
        return None
    factor, rest = split
    if context.holds(at_least(factor, 1)):
        return ">=", -floor_quotient(context, rest, factor)
    if context.holds(at_least(-factor, 1)):
        return "<", floor_quotient(context, rest, -factor) + 1
    return None


def _without_quotient(value: Polynomial, name: str) -> Polynomial:
    """What is not negative where a value is not: ``k - 24`` for ``floor(k / 8) - 3``, where k is nowhere else in it."""
    found = [(m, c) for m, c in value.terms.items() if any(name in atom.free for atom, _ in m)]
    if len(found) != 1 or found[0][1] not in (1, -1) or not value.integer:
        return value
    atom, quotient = Polynomial({found[0][0]: 1}).atom(), Polynomial(dict(found))
    if not isinstance(atom, Floor) or name in atom.divisor.free:
        return value
    rest = (value - quotient) * atom.divisor
    return rest + atom.numerator if found[0][1] == 1 else rest + atom.divisor - 1 - atom.numerator


def strided_binder(
    context: Context, name: str, low: Polynomial, high: Polynomial, guard: Guard
) -> tuple[Binder, Polynomial] | None:
    """A guard that ``c*name + r`` is a multiple of q, with c one or minus one: (the multiple's range, the value)."""
    if guard.kind != "integer=0":
        return None
    for atom in guard.value.atoms():
        if not isinstance(atom, Floor) or name not in atom.numerator.free or name in atom.divisor.free:
            continue
        split = atom.numerator.linear(name)
        rest = atom.numerator - atom.divisor * polynomial(atom)
        if split is None or split[0] not in (1, -1) or guard.value not in (rest, -rest):
            continue
        sign, offset, divisor = int(split[0]), split[1], atom.divisor
        multiple = context.fresh("b")
        if sign == 1:
            limits = [-floor_quotient(context, -(limit + offset), divisor) for limit in (low, high)]
        else:
            limits = [floor_quotient(context, offset - limit, divisor) + 1 for limit in (high, low)]
        return (multiple, limits[0], limits[1]), (symbol(multiple) * divisor - offset) * sign
    return None
