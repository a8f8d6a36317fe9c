"""Stores to rows of which data says the number, such as the slots of a cache.

``cache[slot[token], head, :] = key[token, head, :]`` writes whole rows, one for each token. That no two instances write
to one row is an assumption, as it is one of ``cache[slots] = keys``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.frontends.triton.meaning.indices import DATA, lane, reads_data, variables
from rewright.frontends.triton.meaning.places import Digit, Place
from rewright.frontends.triton.meaning.values import Data, Shape, Truth
from rewright.frontends.triton.meaning.views import Views, lengths
from rewright.frontends.triton.meaning.writer import Writer
from rewright.ir.dims import Dim
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb
from rewright.ops.reference.indexing import gather_points, scatter_points
from rewright.terms.index import Index


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

    @property
    def axes(self) -> tuple[str, ...]:
        """Instances and iterations of which each writes a row of its own."""
        return tuple(dict.fromkeys(name for number in self.numbers for name in number.axes))


def has_lanes(writer: Writer, places: Sequence[Index]) -> bool:
    """Whether lanes have rows of their own, of which data says the number."""
    return any(reads_data(place) and _has_lanes(writer, place) for place in places)


def rows_of(writer: Writer, places: Sequence[Index], digits: Sequence[Place | None], block: Shape) -> Rows:
    """The rows that places are in.

    Raises UnsupportedOperator where lanes have rows of their own, and no other axis tells these apart.
    """
    read = tuple(axis for axis, place in enumerate(places) if reads_data(place))
    axes = {name for axis in read for name in _axes(writer, places[axis])}
    along = [axis for axis in range(len(places)) if axis not in read and set(variables(places[axis])) & axes]
    own = [d.variable for axis in along for d in _digits(digits[axis])]
    left = [digits[axis] for axis in range(len(places)) if axis not in read]
    others = tuple(place for place in left if place is not None)
    are_apart = axes <= set(own) and _are_different(own) and len(others) == len(left)
    looked_up = tuple(sorted((*read, *along)))
    kept = [digits[axis] for axis in range(len(places)) if axis not in looked_up]
    of_lanes = any(_has_lanes(writer, places[axis]) for axis in looked_up)
    if (of_lanes and not are_apart) or any(place is None for place in kept):
        raise UnsupportedOperator("writes to places that are no digits of its variables")
    numbers = tuple(writer.number(places[axis], block if of_lanes else (), DType.I64) for axis in looked_up)
    whole = tuple(place for place in kept if place is not None)
    found = Rows(looked_up, numbers, whole, others if are_apart else None, read)
    names = [d.variable for place in found.places for d in place.digits]
    if set(names) & (set(found.axes) | axes) or not _are_different(names):
        raise UnsupportedOperator("writes to rows that instances share, at places that move with the instance")
    return found


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
    b, axes = writer.b, rows.axes
    condition, mask = _of_rows(writer, rows, mask)
    leading = [Place(0, (Digit(name, writer.axes[name], 1),)) for name in axes]
    left = [size for axis, size in enumerate(shape) if axis not in rows.looked_up]
    sizes = [*writer.sizes(axes), *left]
    places = [*leading, *rows.places]
    updates = views.tensor(value, places, sizes)
    columns = [writer.spread(number, axes) for number in rows.numbers]
    if mask.parts or mask.data is not None or not _are_whole(rows.places, left):
        before = gather_points(b, tensor, rows.looked_up, [_first(writer, rows, condition, c, axes) for c in columns])
        written = views.tensor(writer.truth(mask), places, sizes)
        updates = b.add(ops.Select(), written, updates, before)
    if condition is not None:  # a row that lies behind the tensor is not written
        behind = rb.splat_like(b, -1, columns[0])
        columns[0] = b.add(ops.Select(), writer.spread(condition, axes), columns[0], behind)
    return scatter_points(b, tensor, rows.looked_up, columns, updates, "replace")


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
    leading = [Place(0, (Digit(name, writer.axes[name], 1),)) for name in rows.axes]
    left = [size for axis, size in enumerate(shape) if axis not in rows.looked_up]
    sizes = [*writer.sizes(rows.axes), *left]
    updates = views.tensor(value, [*leading, *rows.places], sizes, NEUTRAL[kind])
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


def _first(writer: Writer, rows: Rows, condition: Data | None, column: int, axes: tuple[str, ...]) -> int:
    """Where rows are read: the first row in place of those that are not written."""
    if condition is None:
        return column
    zero = rb.splat_like(writer.b, 0, column)
    return writer.b.add(ops.Select(), writer.spread(condition, axes), column, zero)


def _of_rows(writer: Writer, rows: Rows, mask: Truth) -> tuple[Data | None, Truth]:
    """What of a mask is the same for a whole row, and the rest of it."""
    own = tuple(part for part in mask.parts if not _has_lanes(writer, part) and _axes(writer, part) <= set(rows.axes))
    data = None if mask.data is None else _narrowed(writer, mask.data)
    is_own = data is not None and not data.shape and set(data.axes) <= set(rows.axes)
    rest = replace(mask, parts=tuple(p for p in mask.parts if p not in own), data=None if is_own else mask.data)
    if not own and not is_own:
        return None, rest
    return writer.truth(Truth(own, (), data if is_own else None)), rest


def _narrowed(writer: Writer, data: Data) -> Data:
    """A condition of a block as one of no axes, where a broadcast gave it these."""
    node = writer.b.node(data.position)
    outer = tuple(range(len(data.axes)))
    if data.shape and isinstance(node.op, ops.BroadcastInDim) and node.op.dimensions == outer:
        return Data(node.operands[0], data.axes, ())
    return data


def _axes(writer: Writer, index: Index) -> set[str]:
    """The instances, iterations and lanes that an index depends on."""
    found: set[str] = set()
    for name in variables(index):
        if name.startswith(DATA):
            data = writer.read(name)
            found |= {*data.axes, *(lane(k) for k, size in enumerate(data.shape) if size != 1)}
        else:
            found.add(name)
    return found


def _are_whole(places: Sequence[Place], sizes: Sequence[Dim]) -> bool:
    for place, size in zip(places, sizes, strict=True):
        dense = all(n == d.size for n, d in zip(lengths(place), place.digits, strict=False))
        if not dense or len(lengths(place)) != max(len(place.digits), 1) or place.start != 0 or place.length != size:
            return False
    return True


def names_of(rows: Rows) -> Mapping[str, None]:
    """All variables that tell elements apart."""
    places = (*rows.places, *(rows.others or ()))
    return dict.fromkeys([*rows.axes, *(d.variable for place in places for d in place.digits)])
