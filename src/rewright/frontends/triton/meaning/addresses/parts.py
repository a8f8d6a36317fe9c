"""Flat numbers that are parted in digits: ``x // 32`` and ``x % 32`` of ``x = program * 128 + lane``.

Where a kernel walks a tensor by one flat number below ``total``, the digits of that number are variables of their own
for as long as an access is read: places are affine in them, so that a load is a view again. The block of digits is
reshaped to one axis of ``total`` elements, padded to whole tiles, and split in instances and lanes; a store is the way
back.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rewright.frontends.triton.meaning.addresses.indices import DATA, lane, lanes, substitute, variables
from rewright.frontends.triton.meaning.addresses.places import digits_of, magnitude
from rewright.frontends.triton.meaning.addresses.safety import Ranges
from rewright.frontends.triton.meaning.values import Data, Shape
from rewright.frontends.triton.meaning.writer import Writer
from rewright.ir.dims import Dim, ceil_quotient, divide, product
from rewright.ops.reference import building as rb
from rewright.terms.index import Atom, Index, Quotient, Remainder, Variable, variable


@dataclass(frozen=True)
class Flat:
    """A number made of variables without gaps, and the digits that it is parted in."""

    variables: tuple[str, ...]
    """The largest first, as they count in it."""
    sizes: tuple[Dim, ...]
    total: Dim
    """How far the digits count, which is as far as the number is used."""
    digits: tuple[str, ...]
    counts: tuple[Dim, ...]
    value: Index
    """The last variable in digits and the other variables."""


@dataclass(frozen=True)
class Parts:
    """All flat numbers of an access."""

    writer: Writer
    ranges: Ranges
    flats: tuple[Flat, ...]

    @contextmanager
    def counted(self) -> Generator[None]:
        """Inside, digits are axes as instances are."""
        axes = self.writer.axes
        own = {name: size for flat in self.flats for name, size in zip(flat.digits, flat.counts, strict=True)}
        axes.update(own)
        try:
            yield
        finally:
            for name in own:
                del axes[name]

    def index(self, index: Index) -> Index:
        """An index in digits."""
        values = {flat.variables[-1]: flat.value for flat in self.flats}
        return self._plain(substitute(index, values))

    def _plain(self, index: Index) -> Index:
        """The index without quotients and remainders of what is known to be below their divisor."""
        total = Index(index.constant)
        for atom, coefficient in index.terms:
            total = total + self._atom(atom) * coefficient
        return total

    def _atom(self, atom: Atom) -> Index:
        if not isinstance(atom, Quotient | Remainder):
            return Index(0, ((atom, 1),))
        inner, by = self._plain(atom.numerator), atom.divisor
        outer = Index(0)
        for part, coefficient in inner.terms:
            steps = divide(coefficient, by)
            if steps is not None:
                outer = outer + Index(0, ((part, steps),))
        rest = inner - outer * by
        sizes = self.writer.axes
        if all(name in sizes for name in variables(rest)) and self.ranges.holds(
            sizes, (), (rest, Index(by - 1) - rest)
        ):
            return outer if isinstance(atom, Quotient) else rest
        kind = Quotient if isinstance(atom, Quotient) else Remainder
        return Index(0, ((kind(inner, by), 1),))

    def reached(self) -> list[Index]:
        """That the digits are those of a number which some instance and lane has."""
        ends: list[Index] = []
        for flat in self.flats:
            number, step = Index(0), 1
            for name, count in zip(reversed(flat.digits), reversed(flat.counts), strict=True):
                number, step = number + variable(name) * step, step * count
            ends.append(Index(product(flat.sizes) - 1) - number)
        return ends

    def block(self, shape: Shape) -> Shape:
        """A block with one lane where lanes are digits."""
        gone = {name for flat in self.flats for name in flat.variables}
        return tuple(1 if lane(k) in gone else size for k, size in enumerate(shape))

    def joined(self, data: Data, shape: Shape, filling: float | int | bool) -> Data:
        """A block of digits as one of instances and lanes; ``filling`` where the numbers are not below the total."""
        b, writer = self.writer.b, self.writer
        digits = [name for flat in self.flats for name in flat.digits]
        axes = tuple(name for name in writer.axes if name in data.axes or name in digits)
        position, names = writer.spread(data, axes), [*axes, *lanes(len(shape))]
        for flat in self.flats:
            order = [*(n for n in names if n not in flat.digits), *flat.digits]
            position = rb.transpose(b, position, [names.index(name) for name in order])
            kept = list(b.type(position).shape[: len(order) - len(flat.digits)])
            position = rb.reshape(b, position, [*kept, flat.total])
            position = _fitted(writer, position, product(flat.sizes), filling)
            position = rb.reshape(b, position, [*kept, *flat.sizes])
            names = [*order[: len(kept)], *flat.variables]
            position, names = _without(writer, position, names)
        own = tuple(name for name in writer.axes if name in names)
        return Data(rb.transpose(b, position, [names.index(n) for n in (*own, *lanes(len(shape)))]), own, shape)

    def split(self, data: Data) -> Data:
        """A block of instances and lanes as one of digits."""
        b, writer = self.writer.b, self.writer
        needed = {name for flat in self.flats for name in flat.variables}
        axes = tuple(name for name in writer.axes if name in data.axes or name in needed)
        position, names = writer.spread(data, axes), [*axes, *lanes(len(data.shape))]
        for flat in self.flats:
            order = [*(n for n in names if n not in flat.variables), *flat.variables]
            position = rb.transpose(b, position, [names.index(name) for name in order])
            kept = list(b.type(position).shape[: len(order) - len(flat.variables)])
            position = rb.reshape(b, position, [*kept, product(flat.sizes)])
            position = _fitted(writer, position, flat.total, 0)
            position = rb.reshape(b, position, [*kept, *flat.counts])
            names = [*order[: len(kept)], *flat.digits]
        gone = [lane(k) for k in range(len(data.shape)) if lane(k) in needed]
        position = rb.reshape(b, position, [*b.type(position).shape, *(1 for _ in gone)])
        names += gone
        own = tuple(name for name in writer.axes if name in names)
        every = [*own, *lanes(len(data.shape))]
        return Data(rb.transpose(b, position, [names.index(n) for n in every]), own, self.block(data.shape))


def _without(writer: Writer, position: int, names: list[str]) -> tuple[int, list[str]]:
    """Without the first of two axes for one lane: that of one element, which stood for the digits."""
    shape = list(writer.b.type(position).shape)
    twice = [n for n, name in enumerate(names) if names.count(name) == 2 and names.index(name) == n]
    kept = [n for n in range(len(names)) if n not in twice]
    return rb.reshape(writer.b, position, [shape[n] for n in kept]), [names[n] for n in kept]


def _fitted(writer: Writer, position: int, size: Dim, filling: float | int | bool) -> int:
    """The last axis with as many elements."""
    kind = writer.b.type(position)
    missing = size - kind.shape[-1]
    if missing == 0:
        return position
    zeros: list[Dim] = [0] * (kind.rank - 1)
    return rb.pad(writer.b, position, [*zeros, 0], [*zeros, missing], rb.cast(filling, kind.dtype))


def parts_of(
    writer: Writer, ranges: Ranges, places: Sequence[Index], given: Sequence[Index], sizes: Mapping[str, Dim]
) -> Parts | None:
    """The flat numbers that places are made of, whose digits make them affine; None where there are none."""
    taken, found = set[str](), list[Flat]()
    for atom in _atoms(places):
        inner = set(variables(_innermost(atom)))
        if not inner or any(name.startswith(DATA) for name in inner) or inner <= taken:
            continue
        flat = _flat(atom, places, given, sizes, len(found))
        if flat is None or taken & set(flat.variables):
            return None
        taken |= set(flat.variables)
        found.append(flat)
    return Parts(writer, ranges, tuple(found)) if found else None


def _atoms(places: Iterable[Index]) -> list[Quotient | Remainder]:
    return [atom for place in places for atom, _ in place.terms if isinstance(atom, Quotient | Remainder)]


def _innermost(atom: Quotient | Remainder) -> Index:
    """What is parted in the end: ``x`` of ``x // 4 % 8``."""
    inner = [part for part, _ in atom.numerator.terms if isinstance(part, Quotient | Remainder)]
    return _innermost(inner[0]) if len(inner) == 1 else atom.numerator


