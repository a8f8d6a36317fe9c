"""Maxima over ranges in normal form: a set of items, with the binder steps of sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewright.terms.normal.atoms import ONE, ZERO, Item, Largest, Polynomial, Range, TooHard, polynomial
from rewright.terms.normal.binders import (
    Binder,
    merge_digits,
    moved,
    named,
    offsets,
    opened,
    orders,
    split_digits,
    without,
)
from rewright.terms.normal.cases import branch, each
from rewright.terms.normal.context import Context, Values
from rewright.terms.normal.guards import (
    MINUS_INFINITY,
    PLUS_INFINITY,
    Choice,
    Infinite,
    Leaf,
    Value,
    at_least,
    at_least_zero,
    choice,
)
from rewright.terms.normal.substitution import collapsed, substitute
from rewright.terms.normal.sums import Guards, range_of_guard


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
    if isinstance(value, Polynomial):
        return -value
    raise TooHard("minus a value that is absent")


def _larger(context: Context, left: Value, right: Value) -> Value:
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Infinite):
            return other if one.sign < 0 else one
    if not isinstance(left, Polynomial) or not isinstance(right, Polynomial):
        raise TooHard("a maximum with a value that is absent")
    if left == right:
        return left
    items = [*items_of(left), *items_of(right)]
    if len(items) > 2 or any(item.ranges for item in items):
        return largest(context, items)
    # Equal values may be taken from either side, so the guard is written in the one of two ways that sorts first.
    if (left - right).key > (right - left).key:
        left, right = right, left
    return branch(context, at_least_zero(left - right), lambda: left, lambda: right)


def items_of(value: Polynomial) -> tuple[Item, ...]:
    """The items of a maximum, or the value as the only item."""
    atom = value.atom()
    return atom.items if isinstance(atom, Largest) else (Item((), value),)


def largest(context: Context, items: Iterable[Item]) -> Polynomial:
    """The largest of several items, of which none is empty."""
    merged = _merged(context, {item.key: item for item in items})
    if len(merged) == 1 and not merged[0].ranges:
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
    if first.body != second.body or len(first.ranges) != len(second.ranges):
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
    return Item((*first.ranges[:n], (low, last), *first.ranges[n + 1 :]), first.body)


def max_over(context: Context, name: str, size: Polynomial, value: Value) -> Value:
    """The maximum of a guarded value over ``0 <= name < size``; of nothing it is minus infinity."""
    return _by_path(context, name, size, value, ())


def _by_path(context: Context, name: str, size: Polynomial, value: Value, guards: Guards) -> Value:
    if not isinstance(value, Choice):
        return _under_guards(context, name, ZERO, size, value, guards)
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
    found = range_of_guard(context, name, guard, True)
    if found is None or found[0] in ("=", "!="):
        together = collapsed(context, value)
        if together is None:
            raise TooHard(f"a maximum of infinite values under the condition {guard}")
        return _under_guards(context, name, ZERO, size, together, guards)
    first = _by_path(context, name, size, yes, (*guards, (guard, True)))
    return larger(context, first, _by_path(context, name, size, no, (*guards, (guard, False))))


def _under_guards(
    context: Context, name: str, low: Polynomial, high: Polynomial, value: Value, guards: Guards
) -> Value:
    """The maximum of one leaf where all guards hold; each becomes a bound."""
    if value == MINUS_INFINITY:
        return MINUS_INFINITY
    if guards:
        found = range_of_guard(context, name, *guards[0])
        if found is None:
            raise TooHard(f"a maximum under the condition {guards[0][0]}")
        kind, limit = found

        def go(lo: Polynomial, hi: Polynomial) -> Value:
            return _under_guards(context, name, lo, hi, value, guards[1:])

        if kind == ">=":
            return branch(context, at_least(limit, low), lambda: go(limit, high), lambda: go(low, high))
        if kind == "<":
            return branch(context, at_least(high, limit), lambda: go(low, limit), lambda: go(low, high))
        raise TooHard(f"a maximum under the condition {guards[0][0]}")
    return branch(
        context,
        at_least(high - low, 1),
        lambda: _of_range(context, (name, low, high), value),
        lambda: MINUS_INFINITY,
    )


def _of_range(context: Context, binder: Binder, value: Value) -> Value:
    if isinstance(value, Infinite):
        return value
    if not isinstance(value, Polynomial):
        raise TooHard("a maximum of values that are absent")
    items = [closed for item in items_of(value) for closed in _closed(context, binder, item)]
    return largest(context, items)


def _closed(context: Context, binder: Binder, item: Item) -> list[Item]:
    binders, body = _open_item(context, item)
    # Ranges inside that depend on the variable stay as they are.
    if any(binder[0] in limit.free for _, *limits in binders for limit in limits):
        raise TooHard("a maximum over a range that depends on another one")
    return _normal_item(context, [binder, *binders], body)


def _open_item(context: Context, item: Item) -> tuple[list[Binder], Polynomial]:
    names, values = opened(context, len(item.ranges), item.depth)
    body = substitute(context, item.body, values)
    return [(name, *limits) for name, limits in zip(names, item.ranges, strict=True)], body


def _normal_item(context: Context, binders: Sequence[Binder], body: Polynomial) -> list[Item]:
    """The maximum of a polynomial over ranges, none of them empty."""
    context.tick()
    kept = [b for b in binders if b[0] in body.free]
    for name, low, high in kept:
        if high - low == ONE:
            return _normal_item(context, without(kept, name), substitute(context, body, {name: low}))
    if not kept:
        return list(items_of(body))
    split = split_digits(context, kept, body)
    if split is not None:
        with context.ranges(split[1]):
            return _normal_item(context, split[0], split[2])
    merged = merge_digits(context, kept, body)
    if merged is not None:
        return _normal_item(context, *merged)
    placed, value = _placed(context, kept, body)
    best: tuple[tuple[bytes, tuple[bytes, ...]], tuple[Range, ...], Polynomial] | None = None
    for order in orders(len(placed)):
        renamed = named(context, placed, order, value)
        limits = tuple(placed[b][1:] for b in order)
        key = (renamed.key, tuple(p.key for pair in limits for p in pair))
        if best is None or key < best[0]:
            best = (key, limits, renamed)
    assert best is not None, "there is at least one order"
    return [Item(best[1], best[2])]


def _placed(context: Context, binders: list[Binder], body: Polynomial) -> tuple[list[Binder], Polynomial]:
    """Every binder moved so that its first use has offset zero."""
    found = list(binders)
    for position, binder in enumerate(found):
        ways = offsets(body, binder[0], frozenset(b[0] for b in found))
        if ways:
            found[position], old = moved(context, binder, *ways[0])
            body = substitute(context, body, {binder[0]: old})
    return found, body


def scaled_largest(context: Context, atom: Largest, factor: Polynomial, offset: Polynomial) -> Polynomial:
    """``factor * max + offset`` as one maximum, for a factor that is positive."""
    items: list[Item] = []
    for item in atom.items:
        binders, body = _open_item(context, item)
        items += _normal_item(context, binders, body * factor + offset)
    return largest(context, items)


def rebuild_largest(context: Context, atom: Largest, values: Values) -> Polynomial:
    """A maximum with symbols replaced: opened, replaced inside, and taken again."""
    items: list[Item] = []
    for item in atom.items:
        names, inner = opened(context, len(item.ranges), item.depth)
        merged = {**{name: value for name, value in values.items() if name not in inner}, **inner}
        body = substitute(context, item.body, merged)
        binders = [
            (name, substitute(context, low, values), substitute(context, high, values))
            for name, (low, high) in zip(names, item.ranges, strict=True)
        ]
        items += _normal_item(context, binders, body)
    return largest(context, items)
