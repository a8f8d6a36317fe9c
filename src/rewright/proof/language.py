"""The language in which certificates say what every node of every program computes.

*Terms* are tensors that are total functions of integer indices, each defined over earlier terms. A node is claimed to
be a :class:`View`, a sum of windows into terms, or :class:`Pieces`, a concatenation of those along one axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Union

from rewright.ir.dims import Dim

Index = tuple[Dim, tuple[tuple[int, Dim], ...]]
"""A constant and the strides of variables; a negative variable is the value of an operand (see ``take``)."""
Access = tuple[Index, ...]
"""One index for each axis of the term that is read."""
Range = tuple[Union[Dim, None], Union[Dim, None]]
"""Half-open; None is no bound."""
Region = tuple[tuple[tuple[Range, ...], Fraction], ...]
"""Boxes of binder ranges, each with how often it counts."""

Kind = Literal["input", "number", "index", "size", "table", "apply", "add", "fold", "guard", "ranged", "take", "opaque"]
"""What a term is.

``input``: a free tensor of that name. ``number``: a constant. ``index``: the value at i is i. ``size``: a size.
``table``: fixed values. ``apply``: a scalar function of the operands. ``add``: a sum with coefficients. ``fold``: a
reduction of the operand over some of its axes, and ``guard``: the second operand where the first is in a set, both with
a range that is not given yet. ``ranged``: a fold or a guard with its range. ``take``: the first operand read at the
values of the others. ``opaque``: an operator applied to windows of the operands.
"""


@dataclass(frozen=True, slots=True)
class Definition:
    """A term: its kind, what that kind needs, and the earlier terms that it reads with where it reads them."""

    kind: Kind
    data: tuple[object, ...]
    operands: tuple[int, ...]
    accesses: tuple[Access, ...]
    rank: int

    def __hash__(self) -> int:
        # Not over the data, which may be long, as those of a table.
        return hash((self.kind, self.operands, self.accesses))


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


def renamed(tensor: Tensor, names: Mapping[int, int]) -> Tensor:
    """The tensor with other terms in the place of its own."""
    if isinstance(tensor, Pieces):
        return Pieces(tensor.axis, tensor.rows, tensor.lengths, tuple(renamed(part, names) for part in tensor.parts))
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