def _flat(
    atom: Quotient | Remainder,
    places: Sequence[Index],
    given: Sequence[Index],
    sizes: Mapping[str, Dim],
    number: int,
) -> Flat | None:
    """The flat number that an atom parts: one that a mask bounds, or what is parted itself."""
    inner = _innermost(atom)
    last = _last(inner, sizes)
    if last is None:
        return None
    bounds = sorted({bound for other in _atoms(places) for bound in _bounds(other, last)}, key=magnitude)
    for part in given:  # total - 1 - number >= 0
        flat = Index(part.constant) - part
        if set(variables(inner)) <= set(variables(flat)) and not _atoms((flat,)):
            made = _made(flat, part.constant + 1, bounds, sizes, number, exact=False)
            if made is not None and made.variables[-1] == last:
                return made
    dense = _dense(inner, sizes)
    return None if dense is None else _made(inner, product(dense[1]), bounds, sizes, number, exact=True)


def _last(index: Index, sizes: Mapping[str, Dim]) -> str | None:
    """The variable that an index moves along by one."""
    names = [a.name for a, c in index.terms if isinstance(a, Variable) and c == 1 and sizes.get(a.name, 1) != 1]
    return names[0] if len(names) == 1 else None


def _bounds(atom: Quotient | Remainder, last: str) -> list[Dim]:
    """At which multiples of the number an atom, and what is inside of it, moves on."""
    scale: Dim = 1
    found: list[Dim] = []
    for part, _ in atom.numerator.terms:
        if isinstance(part, Quotient | Remainder):
            found += _bounds(part, last)
            scale = _scale(part)
    return [*found, scale * atom.divisor] if last in variables(atom.numerator) else found


