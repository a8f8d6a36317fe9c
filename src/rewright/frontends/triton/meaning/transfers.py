"""Loads, stores and atomic operations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.integers import DTYPES
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import ALWAYS, Address, Data, Truth, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import UnsupportedOperator

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


@MEANINGS.enter("tt.addptr")
def moved(reader: Reader, op: Operation) -> Value:
    """A pointer some elements further."""
    address, steps = reader.operands(op)
    if not isinstance(address, Address):
        raise UnsupportedOperator("a pointer that is computed from data is not read")
    if not isinstance(steps, Whole):
        raise UnsupportedOperator("an offset that is computed from data is not read")
    shape = address.shape or steps.shape
    return Address(address.argument, address.index + steps.index, shape)


@MEANINGS.enter("tt.load")
def loaded(reader: Reader, op: Operation) -> Value:
    """What lies at a block of places, ``other`` where a mask is false."""
    address, *rest = reader.operands(op)
    if not isinstance(address, Address):
        raise UnsupportedOperator("a load from what is no pointer")
    mask = _mask(reader, rest[0] if rest else None, address)
    other = reader.writer.data(rest[1]) if len(rest) > 1 else None
    if reader.is_trial:
        dtype = reader.writer.b.type(reader.memories[address.argument].position).dtype
        return reader.writer.constant(0, address.shape, dtype)
    found = reader.access.load(address, mask, reader.active, other)
    is_condition = op.types[0].element == "i1"
    return Truth((), found.shape, found) if is_condition else found


def _mask(reader: Reader, value: Value | None, address: Address) -> Truth:
    if value is None:
        return replace(ALWAYS, shape=address.shape)
    if isinstance(value, Truth):
        return value
    if isinstance(value, Data):
        return Truth((), value.shape, value)
    raise UnsupportedOperator("a mask that is no condition")


@MEANINGS.enter("tt.store")
def stored(reader: Reader, op: Operation) -> None:
    """Leave a block at places where a mask is true."""
    address, value, *rest = reader.operands(op)
    if not isinstance(address, Address):
        raise UnsupportedOperator("a store to what is no pointer")
    if reader.is_trial:
        return
    mask = _mask(reader, rest[0] if rest else None, address)
    if reader.guard is not None:
        guard = reader.guard
        spread = Data(reader.writer.spread(guard, guard.axes, address.shape), guard.axes, address.shape)
        joined = spread if mask.data is None else reader.writer.apply(ops.And(), mask.data, spread)
        mask = replace(mask, data=joined)
    dtype = DTYPES[op.types[0].element]
    data = reader.writer.convert(reader.writer.data(value), dtype)
    reader.access.store(address, data, mask, reader.active)
