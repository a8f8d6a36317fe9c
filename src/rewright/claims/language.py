"""The language in which certificates say what every node of every program computes.

*Terms* are tensors that are total functions of integer indices, each defined over earlier terms. A node is claimed to
be a :class:`View`, a sum of windows into terms, or :class:`Pieces`, a concatenation of those along one axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TypeGuard, Union

from rewright.ir.dims import Dim, Shape, product

Index = tuple[Dim, tuple[tuple[int, Dim], ...]]
"""A constant and the strides of variables; a negative variable is the value of an operand (see ``take``)."""
Access = tuple[Index, ...]
"""One index for each axis of the term that is read."""
Range = tuple[Union[Dim, None], Union[Dim, None]]
"""Half-open; None is no bound."""
Region = tuple[tuple[tuple[Range, ...], Fraction], ...]
"""Boxes of binder ranges, each with how often it counts."""

Accesses = tuple[Access, ...]
"""Where each operand is read."""
Layout = tuple[tuple[Union[int, tuple[Dim, ...]], ...], ...]
"""For every axis of every operand of an operator the axis of the result that it is, or the digits that it has."""
Windows = tuple[Union[tuple[int, Dim, Dim], None], ...]
"""Of every such digit the variable, its first value and its length; None for one that does not occur."""


@dataclass(frozen=True, slots=True)
class Input:
    """A free tensor of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """One, or a number that is no rational multiple of one, as text: an infinity."""

    value: int | str


@dataclass(frozen=True, slots=True)
class Position:
    """The value at i is i."""


@dataclass(frozen=True, slots=True)
class Size:
    """A size."""

    value: Dim


@dataclass(frozen=True, slots=True)
class Table:
    """Fixed values, in row-major order."""

    shape: tuple[int, ...]
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar function of the operands."""

    function: str
    accesses: Accesses


@dataclass(frozen=True, slots=True)
class Add:
    """A sum with coefficients."""

    coefficients: tuple[Fraction, ...]
    accesses: Accesses


@dataclass(frozen=True, slots=True)
class Fold:
    """A reduction of the operand over some of its axes, with a range that is not given yet."""

    kind: str
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """The second operand where the first is in a set that is not given yet, else zero."""

    accesses: Accesses


@dataclass(frozen=True, slots=True)
class Ranged:
    """A fold or a guard with its range."""

    region: Region


@dataclass(frozen=True, slots=True)
class Take:
    """The first operand read at the values of the others."""

    accesses: Accesses


@dataclass(frozen=True, slots=True)
class Opaque:
    """An operator without laws applied to windows of the operands.

    ``kinds`` are the element types of the operands, or nothing where these do not matter; the last ``own`` axes of the
    result are those that the operator makes.
    """

    op: object
    kinds: tuple[str, ...]
    layout: Layout
    own: int
    windows: Windows
    accesses: Accesses


Content = Union[Input, Number, Position, Size, Table, Apply, Add, Fold, Guard, Ranged, Take, Opaque]
"""What a term is, but for the terms that it is made of."""

Reader = Union[Apply, Add, Guard, Take, Opaque]
READERS = (Apply, Add, Guard, Take, Opaque)
"""Terms that say where they read their operands; the others have none, or read them at their own indices."""

KINDS: Mapping[str, type[Content]] = MappingProxyType(
    {
        "input": Input,
        "number": Number,
        "index": Position,
        "size": Size,
        "table": Table,
        "apply": Apply,
        "add": Add,
        "fold": Fold,
        "guard": Guard,
        "ranged": Ranged,
        "take": Take,
        "opaque": Opaque,
    }
)
"""The kinds of terms by their names in certificates."""
_NAMES = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True)
class Definition:
    """A term: what it is, and the earlier terms that it reads."""

    content: Content
    operands: tuple[int, ...]
    rank: int

    @property
    def kind(self) -> str:
        """The name of what it is."""
        return _NAMES[type(self.content)]

    @property
    def accesses(self) -> Accesses:
        """Where it reads each operand; nothing for a term that reads them at its own indices."""
        return self.content.accesses if isinstance(self.content, READERS) else ()

    def __hash__(self) -> int:
        # Not over the values of a table, which are many.
        return hash((type(self.content), self.operands, self.accesses))


def read_at(content: Reader, accesses: Accesses) -> Reader:
    """The same of operands that are read elsewhere."""
    return replace(content, accesses=accesses)


def applies(content: object, function: str) -> TypeGuard[Apply]:
    """Whether a term is a scalar function of that name."""
    return isinstance(content, Apply) and content.function == function


def folds(content: object, kind: str) -> TypeGuard[Fold]:
    """Whether a term is a reduction of that kind, with no range yet."""
    return isinstance(content, Fold) and content.kind == kind


@dataclass(frozen=True, slots=True)
class Addend:
    """``coefficient * term[access]``; ``parts`` gives the folds and guards inside that have no range yet theirs."""

    coefficient: Fraction
    term: int
    access: Access
    parts: tuple[tuple[int, Region], ...] = ()

    def __hash__(self) -> int:
        # Not over fractions, of which a hash takes as long as all the rest.
        return hash((self.term, self.access))


@dataclass(frozen=True, slots=True)
class View:
    """A sum of windows; ``dims`` splits every axis into digits, whose variables are numbered across the axes."""

    dims: tuple[tuple[Dim, ...], ...]
    addends: tuple[Addend, ...]
    _shape: Shape | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def shape(self) -> Shape:
        """The shape of the tensor."""
        if self._shape is None:
            object.__setattr__(self, "_shape", tuple([product(digits) for digits in self.dims]))
        assert self._shape is not None
        return self._shape


@dataclass(frozen=True, slots=True)
class Pieces:
    """A concatenation along the rows of an axis; ``lengths`` are those of the parts along a row."""

    axis: int
    rows: Dim
    lengths: tuple[Dim, ...]
    parts: tuple[Tensor, ...]


Tensor = Union[View, Pieces]


def terms_of(tensor: Tensor) -> Iterator[int]:
    """The terms that a tensor names, in order."""
    if isinstance(tensor, Pieces):
        for part in tensor.parts:
            yield from terms_of(part)
        return
    for addend in tensor.addends:
        yield addend.term
        for hole, _ in addend.parts:
            yield hole


def rename(tensor: Tensor, names: Mapping[int, int]) -> Tensor:
    """The tensor with other terms in the place of its own."""
    if isinstance(tensor, Pieces):
        return Pieces(tensor.axis, tensor.rows, tensor.lengths, tuple(rename(part, names) for part in tensor.parts))
    return View(
        tensor.dims,
        tuple(
            Addend(a.coefficient, names[a.term], a.access, tuple((names[hole], region) for hole, region in a.parts))
            for a in tensor.addends
        ),
    )


def views(tensor: Tensor) -> Iterator[View]:
    """The views that a tensor is made of."""
    if isinstance(tensor, View):
        yield tensor
    else:
        for part in tensor.parts:
            yield from views(part)