def _scale(atom: Quotient | Remainder) -> Dim:
    inner: Dim = 1
    for part, _ in atom.numerator.terms:
        if isinstance(part, Quotient | Remainder):
            inner = _scale(part)
    return inner * atom.divisor if isinstance(atom, Quotient) else inner


def _dense(index: Index, sizes: Mapping[str, Dim]) -> tuple[tuple[str, ...], tuple[Dim, ...]] | None:
    """The variables of an index that counts without gaps from zero on, and their sizes."""
    place = digits_of(index, sizes)
    if place is None or place.start != 0 or not place.digits:
        return None
    step: Dim = 1
    for digit in reversed(place.digits):
        if digit.stride != step:
            return None
        step = step * digit.size
    return tuple(d.variable for d in place.digits), tuple(d.size for d in place.digits)


def _made(
    flat: Index, total: Dim, bounds: Sequence[Dim], sizes: Mapping[str, Dim], number: int, *, exact: bool
) -> Flat | None:
    dense = _dense(flat, sizes)
    if dense is None:
        return None
    steps: list[Dim] = [1]
    for bound in bounds:
        if bound == steps[-1] or magnitude(bound) >= magnitude(total):
            continue
        if divide(bound, steps[-1]) is None:
            return None
        steps.append(bound)
    most = divide(total, steps[-1])
    if most is None:
        if exact or not isinstance(steps[-1], int):
            return None
        most = ceil_quotient(total, steps[-1])
    counts: list[Dim] = [most]
    for high, low in zip(reversed(steps), reversed(steps[:-1]), strict=False):
        count = divide(high, low)
        assert count is not None
        counts.append(count)
    names = tuple(f"part{number}_{n}" for n in range(len(counts)))
    whole = Index(0)
    for name, step in zip(names, reversed(steps), strict=True):
        whole = whole + variable(name) * step
    own, counted = dense
    value = whole - (flat - variable(own[-1]))
    return Flat(own, counted, most * steps[-1], names, tuple(counts), value)
