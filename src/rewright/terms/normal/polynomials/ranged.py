"""Atoms with variables of their own: sums, folds and maxima over ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rewright.terms.normal.polynomials.atoms import (
    NO_NAMES,
    ONE,
    Atom,
    Base,
    Element,
    Exponential,
    Floor,
    Function,
    Indicator,
    Polynomial,
    digest,
    free_of,
    level_of,
)


def bound_name(level: int, number: int) -> str:
    """The name of a bound variable of an atom at a nesting level, which no other level uses."""
    return f"%{level}_{number}"


class PrefixSum(Atom):
    """The sum of ``body`` over ``0 <= k_i < bound_i``: an antiderivative, defined on all integers.

    In the body the variables are named by :func:`bound_name` at this atom's level.
    """

    __slots__ = ("body", "bounds")

    def __init__(self, bounds: tuple[Polynomial, ...], body: Polynomial) -> None:
        level = body.level + 1
        bound = {bound_name(level, number) for number in range(len(bounds))}
        key = digest("sum", *(b.key for b in bounds), body.key)
        super().__init__(key, (body.free - bound) | free_of(bounds), max(level, level_of(bounds)), body.integer)
        self.bounds = bounds
        self.body = body

    @property
    def depth(self) -> int:
        """The level of its own variables."""
        return self.body.level + 1

    def __str__(self) -> str:
        limits = ", ".join(f"{bound_name(self.depth, n)} < {b}" for n, b in enumerate(self.bounds))
        return f"sum[{limits}]({self.body})"


class Fold(Atom):
    """A fold over ``0 <= k < size`` that is compared as it is written: products, ``last``, and uninterpreted sums."""

    __slots__ = ("body", "kind", "size")

    def __init__(self, kind: str, size: Polynomial, body: Polynomial) -> None:
        bound = bound_name(body.level + 1, 0)
        key = digest("fold", kind, size.key, body.key)
        level = max(body.level + 1, size.level)
        super().__init__(key, (body.free - {bound}) | size.free, level, body.integer and kind != "last")
        self.kind = kind
        self.size = size
        self.body = body

    @property
    def variable(self) -> str:
        """The name of its own variable in the body."""
        return bound_name(self.body.level + 1, 0)

    def __str__(self) -> str:
        return f"{self.kind}[{self.variable} < {self.size}]({self.body})"


Range = tuple[Polynomial, Polynomial]


class Item:
    """What a maximum is taken of: a polynomial, or all values of one over ranges ``low <= k_i < high``, none empty.

    Only values where ``present``, which is zero or one, is one take part.
    """

    __slots__ = ("body", "free", "key", "level", "present", "ranges")

    def __init__(self, ranges: tuple[Range, ...], body: Polynomial, present: Polynomial = ONE) -> None:
        self.ranges = ranges
        self.body = body
        self.present = present
        limits = [limit for pair in ranges for limit in pair]
        inner = max(body.level, present.level)
        bound = {bound_name(inner + 1, number) for number in range(len(ranges))}
        self.key = digest("item", *(limit.key for limit in limits), body.key, present.key)
        self.free = ((body.free | present.free) - bound) | free_of(limits)
        self.level = max(inner + bool(ranges), level_of(limits))

    @property
    def depth(self) -> int:
        """The level of its own variables."""
        return max(self.body.level, self.present.level) + 1

    @property
    def always(self) -> bool:
        """Whether some value takes part, whatever holds."""
        return self.present == ONE

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        limits = ", ".join(f"{lo} <= {bound_name(self.depth, n)} < {hi}" for n, (lo, hi) in enumerate(self.ranges))
        where = "" if self.always else f" where {self.present}"
        return f"{self.body}{f' for {limits}' if limits else ''}{where}"


class Largest(Atom):
    """The largest of several items; minus infinity where none is present, and then only maxima and comparisons
    with infinities take it.
    """

    __slots__ = ("items",)

    def __init__(self, items: Iterable[Item]) -> None:
        self.items = tuple(sorted(items, key=lambda item: item.key))
        free = NO_NAMES.union(*(item.free for item in self.items))
        level = max(item.level for item in self.items)
        integer = all(item.body.integer for item in self.items)
        super().__init__(digest("max", *(item.key for item in self.items)), free, level, integer)

    @property
    def always(self) -> bool:
        """Whether some item is present, whatever holds."""
        return any(item.always for item in self.items)

    def __str__(self) -> str:
        return f"max({'; '.join(str(item) for item in self.items)})"


def children(atom: Atom) -> tuple[Polynomial, ...]:
    """The polynomials directly inside an atom."""
    if isinstance(atom, Element):
        return atom.index
    if isinstance(atom, Floor):
        return atom.numerator, atom.divisor
    if isinstance(atom, Function):
        return atom.arguments
    if isinstance(atom, Exponential):
        return (atom.exponent,)
    if isinstance(atom, Base):
        return (atom.value,)
    if isinstance(atom, Indicator):
        return (atom.guard.value,)
    if isinstance(atom, PrefixSum):
        return (*atom.bounds, atom.body)
    if isinstance(atom, Fold):
        return atom.size, atom.body
    if isinstance(atom, Largest):
        return tuple(
            p
            for item in atom.items
            for p in (item.body, item.present, *(limit for pair in item.ranges for limit in pair))
        )
    return ()


def inner_atoms(value: Polynomial, using: frozenset[str] | None = None) -> Iterator[Atom]:
    """Every atom at any depth, once; with ``using`` only those in which one of these names is free."""
    seen: set[bytes] = set()
    stack = [value]
    while stack:
        for atom in stack.pop().atoms():
            if atom.key in seen or (using is not None and not (atom.free & using)):
                continue
            seen.add(atom.key)
            yield atom
            stack.extend(children(atom))
