"""Operations that lay blocks out, and those that reduce or multiply them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import DATA, lane, substitute, variables
from rewright.frontends.triton.meaning.folds.combiners import kind_of
from rewright.frontends.triton.meaning.folds.firsts import first_place
from rewright.frontends.triton.meaning.folds.moments import merged
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import DTYPES, Address, Choice, Data, Truth, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.base import ReductionKind
from rewright.ops.digits import reshaped_index
from rewright.ops.reference import building as rb
from rewright.terms.index import ZERO, Index, variable

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

_COMBINERS: dict[str, ReductionKind] = {
    "arith.addf": "sum",
    "arith.addi": "sum",
    "arith.mulf": "product",
    "arith.muli": "product",
    "arith.maxnumf": "maximum",
    "arith.maximumf": "maximum",
    "arith.maxsi": "maximum",
    "arith.minnumf": "minimum",
    "arith.minimumf": "minimum",
    "arith.minsi": "minimum",
    "arith.andi": "and",
    "arith.ori": "or",
}


def laid_out(reader: Reader, value: Value, shape: tuple[int, ...], places: dict[int, int]) -> Value:
    """A value with its axis ``k`` at ``places[k]`` of a block; along the others it is repeated."""
    old = {lane(k): variable(lane(places[k])) if k in places else ZERO for k in range(_MOST_AXES)}
    return _relaid(reader, value, _Layout(shape, old, lambda data: _data(reader, data, shape, places)))


_MOST_AXES = 32
"""Axes of a block."""


@dataclass(frozen=True)
class _Layout:
    """Elements of a block at other places."""

    shape: tuple[int, ...]
    lanes: Mapping[str, Index]
    """The lanes of the block by those of the new one."""
    data: Callable[[Data], Data]


def _relaid(reader: Reader, value: Value, layout: _Layout) -> Value:
    """A value in another layout; what is no symbol as data."""
    if isinstance(value, Whole):
        return replace(value, index=_relaid_index(reader, value.index, layout), shape=layout.shape)
    if isinstance(value, Address):
        data = None if value.data is None else layout.data(value.data)
        return replace(value, index=_relaid_index(reader, value.index, layout), shape=layout.shape, data=data)
    if isinstance(value, Truth):
        parts = tuple(_relaid_index(reader, part, layout) for part in value.parts)
        return Truth(parts, layout.shape, None if value.data is None else layout.data(value.data))
    return layout.data(reader.writer.data(value))


def _relaid_index(reader: Reader, index: Index, layout: _Layout) -> Index:
    """An index in another layout, and what was read for each lane likewise."""
    writer, values = reader.writer, dict(layout.lanes)
    for name in {name for name in variables(index) if name.startswith(DATA)}:
        data = writer.read(name)
        if not data.shape:
            continue
        moved, choice = layout.data(data), writer.choices.get(name)
        if choice is None:
            values[name] = writer.named(moved)
        else:
            parts = tuple(_relaid_index(reader, part, layout) for part in choice.parts)
            sides = (_relaid_index(reader, side, layout) for side in (choice.yes, choice.no))
            values[name] = writer.chosen(moved, Choice(parts, *sides))
    return substitute(index, values)


def _data(reader: Reader, value: Data, shape: tuple[int, ...], places: dict[int, int]) -> Data:
    writer, outer = reader.writer, len(value.axes)
    position = value.position
    gone = [k for k in range(len(value.shape)) if k not in places]
    for k in reversed(gone):
        kept = [n for axis, n in enumerate(writer.b.type(position).shape) if axis != outer + k]
        position = rb.reshape(writer.b, position, kept)
    order = sorted(places.values())
    own = [places[k] for k in range(len(value.shape)) if k in places]
    position = rb.transpose(writer.b, position, [*range(outer), *(outer + own.index(place) for place in order)])
    full = (*writer.sizes(value.axes), *shape)
    if writer.b.type(position).shape != full:
        kept = [n for n, place in enumerate(order) if value.shape[_at(places, place)] == shape[place] != 1]
        one = [n for n in range(len(order)) if n not in kept]
        for n in reversed(one):
            sizes = [s for axis, s in enumerate(writer.b.type(position).shape) if axis != outer + n]
            position = rb.reshape(writer.b, position, sizes)
        axes = (*range(outer), *(outer + order[n] for n in kept))
        position = writer.b.add(ops.BroadcastInDim(full, axes), position)
    return Data(position, value.axes, shape)


def _at(places: dict[int, int], place: int) -> int:
    return next(k for k, own in places.items() if own == place)


@MEANINGS.enter("tt.splat", "tt.broadcast")
def repeated(reader: Reader, op: Operation) -> Value:
    """One element, or an axis of one element, over a block."""
    (value,) = reader.operands(op)
    return laid_out(reader, value, op.given[0].shape, {k: k for k in range(len(value.shape))})


@MEANINGS.enter("tt.expand_dims")
def expanded(reader: Reader, op: Operation) -> Value:
    """A block with one more axis of one element."""
    (value,) = reader.operands(op)
    axis = int(op.attributes["axis"])
    return laid_out(reader, value, op.given[0].shape, {k: k + (k >= axis) for k in range(len(value.shape))})


@MEANINGS.enter("tt.trans")
def transposed(reader: Reader, op: Operation) -> Value:
    """A block with its axes in another order."""
    (value,) = reader.operands(op)
    text = op.attributes["order"].removeprefix("array<i32:").removesuffix(">")
    order = [int(axis) for axis in text.split(",")]
    return laid_out(reader, value, op.given[0].shape, {old: new for new, old in enumerate(order)})


@MEANINGS.enter("tt.reshape")
def reshaped(reader: Reader, op: Operation) -> Value:
    """A block with the same elements in the same order along other axes."""
    (value,) = reader.operands(op)
    if "allow_reorder" in op.words and not reader.is_only_folded(op.results[0]):
        raise UnsupportedOperator("a reshape that may put elements in any order is read only before a reduction")
    shape = op.given[0].shape
    own = value.shape

    def data(value: Data) -> Data:
        return replace(
            value,
            position=rb.reshape(reader.writer.b, value.position, (*reader.writer.sizes(value.axes), *shape)),
            shape=shape,
        )

    lanes = reshaped_index(own, shape, tuple(variable(lane(k)) for k in range(len(shape))))
    return _relaid(reader, value, _Layout(shape, {lane(k): index for k, index in enumerate(lanes)}, data))


@MEANINGS.enter("tt.make_range")
def counted(reader: Reader, op: Operation) -> Value:
    """``start, start + 1, ...``."""
    start = int(op.attributes["start"])
    return Whole(Index(start) + variable(lane(0)), op.types[0].shape, DTYPES[op.types[0].element])


@MEANINGS.enter("tt.reduce")
def reduced(reader: Reader, op: Operation) -> Value | tuple[Value, ...]:
    """A block folded along an axis by a combiner that is one operation, or finds the first largest or least."""
    if len(op.operands) > 1:
        return merged(reader, op, reader.operands(op)) or first_place(reader, op, reader.operands(op))
    (value,), axis, kind = _folded_operands(reader, op), int(op.attributes["axis"]), _combiner(reader, op)
    data = reader.writer.data(value)
    position = _folded(reader, kind, data.position, len(data.axes) + axis)
    shape = (*data.shape[:axis], *data.shape[axis + 1 :])
    found = Data(position, data.axes, shape)
    return Truth((), shape, found) if isinstance(value, Truth) else found


def _folded(reader: Reader, kind: ReductionKind, position: int, axis: int) -> int:
    """A fold along an axis; of what a loop has folded along its iterations, one fold along both."""
    b = reader.writer.b
    node = b.node(position)
    if kind == "sum" and isinstance(node.op, ops.Divide | ops.Multiply) and node.type.dtype.is_float:
        number = b.uniform(node.operands[1])  # a mean in two steps; quotients of integers are rounded
        if number and math.isfinite(number) and isinstance(b.node(node.operands[0]).op, ops.Reduce):
            whole = _folded(reader, kind, node.operands[0], axis)
            return b.add(node.op, whole, rb.splat_like(b, number, whole))
    if not isinstance(node.op, ops.Reduce) or node.op.kind != kind:
        return rb.reduce(b, kind, position, [axis])
    gone = set(node.op.dimensions)
    kept = [n for n in range(b.type(node.operands[0]).rank) if n not in gone]
    return rb.reduce(b, kind, node.operands[0], sorted((*gone, kept[axis])))


@MEANINGS.enter("tt.scan")
def scanned(reader: Reader, op: Operation) -> Value:
    """For each element along an axis the fold up to it, or from it on."""
    (value,), axis, kind = _folded_operands(reader, op), int(op.attributes["axis"]), _combiner(reader, op)
    data, b = reader.writer.data(value), reader.writer.b
    shape, place = b.type(data.position).shape, len(data.axes) + axis
    before = (data.shape[axis] - 1, 0) if op.attributes.get("reverse") != "true" else (0, data.shape[axis] - 1)
    window = tuple(data.shape[axis] if n == place else 1 for n in range(len(shape)))
    padding = tuple(before if n == place else (0, 0) for n in range(len(shape)))
    return Data(b.add(ops.ReduceWindow(kind, window, (1,) * len(shape), padding), data.position), data.axes, data.shape)


def _folded_operands(reader: Reader, op: Operation) -> tuple[Value]:
    values = reader.operands(op)
    if len(values) != 1:
        raise UnsupportedOperator("a fold of several blocks at once is not read")
    return (values[0],)


def _combiner(reader: Reader, op: Operation) -> ReductionKind:
    """The kind of a fold whose combiner is one operation on the two that it is given, or is proved to be one."""
    body = op.regions[0]
    first = body.operations[0]
    names = {name for name, _ in body.arguments}
    is_one = len(body.operations) == 2 and set(first.operands) == names and body.operations[1].operands == first.results
    kind = _COMBINERS.get(first.name) if is_one else kind_of(reader, op)
    if kind is None:
        raise UnsupportedOperator("a fold whose combiner is no sum, product, maximum or minimum is not read")
    return kind


@MEANINGS.enter("tt.dot")
def multiplied(reader: Reader, op: Operation) -> Value:
    """``accumulator + left @ right`` of blocks with two axes, or three of which the first is one of batches."""
    left, right, start = (reader.writer.data(v) for v in reader.operands(op))
    writer = reader.writer
    axes = writer.union(left, right)
    batch = len(axes) + len(left.shape) - 2
    kind = writer.dtype(start)
    sides = [rb.convert(writer.b, writer.spread(side, axes), kind) for side in (left, right)]
    position = rb.dot(writer.b, sides[0], sides[1], ([batch + 1], [batch]), batch)
    return writer.apply(ops.Add(), start, Data(position, axes, start.shape))
