"""The JSON form of a certificate, read strictly: what is not of its form is refused, with its place."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, cast

from rewright import ops
from rewright.claims.language import (
    KINDS,
    Access,
    Accesses,
    Add,
    Addend,
    Apply,
    Content,
    Definition,
    Fold,
    Guard,
    Input,
    Number,
    Opaque,
    Pieces,
    Position,
    Ranged,
    Region,
    Size,
    Table,
    Take,
    Tensor,
    View,
)
from rewright.ir.building import build_operator, parse_size
from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.json_form import decode
from rewright.ir.placement import Placement
from rewright.proof.certificate import (
    Block,
    Certificate,
    Equation,
    Meeting,
    NodeEquation,
    Output,
    RangeFact,
    Repetition,
)
from rewright.proof.entries import Entries, Entry, as_integer, as_list, as_text
from rewright.proof.rewriting.files import rewritings_of
from rewright.proof.rewriting.splices import Rewriting

_DEEPEST = 64
"""Pieces in pieces; what programs make is a few deep."""


def read_certificate(entries: Entries) -> Certificate:
    """The certificate of entries. Raises RewrightError with the place of the first thing that is wrong."""
    return _Reader(entries).certificate()


class _Reader:
    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._placements = entries.each("placements", _placement)
        self._accesses = entries.each("accesses", _access)
        self._regions = entries.each("regions", _region)
        self._shapes = entries.each("shapes", _shape)
        self._labels = entries.each("labels", self._label)

    def certificate(self) -> Certificate:
        """All of it."""
        entries = self._entries
        relations = entries.each("relations", self._relation)
        outputs = entries.each("outputs", self._output)
        if len(dict(relations)) != len(relations) or len(dict(outputs)) != len(outputs):
            raise RewrightError("relations or outputs name the same tensor twice; write the certificate again")
        return Certificate(
            entries.one("sequential", as_text),
            entries.each("ranks", as_text),
            entries.each("mesh", _axis),
            dict(relations),
            dict(outputs),
            entries.each("assumptions", as_text),
            entries.each("facts", self._fact),
            entries.each("terms", self._term),
            entries.each("values", self._tensor),
            entries.each("given", _read_given),
            entries.each("equations", _equation),
            entries.each("blocks", _block),
            rewritings=entries.one("rewriting", _rewritings),
            calls=entries.each("calls", as_text),
            captured=entries.one("captured", as_text, ""),
        )

    def _relation(self, entry: Any) -> tuple[str, Placement]:
        name, placement = as_list(entry, 2)
        return as_text(name), _at(self._placements, placement)

    def _output(self, entry: Any) -> tuple[str, Output]:
        name, placement, unfold = as_list(entry, 3)
        return as_text(name), Output(_at(self._placements, placement), _numbers(unfold))

    def _label(self, entry: Any) -> tuple[Content, int]:
        kind, rank, accesses, data = as_list(entry, 4)
        if kind not in KINDS:
            raise ValueError(f"there are no terms of kind {kind!r:.40}")
        found = tuple(_at(self._accesses, access) for access in as_list(accesses))
        return self._content(kind, as_list(data), found), as_integer(rank)

    def _content(self, kind: str, data: list[Any], accesses: Accesses) -> Content:
        if kind == "apply":
            return Apply(as_text(*as_list(data, 1)), accesses)
        if kind == "add":
            return Add(tuple(_fraction(coefficient) for coefficient in as_list(*as_list(data, 1))), accesses)
        if kind in ("guard", "take"):
            as_list(data, 0)
            return Guard(accesses) if kind == "guard" else Take(accesses)
        if kind == "opaque":
            return _opaque(data, accesses)
        if accesses:
            raise ValueError(f"a term of kind {kind} reads nothing")
        if kind == "index":
            as_list(data, 0)
            return Position()
        if kind == "input":
            return Input(as_text(*as_list(data, 1)))
        if kind == "number":
            (value,) = as_list(data, 1)
            return Number(1 if type(value) is int and value == 1 else as_text(value))
        if kind == "size":
            return Size(_dim(*as_list(data, 1)))
        if kind == "ranged":
            return Ranged(_at(self._regions, *as_list(data, 1)))
        first, second = as_list(data, 2)
        if kind == "fold":
            return Fold(as_text(first), _numbers(second))
        return Table(_numbers(first), tuple(_scalar(decode(value)) for value in as_list(second)))

    def _term(self, entry: Any) -> Definition:
        label, *operands = as_list(entry)
        content, rank = _at(self._labels, label)
        return Definition(content, _numbers(operands), rank)

    def _tensor(self, entry: Any, depth: int = 0) -> Tensor:
        first, *rest = as_list(entry)
        if first != "pieces":
            return View(_at(self._shapes, first), tuple(self._addend(addend) for addend in rest))
        if depth > _DEEPEST:
            raise ValueError("pieces in pieces, too deep")
        axis, rows, lengths, parts = as_list(rest, 4)
        found = tuple(self._tensor(part, depth + 1) for part in as_list(parts))
        return Pieces(as_integer(axis), _dim(rows), tuple(_dim(n) for n in as_list(lengths)), found)

    def _addend(self, entry: Any) -> Addend:
        coefficient, term, access, *parts = as_list(entry)
        if len(parts) % 2:
            raise ValueError("a term without its range")
        pairs = zip(_numbers(parts[::2]), parts[1::2], strict=True)
        ranges = tuple((hole, _at(self._regions, region)) for hole, region in pairs)
        return Addend(_fraction(coefficient), as_integer(term), _at(self._accesses, access), ranges)

    def _fact(self, entry: Any) -> RangeFact:
        term, allowed, position, window, place = as_list(entry, 5)
        ends = tuple((_dim(start), _dim(length)) for start, length in (as_list(pair, 2) for pair in as_list(window)))
        return RangeFact(
            as_integer(term), _at(self._regions, allowed), as_integer(position), ends, _at(self._accesses, place)
        )


def _rewritings(entry: Any) -> tuple[Rewriting, ...]:
    if entry is None:
        return ()
    if not (found := rewritings_of(entry)):
        raise ValueError("it is about no program")
    return found


def _equation(entry: Any) -> Equation:
    kind, *rest = as_list(entry)
    if kind == "step":
        program, position, value, *unfold = rest
        return NodeEquation(as_integer(program), as_integer(position), as_integer(value), _numbers(unfold))
    if kind == "meeting":
        members, whole, *unfold = rest
        number = None if whole is None else as_integer(whole)
        return Meeting(tuple(_three(member) for member in as_list(members)), _numbers(unfold), number)
    if kind != "again":
        raise ValueError(f"there are no equations of kind {kind!r:.40}")
    first, last, shifts, images = as_list(rest, 4)
    flat = _numbers(images)
    pairs = tuple(zip(flat[::2], flat[1::2], strict=True))
    return Repetition(as_integer(first), as_integer(last), _numbers(shifts), pairs)


def _opaque(data: list[Any], accesses: Accesses) -> Opaque:
    operator, kinds, layout, own, windows = as_list(data, 5)
    name, values = as_list(operator, 2)
    if not isinstance(values, dict):
        raise ValueError("an operator has its attributes by name")
    given = {key: decode(value) for key, value in cast("dict[str, object]", values).items()}
    op = build_operator(ops.REGISTRY, as_text(name), given)
    axes = tuple(tuple(_axis_read(axis) for axis in as_list(operand)) for operand in as_list(layout))
    places = tuple(None if window is None else _window(window) for window in as_list(windows))
    return Opaque(op, tuple(as_text(kind) for kind in as_list(kinds)), axes, as_integer(own), places, accesses)


def _axis_read(value: Any) -> int | tuple[Dim, ...]:
    return tuple(_dim(n) for n in cast("list[Any]", value)) if isinstance(value, list) else as_integer(value)


def _window(value: Any) -> tuple[int, Dim, Dim]:
    variable, start, length = as_list(value, 3)
    return as_integer(variable), _dim(start), _dim(length)


def _placement(entry: Any) -> Placement:
    runs, printed, partial, reduction = as_list(entry, 4)
    found = tuple(tuple(tuple(_run(run) for run in as_list(axis)) for axis in as_list(rank)) for rank in as_list(runs))
    names = tuple(as_text(text) for text in as_list(printed)), tuple(as_text(text) for text in as_list(partial))
    return Placement(found, *names, as_text(reduction))


def _run(value: Any) -> tuple[Dim, Dim]:
    start, length = as_list(value, 2)
    return _dim(start), _dim(length)


def _access(entry: Any) -> Access:
    found: list[tuple[Dim, tuple[tuple[int, Dim], ...]]] = []
    for index in as_list(entry):
        constant, *strides = as_list(index)
        pairs = tuple((as_integer(v), _dim(stride)) for v, stride in (as_list(pair, 2) for pair in strides))
        found.append((_dim(constant), pairs))
    return tuple(found)


def _region(entry: Any) -> Region:
    boxes = [as_list(box, 2) for box in as_list(entry)]
    return tuple((tuple(_range(ends) for ends in as_list(box)), _fraction(count)) for box, count in boxes)


def _range(value: Any) -> tuple[Dim | None, Dim | None]:
    low, high = as_list(value, 2)
    return None if low is None else _dim(low), None if high is None else _dim(high)


def _shape(entry: Any) -> tuple[tuple[Dim, ...], ...]:
    return tuple(tuple(_dim(n) for n in as_list(digits)) for digits in as_list(entry))


def _axis(entry: Any) -> tuple[str, int]:
    name, size = as_list(entry, 2)
    return as_text(name), as_integer(size)


def _read_given(entry: Any) -> tuple[int, str, int]:
    program, name, value = as_list(entry, 3)
    return as_integer(program), as_text(name), as_integer(value)


def _three(entry: Any) -> tuple[int, int, int]:
    rank, position, value = as_list(entry, 3)
    return as_integer(rank), as_integer(position), as_integer(value)


def _at(table: tuple[Entry, ...], number: Any) -> Entry:
    place = as_integer(number)
    if not 0 <= place < len(table):
        raise ValueError(f"it names entry {place} of a table of {len(table)}")
    return table[place]


def _numbers(value: Any) -> tuple[int, ...]:
    return tuple(as_integer(number) for number in as_list(value))


def _dim(value: Any) -> Dim:
    return parse_size(value) if isinstance(value, str) else as_integer(value)


def _fraction(value: Any) -> Fraction:
    return Fraction(value) if isinstance(value, str) else Fraction(as_integer(value))


def _scalar(value: object) -> bool | int | float:
    if not isinstance(value, (bool, int, float)):
        raise ValueError("an entry of a table is no number")
    return value


def _block(entry: Any) -> Block:
    name, window, order, rank, held, box = as_list(entry, 6)
    return Block(as_text(name), _ranges(window), _numbers(order), as_integer(rank), as_text(held), _ranges(box))


def _ranges(entry: Any) -> tuple[tuple[int, int], ...]:
    pairs = (as_list(pair, 2) for pair in as_list(entry))
    return tuple((as_integer(start), as_integer(length)) for start, length in pairs)
