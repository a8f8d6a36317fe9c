"""Maxima over ranges in normal form: a set of items, with the binder steps of sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rewright.terms.normal.atoms import ONE, ZERO, Guard, Indicator, Polynomial, TooHard, polynomial, symbol
from rewright.terms.normal.binders import (
    Binder,
    merge_digits,
    name_binders,
    open_binders,
    orders,
    placements,
    split_digits,
    without,
)
from rewright.terms.normal.cases import branch, each
from rewright.terms.normal.context import Context, Values
from rewright.terms.normal.curves import same_sign
from rewright.terms.normal.guards import (
    MINUS_INFINITY,
    NOT_A_NUMBER,
    PLUS_INFINITY,
    Choice,
    Infinite,
    Leaf,
    Value,
    at_least,
    at_least_zero,
    choice,
)
from rewright.terms.normal.presence import is_present, may_be_infinite
from rewright.terms.normal.ranged import Item, Largest, Range
from rewright.terms.normal.substitution import collapse, substitute
from rewright.terms.normal.sums import Guards, range_of_guard, strided_binder

_MOST_PLACEMENTS = 16
"""Ways to begin the ranges of one item that are tried."""


def larger(context: Context, left: Value, right: Value) -> Value:
    """The larger of two guarded values."""

    def leaf(one: Leaf, other: Leaf) -> Value:
        return _larger(context, one, other)

    return each(context, leaf, left, right)


def negative(value: Value) -> Value:
    """Minus a guarded value."""
    if isinstance(value, Choice):
        return choice(value.guard, negative(value.yes), negative(value.no))
    if isinstance(value, Infinite):
        return PLUS_INFINITY if value.sign < 0 else MINUS_INFINITY
    if value == NOT_A_NUMBER:
        return value
    if isinstance(value, Polynomial):
        return -value
    raise TooHard("minus a value that is absent")


def _larger(context: Context, left: Value, right: Value) -> Value:
    if NOT_A_NUMBER in (left, right):
        return NOT_A_NUMBER
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Infinite):
            return other if one.sign < 0 else one
    if not isinstance(left, Polynomial) or not isinstance(right, Polynomial):
        raise TooHard("a maximum with a value that is absent")
    if left == right:
        return left
    items = [*_finite_items(context, left), *_finite_items(context, right)]
    if len(items) > 2 or any(item.ranges or not item.always for item in items):
        return largest(context, items)
    # Equal values may be taken from either side, so the guard is written in the one of two ways that sorts first.
    order = same_sign(left - right)
    if order.key > (-order).key:
        left, right = right, left
    return branch(context, at_least_zero(left - right), lambda: left, lambda: right)


def items_of(value: Polynomial) -> tuple[Item, ...]:
    """The items of a maximum, or the value as the only item."""
    atom = value.atom()
    return atom.items if isinstance(atom, Largest) else (Item((), value),)


def _finite_items(context: Context, value: Polynomial) -> tuple[Item, ...]:
    """As ``items_of``; raises TooHard for a multiple of a maximum that may be infinite, which is no number."""
    if not isinstance(value.atom(), Largest):
        atom = may_be_infinite(value)
        if atom is not None and not is_present(context, atom):
            raise TooHard(f"a maximum of {value}, which may be infinite")
    return items_of(value)


def largest(context: Context, items: Iterable[Item]) -> Polynomial:
    """The largest of several items, none with an empty range."""
    merged = _merged(context, {item.key: item for item in items})
    if not merged:
        raise TooHard("a maximum of nothing")
    if len(merged) == 1 and not merged[0].ranges and merged[0].always:
        return merged[0].body
    return polynomial(Largest(merged))


def _merged(context: Context, items: dict[bytes, Item]) -> list[Item]:
    """Overlapping or adjacent ranges of equal bodies become one."""
    while True:
        ranged = [items[key] for key in sorted(items) if items[key].ranges]
        pairs = ((a, b) for a in ranged for b in ranged if a is not b)
        for first, second in pairs:
            joined = _joined(context, first, second)
            if joined is not None:
                del items[first.key], items[second.key]
                items[joined.key] = joined
                break
        else:
            return [items[key] for key in sorted(items)]


def _joined(context: Context, first: Item, second: Item) -> Item | None:
    if (first.body, first.present, len(first.ranges)) != (second.body, second.present, len(second.ranges)):
        return None
    differing = [n for n, (a, b) in enumerate(zip(first.ranges, second.ranges, strict=True)) if a != b]
    if len(differing) != 1:
        return None
    (n,) = differing
    (low, high), (start, end) = first.ranges[n], second.ranges[n]
    if not (context.holds(at_least(start, low)) and context.holds(at_least(high, start))):
        return None
    if context.holds(at_least(end, high)):
        last = end
    elif context.holds(at_least(high, end)):
        last = high
    else:
        return None
    return Item((*first.ranges[:n], (low, last), *first.ranges[n + 1 :]), first.body, first.present)


def max_over(context: Context, name: str, size: Polynomial, value: Value) -> Value:
    """The maximum of a guarded value over ``0 <= name < size``; of nothing it is minus infinity."""
    return _by_path(context, name, size, value, ())


def _by_path(context: Context, name: str, size: Polynomial, value: Value, guards: Guards) -> Value:
    if not isinstance(value, Choice):
        return _under_guards(context, name, ZERO, size, value, ONE, guards)
    guard, yes, no = value.guard, value.yes, value.no
    if name not in guard.free:
        return branch(
            context,
            guard,
            lambda: _by_path(context, name, size, yes, guards),
            lambda: _by_path(context, name, size, no, guards),
        )
    decided = context.decide(guard)
    if decided is not None:
        return _by_path(context, name, size, yes if decided else no, guards)
    bound = _bounding(context, name, value)
    if bound is None:
        return _under_guards(context, name, ZERO, size, *_present(context, value), guards)
    yes, no = _assumed(value, bound, True), _assumed(value, bound, False)
    first = _by_path(context, name, size, yes, (*guards, (bound, True)))
    return larger(context, first, _by_path(context, name, size, no, (*guards, (bound, False))))


def _bounding(context: Context, name: str, value: Value) -> Guard | None:
    """The first condition in a value that says where a variable starts or ends."""
    if not isinstance(value, Choice):
        return None
    found = range_of_guard(context, name, value.guard, True) if name in value.guard.free else None
    if found is not None and found[0] in (">=", "<"):
        return value.guard
    return _bounding(context, name, value.yes) or _bounding(context, name, value.no)


def _assumed(value: Value, guard: Guard, polarity: bool) -> Value:
    """A guarded value where a guard has a truth value."""
    if not isinstance(value, Choice):
        return value
    if value.guard == guard:
        return _assumed(value.yes if polarity else value.no, guard, polarity)
    return choice(value.guard, _assumed(value.yes, guard, polarity), _assumed(value.no, guard, polarity))


def _present(context: Context, value: Value) -> tuple[Value, Polynomial]:
    """A value under conditions as one leaf, with one where it is more than minus infinity and zero elsewhere."""
    if not isinstance(value, Choice):
        return value, ZERO if value == MINUS_INFINITY else ONE
    (yes, mine), (no, other) = _present(context, value.yes), _present(context, value.no)
    present = other + polynomial(Indicator(value.guard)) * (mine - other)
    for one, another in ((yes, no), (no, yes)):
        if one == MINUS_INFINITY:
            return another, present
    together = collapse(context, choice(value.guard, yes, no))
    if together is None or may_be_infinite(yes) or may_be_infinite(no):
        raise TooHard(f"a maximum of {yes} and {no} under the condition {value.guard}")
    return together, present


def _under_guards(
    context: Context,
    name: str,
    low: Polynomial,
    high: Polynomial,
    value: Value,
    present: Polynomial,
    guards: Guards,
) -> Value:
    """The maximum of one leaf where all guards hold, each of which becomes a bound, and where it is present."""
    if value == MINUS_INFINITY:
        return MINUS_INFINITY
    if guards:
        found = range_of_guard(context, name, *guards[0])
        if found is None:
            raise TooHard(f"a maximum under the condition {guards[0][0]}")
        kind, limit = found

        def go(lo: Polynomial, hi: Polynomial) -> Value:
            return _under_guards(context, name, lo, hi, value, present, guards[1:])

        if kind == ">=":
            return branch(context, at_least(limit, low), lambda: go(limit, high), lambda: go(low, high))
        if kind == "<":
            return branch(context, at_least(high, limit), lambda: go(low, limit), lambda: go(low, high))
        raise TooHard(f"a maximum under the condition {guards[0][0]}")
    every = _every(context, (name, low, high), value, present)
    if every is not None:
        (name, low, high), value, present = every
    return branch(
        context,
        at_least(high - low, 1),
        lambda: _of_range(context, (name, low, high), value, present),
        lambda: MINUS_INFINITY,
    )


def _every(
    context: Context, binder: Binder, value: Value, present: Polynomial
) -> tuple[Binder, Polynomial, Polynomial] | None:
    """What is present at every k-th index only, over these indices; None where it is not."""
    single = present.single()
    if single is None or single[1] != 1 or not isinstance(value, Polynomial):
        return None
    for atom, _ in single[0]:
        found = strided_binder(context, *binder, atom.guard) if isinstance(atom, Indicator) else None
        if found is not None:
            values = {binder[0]: found[1]}
            rest = Polynomial({tuple(factor for factor in single[0] if factor[0] != atom): 1})
            with context.ranges([found[0]]):
                return found[0], substitute(context, value, values), substitute(context, rest, values)
    return None


def _of_range(context: Context, binder: Binder, value: Value, present: Polynomial) -> Value:
    if value in (MINUS_INFINITY, PLUS_INFINITY, NOT_A_NUMBER) and present == ONE:
        return value
    if not isinstance(value, Polynomial):
        raise TooHard(f"a maximum of {value} where {present}")
    items = [closed for item in _finite_items(context, value) for closed in _closed(context, binder, item, present)]
    return largest(context, items) if items else MINUS_INFINITY


def _closed(context: Context, binder: Binder, item: Item, present: Polynomial) -> list[Item]:
    binders, opened_item = _open_item(context, item)
    # Ranges inside that depend on the variable stay as they are.
    if any(binder[0] in limit.free for _, *limits in binders for limit in limits):
        raise TooHard("a maximum over a range that depends on another one")
    body, mine = _apart(opened_item)
    return _normal_item(context, [binder, *binders], _together(body, mine * present))


_PRESENT = "~present"
"""Stands before what says whether a value is present, where that and the value are written as one polynomial."""


def _together(body: Polynomial, present: Polynomial) -> Polynomial:
    return body + present * symbol(_PRESENT)


def _apart(value: Polynomial) -> tuple[Polynomial, Polynomial]:
    split = value.multiple(_PRESENT)
    if split is None:
        raise TooHard("a maximum whose values say whether they are present")
    return split[1], split[0]


def _open_item(context: Context, item: Item) -> tuple[list[Binder], Polynomial]:
    """The ranges of an item under fresh names, and what it says under them, written as one."""
    names, values = open_binders(context, len(item.ranges), item.depth)
    inside = substitute(context, _together(item.body, item.present), values)
    return [(name, *limits) for name, limits in zip(names, item.ranges, strict=True)], inside


def _normal_item(context: Context, binders: Sequence[Binder], inside: Polynomial) -> list[Item]:
    """The maximum over ranges, none of them empty, of a polynomial where it is present, both written as one."""
    context.tick()
    kept = [b for b in binders if b[0] in inside.free]
    for name, low, high in kept:
        if high - low == ONE:
            return _normal_item(context, without(kept, name), substitute(context, inside, {name: low}))
    if not kept:
        return _as_items(context, inside)
    split = split_digits(context, kept, inside)
    if split is not None:
        with context.ranges(split[1]):
            return _normal_item(context, split[0], split[2])
    halves = _halves(context, kept, inside)
    if halves is not None:
        return [item for binders, part in halves for item in _normal_item(context, binders, part)]
    merged = merge_digits(context, kept, inside)
    if merged is not None:
        return _normal_item(context, *merged)
    best: tuple[tuple[bytes, tuple[bytes, ...]], tuple[Range, ...], Polynomial] | None = None
    for placed, value in placements(context, kept, inside, _MOST_PLACEMENTS):
        for order in orders(context, placed, value):
            renamed = name_binders(context, placed, order, value)
            limits = tuple(placed[b][1:] for b in order)
            key = (renamed.key, tuple(p.key for pair in limits for p in pair))
            if best is None or key < best[0]:
                best = (key, limits, renamed)
    assert best is not None, "there is at least one order"
    body, present = _apart(best[2])
    return [Item(best[1], body, present)] if present.terms else []


def _halves(
    context: Context, binders: list[Binder], inside: Polynomial
) -> list[tuple[list[Binder], Polynomial]] | None:
    """What is another value up to a place of a range than after it, over both parts; None where nothing is.

    Keys that come in pieces in another order are read so.
    """
    names = {b[0] for b in binders}
    for atom in inside.atoms():
        own = atom.free & names if isinstance(atom, Indicator) else ()
        for name, low, high in (b for b in binders if len(own) == 1 and b[0] in own):
            found = range_of_guard(context, name, atom.guard, True) if isinstance(atom, Indicator) else None
            if found is None or found[0] not in (">=", "<"):
                continue
            limit = found[1]
            if context.holds(at_least(limit, low + 1)) and context.holds(at_least(high, limit + 1)):
                return [_shorter(context, binders, name, *part, inside) for part in ((low, limit), (limit, high))]
    return None


def _shorter(
    context: Context, binders: list[Binder], name: str, low: Polynomial, high: Polynomial, inside: Polynomial
) -> tuple[list[Binder], Polynomial]:
    """The binders with one that goes over a part of its range, and what is inside of them there."""
    fresh = context.fresh("b")
    shorter = [(fresh, ZERO, high - low) if b[0] == name else b for b in binders]
    with context.ranges(shorter):
        return shorter, substitute(context, inside, {name: symbol(fresh) + low})


def _as_items(context: Context, inside: Polynomial) -> list[Item]:
    """A value without ranges as items, each present where both are."""
    body, present = _apart(inside)
    if present == ONE:
        return list(items_of(body))
    found: list[Item] = []
    for item in items_of(body):
        binders, opened_item = _open_item(context, item)
        value, mine = _apart(opened_item)
        both = mine * present
        if binders:
            found += _normal_item(context, binders, _together(value, both))
        elif both.terms:
            found.append(Item((), value, both))
    return found


def mapped_largest(context: Context, atom: Largest, function: Callable[[Polynomial], Polynomial]) -> Polynomial:
    """A maximum of the values of a function, which is one more maximum where the function grows."""
    items: list[Item] = []
    for item in atom.items:
        binders, inside = _open_item(context, item)
        body, present = _apart(inside)
        items += _normal_item(context, binders, _together(function(body), present))
    return largest(context, items)


def members(context: Context, atom: Largest) -> Iterator[Polynomial]:
    """One value of each item of a maximum that takes part whatever holds: the first of its ranges."""
    for item in atom.items:
        if item.always:
            binders, inside = _open_item(context, item)
            yield _apart(substitute(context, inside, {name: low for name, low, _ in binders}))[0]


def split_item(context: Context, item: Item, number: int, parts: int, size: Polynomial) -> list[Item]:
    """What is taken over one range dealt out to so many items, each with every so many-th value, ``size`` of them."""
    binders, inside = _open_item(context, item)
    name, low, _ = binders[number]
    found: list[Item] = []
    for part in range(parts):
        new = context.fresh("b")
        dealt = [*binders[:number], (new, ZERO, size), *binders[number + 1 :]]
        found += _normal_item(context, dealt, substitute(context, inside, {name: low + symbol(new) * parts + part}))
    return found


def rebuild_largest(context: Context, atom: Largest, values: Values) -> Polynomial:
    """A maximum with symbols replaced: opened, replaced inside, and taken again."""
    items: list[Item] = []
    for item in atom.items:
        names, inner = open_binders(context, len(item.ranges), item.depth)
        merged = {**{name: value for name, value in values.items() if name not in inner}, **inner}
        inside = substitute(context, _together(item.body, item.present), merged)
        binders = [
            (name, substitute(context, low, values), substitute(context, high, values))
            for name, (low, high) in zip(names, item.ranges, strict=True)
        ]
        items += _normal_item(context, binders, inside)
    return largest(context, items)
