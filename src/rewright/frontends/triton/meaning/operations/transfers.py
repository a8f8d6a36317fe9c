"""Loads, stores and atomic operations."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.memories.numbers import number_at
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import ALWAYS, DTYPES, Address, Data, Truth, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.dims import at_most
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


LEFT_OPEN = "which the language leaves open"
"""How an assumption ends that says what undefined lanes hold."""


@MEANINGS.enter("tt.addptr")
def moved(reader: Reader, op: Operation) -> Value:
    """A pointer some elements further."""
    address, steps = reader.operands(op)
    if not isinstance(address, Address):
        raise UnsupportedOperator("a pointer that is computed from data is not read")
    if isinstance(steps, Whole):
        return replace(address, index=address.index + steps.index)
    further = reader.writer.convert(reader.writer.data(steps), DType.I64)
    before = address.data
    return replace(address, data=further if before is None else reader.writer.apply(ops.Add(), before, further))


@MEANINGS.enter("tt.bitcast")
def recast(reader: Reader, op: Operation) -> Value:
    """Pointers to truth values are pointers to the bytes that hold them; other casts of bits are not read."""
    (value,) = reader.operands(op)
    kinds = {op.types[0].element, op.given[0].element}
    if isinstance(value, Address) and kinds == {"i1", "i8"}:
        return value
    raise UnsupportedOperator(f"a cast of the bits of {op.types[0].element} to {op.given[0].element} is not read")


@MEANINGS.enter("tt.ptr_to_int")
def address_of(reader: Reader, op: Operation) -> Value:
    """The address of a tensor as a number, of which it is known that it is not zero: ``if weight_pointer:``."""
    (address,) = reader.operands(op)
    if not isinstance(address, Address) or address.shape or address.index.terms:
        raise UnsupportedOperator("the address of an element is used as a number")
    memory = reader.memories[address.argument]
    if not all(at_most(1, size) is True for size in memory.sizes):
        raise UnsupportedOperator(f"the address of {memory.name} is used as a number, and it may have no elements")
    number = reader.writer.named(reader.writer.unspecified((), (), DType.I64))
    reader.ranges.assume(number - 1)
    return Whole(number, (), DType.I64)


@MEANINGS.enter("tt.load")
def loaded(reader: Reader, op: Operation) -> Value:
    """What lies at a block of places, ``other`` where a mask is false."""
    address, *rest = reader.operands(op)
    if not isinstance(address, Address):
        raise UnsupportedOperator("a load from what is no pointer")
    mask = _mask(reader, rest[0] if rest else None, address)
    other = reader.writer.data(rest[1]) if len(rest) > 1 else None
    dtype = DTYPES.get(op.types[0].element)
    if other is None and rest and reader.fills_with_zeros and dtype is not None and (mask.parts or mask.data):
        other = reader.writer.constant(rb.cast(0, dtype), address.shape, dtype)
        span = reader.writer.b.span
        where = f"line {span.line} of {os.path.basename(span.file)}"
        reader.assumptions[f"where its mask is false the load of {where} gives zero, {LEFT_OPEN}"] = None
    return load_from(reader, address, mask, other, op.types[0].element)


def load_from(reader: Reader, address: Address, mask: Truth, other: Data | None, element: str) -> Value:
    """What lies at a block of places, of elements of some type; ``other`` where a mask is false."""
    if reader.is_trial:
        reader.touched.append(address)
        dtype = DTYPES.get(element, reader.writer.b.type(reader.memories[address.argument].position).dtype)
        return reader.writer.constant(rb.cast(0, dtype), address.shape, dtype)
    if _never(reader, mask) and (dtype := DTYPES.get(element)) is not None:
        return reader.writer.unspecified((), address.shape, dtype) if other is None else other
    known = reader.access.known(address, mask, reader.active)
    dtype = DTYPES.get(element)
    if known is not None and dtype in (DType.I32, DType.I64):
        return Whole(known, address.shape, dtype)
    number = None if dtype is None else number_at(reader, address, mask, other, dtype)
    if number is not None:
        return number
    reached = _guarded(reader, mask)  # places that data gives are in bounds where they are reached
    load = reader.access.load if address.data is None else reader.access.look_up
    kind = reader.writer.b.type(reader.memories[address.argument].position).dtype
    if other is not None and kind.is_unsigned:
        if not isinstance(filling := reader.writer.b.uniform(other.position), int) or filling < 0:
            raise UnsupportedOperator("a load of integers without a sign, filled with what may be negative")
        other = reader.writer.convert(other, kind)
    found = load(address, mask, reached, reader.active, other)
    if kind.is_unsigned:  # whose bits are a number only to what uses them
        return found
    if dtype is not None and dtype is not reader.writer.dtype(found):  # truth values are read as bytes
        found = reader.writer.convert(found, dtype)
    is_condition = dtype is DType.BOOL
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
    store_to(reader, address, value, _mask(reader, rest[0] if rest else None, address), DTYPES[op.types[0].element])


def store_to(reader: Reader, address: Address, value: Value, mask: Truth, dtype: DType) -> None:
    """Leave a block at places where a mask is true."""
    if reader.is_trial:
        reader.touched.append(address)
        return
    if _never(reader, mask):
        return
    if address.data is not None:
        raise UnsupportedOperator("a store to places that are computed from data is not read")
    data, kind = reader.writer.data(value), reader.writer.b.type(reader.memories[address.argument].position).dtype
    if kind.is_unsigned and reader.writer.dtype(data) is not kind:
        raise UnsupportedOperator("a store of computed integers to memory of integers without a sign is not read")
    data = data if kind.is_unsigned else reader.writer.convert(data, dtype)
    if kind is DType.BOOL is not dtype:  # as a byte
        data = reader.writer.apply(ops.Compare("NE"), data, reader.writer.constant(0, data.shape, dtype))
    reader.access.store(address, data, _guarded(reader, mask), reader.active)


def _never(reader: Reader, mask: Truth) -> bool:
    """Whether a mask holds nowhere, as that of a block which lies behind the end."""
    return any(reader.implies(part * -1 - 1) for part in mask.parts)


def _guarded(reader: Reader, mask: Truth) -> Truth:
    """A mask where branches on data, in which an operation stands, are taken too."""
    if reader.guard is None:
        return mask
    guard = reader.guard
    spread = Data(reader.writer.spread(guard, guard.axes, mask.shape), guard.axes, mask.shape)
    joined = spread if mask.data is None else reader.writer.apply(ops.And(), mask.data, spread)
    return replace(mask, data=joined)


_ATOMIC: dict[str, ReductionKind] = {
    "fadd": "sum",
    "add": "sum",
    "max": "maximum",
    "min": "minimum",
}


@MEANINGS.enter("tt.atomic_rmw")
def accumulated(reader: Reader, op: Operation) -> Value:
    """Add to what lies at places, or leave the larger or lesser: the order of instances is nothing to the result."""
    address, value, *rest = reader.operands(op)
    kind = _ATOMIC.get(op.words[0])
    if not isinstance(address, Address) or kind is None:
        raise UnsupportedOperator(f"the atomic operation {op.words[0]} is not read")
    dtype = DTYPES[op.types[0].element]
    if kind != "sum" and not dtype.is_float:
        raise UnsupportedOperator("an atomic extremum of integers is not read")
    before = reader.writer.unspecified(tuple(reader.sizes), address.shape, dtype)
    if reader.is_trial or (rest and _never(reader, _mask(reader, rest[0], address))):
        return before
    if address.data is not None:
        raise UnsupportedOperator("an atomic operation at places that are computed from data is not read")
    mask = _guarded(reader, _mask(reader, rest[0] if rest else None, address))
    data = reader.writer.convert(reader.writer.data(value), dtype)
    reader.access.accumulate(kind, address, data, mask, reader.active)
    return before
