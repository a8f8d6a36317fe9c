"""Blocks joined, parted, looked up in and counted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import DATA, lane, substitute, variables
from rewright.frontends.triton.meaning.operations.blocks import laid_out
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import Address, Data, Truth, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.reference import building as rb
from rewright.ops.reference.indexing import gather_along
from rewright.terms.index import Index, variable

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


@MEANINGS.enter("tt.join")
def joined(reader: Reader, op: Operation) -> Value:
    """Two blocks along a new last axis."""
    left, right = reader.operands(op)
    shape = op.given[0].shape
    if isinstance(left, Whole) and isinstance(right, Whole):
        steps = (right.index - left.index).as_size()
        found = laid_out(reader, left, shape, {k: k for k in range(len(left.shape))})
        if steps is not None and isinstance(found, Whole):
            return replace(found, index=found.index + variable(lane(len(shape) - 1)) * steps)
    writer, sides = reader.writer, [reader.writer.data(side) for side in (left, right)]
    axes = writer.union(*sides)
    places = [rb.insert_ones(writer.b, writer.spread(side, axes), [len(axes) + len(side.shape)]) for side in sides]
    found = Data(rb.concatenate(writer.b, places, len(axes) + len(shape) - 1), axes, shape)
    return Truth((), shape, found) if isinstance(left, Truth) else found


@MEANINGS.enter("tt.split")
def parted(reader: Reader, op: Operation) -> tuple[Value, Value]:
    """What lies at both places of the last axis of a block."""
    (value,) = reader.operands(op)
    shape = op.given[0].shape
    first, second = (_at(reader, value, shape, place) for place in range(2))
    return first, second


def _at(reader: Reader, value: Value, shape: tuple[int, ...], place: int) -> Value:
    """What lies at one place of the last axis."""
    last = {lane(len(shape)): Index(place)}
    if isinstance(value, Whole | Address) and not any(name.startswith(DATA) for name in variables(value.index)):
        data = value.data if isinstance(value, Address) else None
        if data is None:
            return replace(value, index=substitute(value.index, last), shape=shape)
    if isinstance(value, Address):
        raise UnsupportedOperator("a block of pointers that are computed from data is parted")
    data, b = reader.writer.data(value), reader.writer.b
    axis = len(data.axes) + len(shape)
    part = rb.slice_axis(b, data.position, axis, place, place + 1)
    found = Data(rb.reshape(b, part, b.type(part).shape[:-1]), data.axes, shape)
    return Truth((), shape, found) if isinstance(value, Truth) else found


@MEANINGS.enter("tt.unsplat")
def alone(reader: Reader, op: Operation) -> Value:
    """The only element of a block."""
    (value,) = reader.operands(op)
    data = reader.writer.data(value)
    found = Data(rb.reshape(reader.writer.b, data.position, reader.writer.sizes(data.axes)), data.axes, ())
    return Truth((), (), found) if isinstance(value, Truth) else found


@MEANINGS.enter("tt.cat")
def strung(reader: Reader, op: Operation) -> Value:
    """Two blocks as one, whose elements may be in any order."""
    if not reader.is_only_folded(op.results[0]):
        raise UnsupportedOperator("tl.cat may put elements in any order, and is read only before a reduction")
    writer, sides = reader.writer, [reader.writer.data(side) for side in reader.operands(op)]
    axes = writer.union(*sides)
    places = [writer.spread(side, axes) for side in sides]
    return Data(rb.concatenate(writer.b, places, len(axes)), axes, op.given[0].shape)


@MEANINGS.enter("tt.gather")
def looked_up(reader: Reader, op: Operation) -> Value:
    """For each element of a block of places, what lies there along an axis of another one."""
    source, places = reader.operands(op)
    writer, axis = reader.writer, int(op.attributes["axis"])
    data, index = writer.data(source), writer.data(places)
    axes = writer.union(data, index)
    index = writer.convert(index, DType.I64)
    found = gather_along(writer.b, writer.spread(data, axes), writer.spread(index, axes), len(axes) + axis)
    return Data(found, axes, op.given[0].shape)


@MEANINGS.enter("tt.histogram")
def counted(reader: Reader, op: Operation) -> Value:
    """How often each number from zero on is in a block; nothing is said of where other numbers are counted."""
    value, *masks = (reader.writer.data(v) for v in reader.operands(op))
    writer, shape = reader.writer, op.given[0].shape
    line = writer.b.span.line
    reader.assumptions[f"the numbers that are counted at line {line} are at least 0 and below {shape[0]}"] = None
    full = (*value.shape, *shape)
    kind = writer.dtype(value)

    def spread(data: Data) -> Data:
        sizes, outer = (*writer.sizes(data.axes), *full), len(data.axes)
        return Data(writer.b.add(ops.BroadcastInDim(sizes, tuple(range(outer + 1))), data.position), data.axes, full)

    numbers = Data(rb.iota(writer.b, full, 1, kind), (), full)
    same = writer.apply(ops.Compare("EQ"), spread(value), numbers)
    if masks:
        same = writer.apply(ops.And(), same, spread(masks[0]))
    counts = writer.convert(same, DType.I32)
    return Data(rb.reduce(writer.b, "sum", counts.position, [len(counts.axes)]), counts.axes, shape)
