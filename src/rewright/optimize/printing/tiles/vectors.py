"""What there is once for a row as a vector of one axis, which becomes a column where it meets a tile.

Statements are made as if everything were a tile of two axes. A tile of one column takes as many registers of a GPU as
the tile it is laid out with, and the work on each of them: a vector takes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from rewright.optimize.printing.statements import (
    Assign,
    Call,
    Function,
    If,
    Let,
    Load,
    Loop,
    Name,
    Scalar,
    Statement,
    Store,
    Sum,
    call,
    whole,
)
from rewright.optimize.printing.tiles.context import BLOCK_ROWS, ROWS


class Kind(IntEnum):
    """What a value is: one number, a vector of rows, or a tile; of several that meet, the widest."""

    NUMBER = 0
    ROWS = 1
    TILE = 2


_ALONG_ROWS = {"row_sum", "row_max", "row_min"}
"""A tile to a vector of rows."""
_TILES = {"arange", "as_columns", "column_sum", "transposed", "dot", "add_dot", "descriptor", "descriptor_load"}
_NUMBERS = {"largest", "smallest"}
_MADE = {"full": "full_rows", "zeros": "zero_rows"}
"""Functions that make a tile of a number of rows and columns, and those that make a vector of rows."""


def with_vectors(function: Function) -> Function:
    """The function with vectors of rows instead of tiles of one column."""
    return replace(function, body=_Vectors().statements(function.body))


@dataclass(frozen=True)
class _Vectors:
    kinds: dict[str, Kind] = field(default_factory=dict[str, Kind])
    """Of the variables so far; what is not among them is a number."""

    def statements(self, found: Iterable[Statement]) -> tuple[Statement, ...]:
        return tuple(self.statement(s) for s in found)

    def statement(self, s: Statement) -> Statement:
        match s:
            case Let():
                value, kind = self.value(s.value)
                self.kinds[s.name] = kind
                return replace(s, value=value)
            case Assign(target=Name(text)):
                value, kind = self.value(s.value)
                return replace(s, value=_as(value, kind, self.kinds.setdefault(text, kind)))
            case Store():
                (place, value, guard), _ = self.together([s.place, s.value, s.guard])
                assert place is not None and value is not None
                return replace(s, place=place, value=value, guard=guard)
            case Loop():
                return replace(s, body=self.statements(s.body))
            case If():
                return replace(s, then=self.statements(s.then), otherwise=self.statements(s.otherwise))
            case _:
                return s

    def value(self, e: Scalar) -> tuple[Scalar, Kind]:
        """A value with vectors in it, and what it is."""
        match e:
            case Name(text):
                return e, self.kinds.get(text, Kind.NUMBER)
            case Sum():
                terms, kind = self.together([term for term, _ in e.terms])
                pairs = zip(terms, e.terms, strict=True)
                return replace(e, terms=tuple((t, n) for t, (_, n) in pairs if t is not None)), kind
            case Load():
                (place, guard), kind = self.together([e.place, e.guard])
                assert place is not None
                return replace(e, place=place, guard=guard), kind
            case Call():
                return self.call(e)
            case _:
                return e, Kind.NUMBER

    def call(self, e: Call) -> tuple[Scalar, Kind]:
        if e.function == "as_rows" and e.arguments == (ROWS,):
            return ROWS, Kind.ROWS
        if e.function in _MADE and e.arguments[:2] == (BLOCK_ROWS, whole(1)):
            return call(_MADE[e.function], BLOCK_ROWS, *e.arguments[2:], dtype=e.dtype), Kind.ROWS
        if e.function == "cast_like":
            value, kind = self.value(e.arguments[0])
            return replace(e, arguments=(value, *e.arguments[1:])), kind
        found, kind = self.together(e.arguments)
        arguments = tuple(a for a in found if a is not None)
        if e.function in _ALONG_ROWS or e.function in _TILES:
            arguments = tuple(_as(a, kind, Kind.TILE) if kind is Kind.ROWS else a for a in arguments)
            return replace(e, arguments=arguments), Kind.ROWS if e.function in _ALONG_ROWS else Kind.TILE
        is_tile = e.function in _MADE or e.function in ("accurate_zeros", "as_rows")
        kind = Kind.NUMBER if e.function in _NUMBERS else Kind.TILE if is_tile else kind
        return replace(e, arguments=arguments), kind

    def together(self, values: Sequence[Scalar | None]) -> tuple[list[Scalar | None], Kind]:
        """Values that meet, as what the widest of them is."""
        found = [None if e is None else self.value(e) for e in values]
        kind = max((one[1] for one in found if one is not None), default=Kind.NUMBER)
        return [None if one is None else _as(*one, kind) for one in found], kind


def _as(value: Scalar, kind: Kind, wanted: Kind) -> Scalar:
    """A vector of rows as a column, where a tile is wanted."""
    return call("as_rows", value) if kind is Kind.ROWS and wanted is Kind.TILE else value
