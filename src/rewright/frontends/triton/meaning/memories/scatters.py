"""Stores to rows of which data says the number, such as the slots of a cache.

``cache[slot[token], head, :] = key[token, head, :]`` writes whole rows, one for each token. That no two instances write
to one row is an assumption, as it is one of ``cache[slots] = keys``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import DATA, lane, reads_data, variables
from rewright.frontends.triton.meaning.addresses.places import Digit, Place
from rewright.frontends.triton.meaning.memories.views import Views, lengths
from rewright.frontends.triton.meaning.values import Data, Shape, Truth
from rewright.frontends.triton.meaning.writer import Writer
from rewright.ir.dims import Dim, at_most
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.base import ReductionKind
from rewright.ops.functions.numerics import Array
from rewright.ops.reference import building as rb
from rewright.ops.reference.indexing import gather_points, scatter_points
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.terms.index import Index, Variable


@dataclass(frozen=True)
class Rows:
    """Where rows are written: the axes that data counts along, its numbers, and the digits along all other axes."""

    looked_up: tuple[int, ...]
    numbers: tuple[Data, ...]
    places: tuple[Place, ...]
    others: tuple[Place, ...] | None = None
    """The places along all axes that data does not count along, where these tell instances apart."""
    read: tuple[int, ...] = ()
    """The axes that data counts along."""
    lanes: tuple[int, ...] = ()
    """The axes of a block along which each lane writes a row of its own; numbers have these alone."""

    @property
    def axes(self) -> tuple[str, ...]:
        """Instances and iterations of which each writes a row of its own."""
        return tuple(dict.fromkeys(name for number in self.numbers for name in number.axes))

    @property
    def names(self) -> tuple[str, ...]:
        """What tells rows apart: instances, iterations and lanes."""
        return (*self.axes, *map(lane, self.lanes))


def has_lanes(writer: Writer, places: Sequence[Index]) -> bool:
    """Whether lanes have rows of their own, of which data says the number."""
    return any(reads_data(place) and _has_lanes(writer, place) for place in places)


def rows_of(writer: Writer, places: Sequence[Index], digits: Sequence[Place | None], block: Shape) -> Rows:
    """The rows that places are in.

    Raises UnsupportedOperator where lanes that have rows of their own count along other axes too.
    """
    read = tuple(axis for axis, place in enumerate(places) if reads_data(place))
    axes = {name for axis in read for name in axes_of(writer, places[axis])}
    along = [axis for axis in range(len(places)) if axis not in read and set(variables(places[axis])) & axes]
    own = [d.variable for axis in along for d in _digits(digits[axis])]
    left = [digits[axis] for axis in range(len(places)) if axis not in read]
    others = tuple(place for place in left if place is not None)
    are_apart = axes <= set(own) and _are_different(own) and len(others) == len(left)
    looked_up = tuple(sorted((*read, *along)))
    kept = [digits[axis] for axis in range(len(places)) if axis not in looked_up]
    of_lanes = any(_has_lanes(writer, places[axis]) for axis in looked_up)
    if any(place is None for place in kept):
        raise UnsupportedOperator("writes to places that are no digits of its variables")
    numbers = tuple(writer.number(places[axis], block if of_lanes else (), DType.I64) for axis in looked_up)
    whole = tuple(place for place in kept if place is not None)
    found = Rows(looked_up, numbers, whole, others if are_apart else None, read)
    if of_lanes and not are_apart:
        own_lanes = {name for axis in looked_up for name in axes_of(writer, places[axis]) if name.startswith("lane")}
        found = _by_lanes(writer, found, sorted(int(name.removeprefix("lane")) for name in own_lanes))
    names = [d.variable for place in found.places for d in place.digits]
    if set(names) & ({*found.names} | axes) or not _are_different(names):
        raise UnsupportedOperator("writes to rows that instances share, at places that move with the instance")
    return found


def _by_lanes(writer: Writer, rows: Rows, own: Sequence[int]) -> Rows:
    """Rows of which each lane along some axes of a block has one."""
    return replace(rows, numbers=tuple(along_lanes(writer, n, own) for n in rows.numbers), lanes=tuple(own))


def along_lanes(writer: Writer, data: Data, own: Sequence[int]) -> Data:
    """A block that is the same along all but some of its axes, as one of these alone."""
    b, outer, position = writer.b, len(data.axes), data.position
    for axis in reversed(range(len(data.shape))):
        if axis not in own:
            position = rb.slice_axis(b, position, outer + axis, 0, 1)
            kept = [size for n, size in enumerate(b.type(position).shape) if n != outer + axis]
            position = rb.reshape(b, position, kept)
    return Data(position, data.axes, tuple(data.shape[axis] for axis in own))


def _digits(place: Place | None) -> tuple[Digit, ...]:
    return () if place is None else place.digits


def _are_different(names: Sequence[str]) -> bool:
    return len(set(names)) == len(names)


def _has_lanes(writer: Writer, index: Index) -> bool:
    names = list(variables(index))
    read = [writer.read(name) for name in names if name.startswith(DATA)]
    return any(name.startswith("lane") for name in names) or any(data.shape for data in read)


def scattered(
    writer: Writer, views: Views, tensor: int, shape: Sequence[Dim], rows: Rows, value: Data, mask: Truth
) -> int:
    """The tensor with a block of all instances in some of its rows."""
    condition, mask = _of_rows(writer, rows, mask)
    kept = [axis for axis in range(len(shape)) if axis not in rows.looked_up]
    windows = _windows(rows.places, [shape[axis] for axis in kept], mask)
    if windows is None:
        return _in_rows(writer, views, tensor, rows, value, condition, mask)
    moved = [replace(place, start=place.start - low) for place, (low, _) in zip(rows.places, windows, strict=True)]
    inner, always = replace(rows, places=tuple(moved)), replace(mask, parts=())

    def write(part: int) -> int:
        return _in_rows(writer, views, part, inner, value, condition, always)

    return _inside(writer.b, tensor, list(zip(kept, windows, strict=True)), write)


def _windows(places: Sequence[Place], sizes: Sequence[Dim], mask: Truth) -> list[tuple[int, int]] | None:
    """From where to where the lanes that a mask lets through lie along axes; None where it says anything else."""
    found: list[tuple[int, int]] = []
    parts = [] if mask.data is not None else list(mask.parts)
    for place, size in zip(places, sizes, strict=True):
        own = place.digits[0] if len(place.digits) == 1 and place.digits[0].stride == 1 else None
        count = own.size if own is not None else 1 if not place.digits else None
        if not isinstance(size, int) or not isinstance(place.start, int) or not isinstance(count, int):
            return None
        low, high = 0, count
        for part in [part for part in parts if own is not None and set(variables(part)) == {own.variable}]:
            ((atom, step),), most = part.terms, part.constant
            if not isinstance(atom, Variable) or step not in (1, -1) or not isinstance(most, int):
                return None
            low, high = (max(low, -most), high) if step == 1 else (low, min(high, most + 1))
            parts.remove(part)
        low, high = max(place.start + low, 0), min(place.start + high, size)
        if low >= high:
            return None
        found.append((low, high))
    return None if parts or mask.data is not None else found


def _inside(
    b: SimplifyingBuilder, tensor: int, windows: Sequence[tuple[int, tuple[int, int]]], write: Callable[[int], int]
) -> int:
    """The tensor with what is written to a part of it."""
    if not windows:
        return write(tensor)
    (axis, (low, high)), *others = windows
    part = _inside(b, rb.slice_axis(b, tensor, axis, low, high), others, write)
    size = b.type(tensor).shape[axis]
    ends = [rb.slice_axis(b, tensor, axis, *end) for end in ((0, low), (high, size))]
    return rb.concatenate(b, [ends[0], part, ends[1]], axis)


def _in_rows(
    writer: Writer, views: Views, tensor: int, rows: Rows, value: Data, condition: Data | None, mask: Truth
) -> int:
    """The tensor with a block in some rows, of which data says the numbers, where a mask lets it through."""
    b, axes, shape = writer.b, rows.axes, writer.b.type(tensor).shape
    left = [size for axis, size in enumerate(shape) if axis not in rows.looked_up]
    places, counts = leading_of(writer, rows)
    places, sizes = [*places, *rows.places], [*counts, *left]
    updates = views.tensor(value, places, sizes)
    columns = [writer.spread(number, axes) for number in rows.numbers]
    if mask.parts or mask.data is not None or not all(map(_covers, rows.places, left)):
        before = gather_points(b, tensor, rows.looked_up, [_first(writer, rows, condition, c) for c in columns])
        written = views.tensor(writer.truth(mask), places, sizes)
        updates = b.add(ops.Select(), written, updates, before)
    if condition is not None:  # a row that lies behind the tensor is not written
        behind = rb.splat_like(b, -1, columns[0])
        columns[0] = b.add(ops.Select(), writer.spread(condition, axes), columns[0], behind)
    known = b.known(columns[0]) if len(columns) == 1 else None
    if known is not None and isinstance(size := shape[rows.looked_up[0]], int):
        return _replaced(b, tensor, rows.looked_up[0], known.reshape(-1), updates, known.ndim, size)
    return scatter_points(b, tensor, rows.looked_up, columns, updates, "replace")


def leading_of(writer: Writer, rows: Rows) -> tuple[list[Place], list[Dim]]:
    """The axes that tell rows apart, as places in a tensor of updates, and their sizes."""
    counts = [*writer.sizes(rows.axes), *(rows.numbers[0].shape if rows.lanes else ())]
    return [Place(0, (Digit(name, n, 1),)) for name, n in zip(rows.names, counts, strict=True)], counts


def _replaced(b: SimplifyingBuilder, tensor: int, axis: int, rows: Array, updates: int, leading: int, size: int) -> int:
    """A tensor with known rows replaced; those out of bounds are not written."""
    inside = [int(row) for row in rows if 0 <= row < size]
    if len(set(inside)) < len(inside):
        raise UnsupportedOperator("several instances or lanes write to one row, so their order decides")
    flat = rb.reshape(b, updates, [len(rows), *b.type(updates).shape[leading:]])
    flat = rb.transpose(b, flat, [*range(1, axis + 1), 0, *range(axis + 1, len(b.type(flat).shape))])
    source = {int(row): number for number, row in enumerate(rows) if 0 <= row < size}
    parts: list[int] = []
    row = 0
    while row < size:
        end = row + 1
        while end < size and (source.get(end) == (None if (at := source.get(row)) is None else at + end - row)):
            end += 1
        at = source.get(row)
        whole, start = (tensor, row) if at is None else (flat, at)
        parts.append(rb.slice_axis(b, whole, axis, start, start + end - row))
        row = end
    return rb.concatenate(b, parts, axis)


def marked(
    writer: Writer, views: Views, tensor: int, shape: Sequence[Dim], rows: Rows, value: Data, mask: Truth
) -> int:
    """The same where each row of the other axes has one place that is written: a choice at each element."""
    b, places = writer.b, rows.others or ()
    left = [axis for axis in range(len(shape)) if axis not in rows.read]
    sizes = [shape[axis] for axis in left]

    def spread(data: Data) -> int:
        return b.add(ops.BroadcastInDim(tuple(shape), tuple(left)), views.tensor(data, places, sizes))

    found = None if not mask.parts and mask.data is None and _are_whole(places, sizes) else spread(writer.truth(mask))
    for axis, number in zip(rows.looked_up, rows.numbers, strict=True):
        if axis in rows.read:
            own = rb.compare(b, "EQ", rb.iota(b, tuple(shape), axis, DType.I64), spread(number))
            found = own if found is None else b.add(ops.And(), found, own)
    assert found is not None
    return b.add(ops.Select(), found, spread(value), tensor)


def accumulated(
    writer: Writer, views: Views, tensor: int, shape: Sequence[Dim], rows: Rows, value: Data, kind: ReductionKind
) -> int:
    """The tensor with the elements of all instances folded into those rows; two instances may have one."""
    leading, counts = leading_of(writer, rows)
    left = [size for axis, size in enumerate(shape) if axis not in rows.looked_up]
    updates = views.tensor(value, [*leading, *rows.places], [*counts, *left], NEUTRAL[kind])
    columns = [writer.spread(number, rows.axes) for number in rows.numbers]
    return scatter_points(writer.b, tensor, rows.looked_up, columns, updates, kind)  # pyright: ignore[reportArgumentType]


def accumulated_at_points(
    writer: Writer, tensor: int, places: Sequence[Index], value: Data, kind: ReductionKind
) -> int:
    """The same where each lane has a place of its own."""
    numbers = [writer.number(place, value.shape, DType.I64) for place in places]
    columns = [writer.spread(number, value.axes, value.shape) for number in numbers]
    return scatter_points(writer.b, tensor, range(len(places)), columns, value.position, kind)  # pyright: ignore[reportArgumentType]


NEUTRAL: dict[ReductionKind, float] = {"sum": 0.0, "maximum": -math.inf, "minimum": math.inf}


def _first(writer: Writer, rows: Rows, condition: Data | None, column: int) -> int:
    """Where rows are read: the first row in place of those that are not written."""
    if condition is None:
        return column
    zero = rb.splat_like(writer.b, 0, column)
    return writer.b.add(ops.Select(), writer.spread(condition, rows.axes), column, zero)


def _of_rows(writer: Writer, rows: Rows, mask: Truth) -> tuple[Data | None, Truth]:
    """What of a mask is the same for a whole row, and the rest of it."""
    own = tuple(part for part in mask.parts if axes_of(writer, part) <= set(rows.names))
    data = None if mask.data is None else _narrowed(writer, mask.data, rows.lanes)
    is_own = data is not None and set(data.axes) <= set(rows.axes)
    rest = replace(mask, parts=tuple(p for p in mask.parts if p not in own), data=None if is_own else mask.data)
    if not own and not is_own:
        return None, rest
    joined = None if not own else along_lanes(writer, writer.truth(Truth(own, mask.shape)), rows.lanes)
    if not is_own or data is None:
        return joined, rest
    return data if joined is None else writer.apply(ops.And(), joined, data), rest


def _narrowed(writer: Writer, data: Data, own: Sequence[int]) -> Data | None:
    """A condition of a block as one of some of its lanes alone, where a broadcast gave it the others."""
    if len(own) == len(data.shape):
        return data
    return along_lanes(writer, data, own) if set(_moving(writer, data)) <= set(own) else None


def _moving(writer: Writer, data: Data) -> list[int]:
    """The axes of a block along which its elements may differ: not those that a broadcast gave it."""
    node, outer = writer.b.node(data.position), len(data.axes)
    sizes: dict[int, Dim] = dict(enumerate(writer.b.type(data.position).shape))
    if isinstance(node.op, ops.BroadcastInDim):
        inner = writer.b.type(node.operands[0]).shape
        sizes = dict(zip(node.op.dimensions, inner, strict=True))
    return [axis - outer for axis, size in sizes.items() if axis >= outer and size != 1]


def axes_of(writer: Writer, index: Index) -> set[str]:
    """The instances, iterations and lanes that an index depends on."""
    found: set[str] = set()
    for name in variables(index):
        if name.startswith(DATA):
            data = writer.read(name)
            found |= {*data.axes, *map(lane, _moving(writer, data))}
        else:
            found.add(name)
    return found


def _covers(place: Place, size: Dim) -> bool:
    """Whether each element of an axis is one of a place, which may go on before and behind."""
    if _are_whole([place], [size]):
        return True
    is_run = len(place.digits) == 1 and place.digits[0].stride == 1
    ends = place.start, place.length, size
    return (
        is_run
        and all(isinstance(n, int) for n in ends)
        and at_most(place.start, 0) is True
        and at_most(size, place.start + place.length) is True
    )


def _are_whole(places: Sequence[Place], sizes: Sequence[Dim]) -> bool:
    for place, size in zip(places, sizes, strict=True):
        dense = all(n == d.size for n, d in zip(lengths(place), place.digits, strict=False))
        if not dense or len(lengths(place)) != max(len(place.digits), 1) or place.start != 0 or place.length != size:
            return False
    return True


def names_of(rows: Rows) -> Mapping[str, None]:
    """All variables that tell elements apart."""
    places = (*rows.places, *(rows.others or ()))
    return dict.fromkeys([*rows.names, *(d.variable for place in places for d in place.digits)])
