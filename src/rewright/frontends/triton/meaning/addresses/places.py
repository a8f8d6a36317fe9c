"""From an offset in memory to places along the axes of a tensor, and from these to digits.

``row * stride + col`` of a tensor with strides ``(stride, 1)`` is place ``row`` of axis 0 and ``col`` of axis 1. A
place such as ``tile * 64 + lane`` has two digits, so the axis is read as one of tiles and one of lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright.frontends.triton.meaning.addresses.indices import DATA, variables
from rewright.ir.dims import Dim, SizeExpr, divide, symbol
from rewright.terms.index import ZERO, Atom, Index, Variable


@dataclass(frozen=True, slots=True)
class Digit:
    """A variable that counts up to ``size``, times ``stride``."""

    variable: str
    size: Dim
    stride: Dim


@dataclass(frozen=True, slots=True)
class Place:
    """Where an axis is read: from ``start`` on, by digits of which each stride is a multiple of the next."""

    start: Dim
    digits: tuple[Digit, ...]

    @property
    def length(self) -> Dim:
        """How many elements lie between the first place and behind the last one, up to the next of the first digit."""
        return self.digits[0].stride * self.digits[0].size if self.digits else 1


def by_axis(offset: Index, sizes: Sequence[Dim], strides: Sequence[Dim], *, splits: bool = True) -> list[Index] | None:
    """Places along axes that make an offset; None where its terms are no multiples of strides.

    With ``splits`` a variable moves along several axes where its step is no multiple of the stride of one.

    It has to be shown that each place lies in its axis: the same offset may be made otherwise.
    """
    places = [ZERO] * len(sizes)
    rest = offset
    by_stride = sorted((a for a in range(len(sizes)) if sizes[a] != 1), key=lambda a: -magnitude(strides[a]))
    for axis in by_stride or range(len(sizes))[-1:]:  # of one element the last axis, whatever its stride is
        stride = strides[axis] if by_stride else 1
        if stride == 0:
            continue
        for atom, coefficient in rest.terms:
            whole, rest_of = _split(coefficient, stride)
            if rest_of != 0 and (not splits or _reads(atom)):
                continue
            places[axis] = places[axis] + Index(0, ((atom, whole),)) if whole != 0 else places[axis]
        rest = rest - places[axis] * stride
        whole, rest_of = _split(rest.constant, stride)
        if not _belongs_to_data(rest, rest_of):
            places[axis] = places[axis] + whole
            rest = rest - Index(whole * stride)
    return places if rest == ZERO else None


def _reads(atom: Atom) -> bool:
    return any(name.startswith(DATA) for name in variables(Index(0, ((atom, 1),))))


def _belongs_to_data(rest: Index, remainder: Dim) -> bool:
    """Whether a constant is added to what was read for an axis further inside: ``row * 40 + label - 1``."""
    steps = [coefficient for atom, coefficient in rest.terms if _reads(atom)]
    return bool(steps) and (remainder != 0 or any(isinstance(step, int) and step < 0 for step in steps))


Below = Callable[[str, int], bool]
"""Whether a variable is known to stay below a number."""


def digits_of(place: Index, sizes: Mapping[str, Dim], below: Below | None = None) -> Place | None:
    """The digits of a place, the largest first; None where their values overlap, or are not of variables alone.

    Lanes that are masked count as far as ``below`` says: of 16 lanes beside rows of 10, ten.
    """
    found: list[Digit] = []
    for atom, coefficient in place.terms:
        if not isinstance(atom, Variable) or atom.name.startswith(DATA):
            return None
        if sizes[atom.name] != 1:
            found.append(Digit(atom.name, sizes[atom.name], coefficient))
    found.sort(key=lambda digit: -magnitude(digit.stride))
    for number, digit in enumerate(found[:-1]):
        following = found[number + 1]
        steps = divide(digit.stride, following.stride)
        if steps is None:
            return None
        if isinstance(steps, int) and isinstance(following.size, int) and steps < following.size:
            if below is None or not below(following.variable, steps):
                return None
            found[number + 1] = replace(following, size=steps)
            continue
        are_numbers = isinstance(steps, int) and isinstance(following.size, int)
        if magnitude(steps) < magnitude(following.size) or not (steps == following.size or are_numbers):
            return None
    if found and not isinstance(found[-1].stride, int):
        return None
    if any(isinstance(d.stride, int) and d.stride < 1 for d in found):
        return None
    return Place(place.constant, tuple(found))


def _split(size: Dim, by: Dim) -> tuple[Dim, Dim]:
    """``size = by * whole + rest``, as much of it as divides; for numbers the rest is not negative."""
    if isinstance(size, int) and isinstance(by, int):
        return divmod(size, by)
    if isinstance(by, int):
        return _split_terms(size, by)
    whole = divide(size, by)
    return _split_terms(size, by) if whole is None else (whole, 0)


def _split_terms(size: Dim, by: Dim) -> tuple[Dim, Dim]:
    whole: Dim = 0
    for names, coefficient in size.terms if isinstance(size, SizeExpr) else (((), size),):
        part: Dim = coefficient
        for name in names:
            part = part * symbol(name)
        steps = divide(part, by)
        whole = whole + (0 if steps is None else steps)
    return whole, size - whole * by


def magnitude(size: Dim) -> int:
    """A number by which sizes are put in order: their value at large sizes, which proofs do not rest on."""
    if isinstance(size, int):
        return size
    return sum(c * 10007 ** len(names) for names, c in size.terms)
