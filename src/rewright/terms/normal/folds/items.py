"""What maxima are taken of: items over ranges in one form, with the binder steps of sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from rewright.terms.normal.arithmetic.binders import (
    Binder,
    merge_digits,
    name_binders,
    open_binders,
    orders,
    placements,
    range_of_guard,
    split_digits,
    without,
)
from rewright.terms.normal.arithmetic.substitution import substitute
from rewright.terms.normal.facts.context import Context, Values
from rewright.terms.normal.facts.guards import at_least
from rewright.terms.normal.polynomials.atoms import ONE, ZERO, Indicator, Polynomial, TooHard, polynomial, symbol
from rewright.terms.normal.polynomials.ranged import Item, Largest, Range

_MOST_PLACEMENTS = 16
"""Ways to begin the ranges of one item that are tried."""


def items_of(value: Polynomial) -> tuple[Item, ...]:
    """The items of a maximum, or the value as the only item."""
    atom = value.atom()
    return atom.items if isinstance(atom, Largest) else (Item((), value),)


def largest(context: Context, items: Iterable[Item]) -> Polynomial:
    """The largest of several items, none with an empty range."""
    merged = _above_constants(context, _merge(context, {item.key: item for item in items}))
    if not merged:
        raise TooHard("a maximum of nothing")
    if len(merged) == 1 and not merged[0].ranges and merged[0].always:
        return merged[0].body
    return polynomial(Largest(merged))


def _above_constants(context: Context, items: list[Item]) -> list[Item]:
    """The items without numbers that a value of another one is known not to be below."""
    for item in [item for item in items if not item.ranges and item.always and item.body.constant() is not None]:
        others = [other for other in items if other != item]
        least = members(context, Largest(others)) if others else ()
        if any(value.integer and context.holds(at_least(value, item.body)) for value in least):
            items = others
    return items


def _merge(context: Context, items: dict[bytes, Item]) -> list[Item]:
    """Overlapping or adjacent ranges of equal bodies become one."""
    while True:
        ranged = [items[key] for key in sorted(items) if items[key].ranges]
        pairs = ((a, b) for a in ranged for b in ranged if a is not b)
        for first, second in pairs:
            joined = _join(context, first, second)
            if joined is not None:
                del items[first.key], items[second.key]
                items[joined.key] = joined
                break
        else:
            return [items[key] for key in sorted(items)]


def _join(context: Context, first: Item, second: Item) -> Item | None:
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


def members_at(context: Context, atom: Largest, places: Sequence[Polynomial]) -> Iterator[Polynomial]:
    """The values of the items of a maximum that take part whatever holds, at those of some places in their ranges."""
    for item in atom.items:
        binders, inside = _open_item(context, item)
        if not item.always or len(binders) != 1:
            continue
        name, low, high = binders[0]
        for place in places:
            if context.holds(at_least(place, low)) and context.holds(at_least(high, place + 1)):
                yield _apart(substitute(context, inside, {name: place}))[0]


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


def parts_of_item(context: Context, item: Item, number: int, parts: Sequence[Range]) -> list[Item]:
    """What is taken over one range as several, each over a part of it."""
    binders, inside = _open_item(context, item)
    return [
        found
        for low, high in parts
        for found in _normal_item(context, *_shorter(context, binders, binders[number][0], low, high, inside))
    ]


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


def over_range(context: Context, binder: Binder, item: Item, present: Polynomial) -> list[Item]:
    """An item taken over one more range, outside of its own, where something is present."""
    binders, inside = _open_item(context, item)
    (name, low, high), outer = binder, [binder]
    if context.equal(high - low, ONE):
        values, outer = {name: low}, []
        binders = [(b, substitute(context, lo, values), substitute(context, hi, values)) for b, lo, hi in binders]
        inside, present = substitute(context, inside, values), substitute(context, present, values)
    # Ranges inside that depend on the variable stay as they are.
    if any(name in limit.free for _, *limits in binders for limit in limits):
        raise TooHard("a maximum over a range that depends on another one")
    body, mine = _apart(inside)
    return _normal_item(context, [*outer, *binders], _together(body, mine * present))
