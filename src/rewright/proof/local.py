"""The terms of one step by local numbers, each moved so that it begins where the step reads it first.

A term is a total function of its indices, so that ``t'(i) = t(i + s)`` is one too. Steps of ranks that do the same
to different windows of the same terms become one statement that way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from rewright.claims.language import (
    READERS,
    Access,
    Addend,
    Definition,
    Fold,
    Number,
    Opaque,
    Pieces,
    Position,
    Ranged,
    Region,
    Size,
    Table,
    Tensor,
    View,
    read_at,
)
from rewright.ir.dims import Dim

Start = tuple[Dim, ...]

_STILL = (Number, Position, Size, Table, Opaque)
"""Terms whose elements depend on where they are, or that are read as a whole."""


class Conflict(Exception):
    """One term would have to begin at two places."""


class Local:
    """Claims and definitions over local numbers.

    ``numbers`` gives every term its number, ``used`` the definitions that the step rests on, to be asked for after the
    claims and readers first, ``still`` the terms that must not be moved. With ``deep`` terms that have a definition
    are moved too; then Conflict may be raised.
    """

    def __init__(
        self, numbers: Mapping[int, int], used: Mapping[int, Definition], still: frozenset[int], *, deep: bool
    ) -> None:
        self._numbers = numbers
        self._used = used
        self._still = still | {
            term for term, definition in used.items() if not deep or isinstance(definition.content, _STILL)
        }
        for definition in used.values() if not deep else ():
            if not definition.accesses:
                self._still |= set(definition.operands)
        self._starts: dict[int, Start] = {}
        self._bases: dict[int, Start] = {}

    def tensor(self, tensor: Tensor) -> Tensor:
        """A claim over local numbers."""
        if isinstance(tensor, Pieces):
            return Pieces(tensor.axis, tensor.rows, tensor.lengths, tuple(self.tensor(part) for part in tensor.parts))
        return View(tensor.dims, tuple(self._addend(addend) for addend in tensor.addends))

    def _addend(self, addend: Addend) -> Addend:
        access = self._read(addend.term, addend.access)
        parts = tuple((self._numbers[hole], self._region(hole, region)) for hole, region in addend.parts)
        return Addend(addend.coefficient, self._numbers[addend.term], access, parts)

    def definition(self, term: int) -> Definition:
        """The definition of a term that was read before."""
        found = self._used[term]
        # Where it begins is settled now, also if nothing has read it yet.
        start = self._starts.setdefault(term, (0,) * found.rank)
        content = found.content
        if isinstance(content, Ranged):
            self._demand(found.operands[0], start)
            content = Ranged(self._region(found.operands[0], content.region))
        elif isinstance(content, Fold):
            axes = content.axes
            base = dict(zip(axes, self._bases.setdefault(term, (0,) * len(axes)), strict=True))
            rest = iter(start)
            full = tuple(base[axis] if axis in base else next(rest) for axis in range(found.rank + len(axes)))
            self._demand(found.operands[0], full)
        elif isinstance(content, READERS):
            moved = [_move(access, start) for access in found.accesses]
            content = read_at(content, tuple(self._read(o, a) for o, a in zip(found.operands, moved, strict=True)))
        return Definition(content, tuple(self._numbers[o] for o in found.operands), found.rank)

    def _read(self, term: int, access: Access) -> Access:
        if term in self._still:
            return access
        start = self._starts.setdefault(term, tuple(constant for constant, _ in access))
        if not any(start):
            return access
        return tuple((constant - first, terms) for (constant, terms), first in zip(access, start, strict=True))

    def _demand(self, term: int, start: Start) -> None:
        """A term is read at its own indices, and so begins where its reader does."""
        before = (0,) * len(start) if term in self._still else self._starts.setdefault(term, start)
        if before != start:
            raise Conflict

    def _region(self, hole: int, region: Region) -> Region:
        """The range of a fold from where it begins first; that of a guard is a set of values, and stays."""
        definition = self._used.get(hole)
        if definition is None or not isinstance(definition.content, Fold) or hole in self._still or not region:
            return region
        base = self._bases.setdefault(hole, tuple(low if low is not None else 0 for low, _ in region[0][0]))
        if not any(base):
            return region
        return tuple((_shift(box, base), count) for box, count in region)


def _move(access: Access, start: Sequence[Dim]) -> Access:
    """Where a term that begins at ``start`` reads its operand."""
    if not any(start):
        return access
    return tuple(
        (constant + sum((stride * start[v] for v, stride in terms if v >= 0), start=cast("Dim", 0)), terms)
        for constant, terms in access
    )


def _shift(box: tuple[tuple[Dim | None, Dim | None], ...], base: Start) -> tuple[tuple[Dim | None, Dim | None], ...]:
    return tuple(
        (None if low is None else low - first, None if high is None else high - first)
        for (low, high), first in zip(box, base, strict=True)
    )
