"""Loads of integers that the program makes of nothing: where a segment begins, or which expert a block is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rewright.frontends.triton.meaning.addresses.indices import Numbers, lane, of_lanes
from rewright.frontends.triton.meaning.values import Address, Data, Shape, Truth, Whole
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.reference.tables import periodic_table
from rewright.terms.index import Index, variable

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


def number_at(reader: Reader, address: Address, mask: Truth, other: Data | None, dtype: DType) -> Whole | None:
    """What is read at places that are numbers, of a tensor whose elements are; None elsewhere."""
    memory = reader.memories[address.argument]
    if dtype not in (DType.I32, DType.I64) or address.data is not None or mask.data is not None or memory.stores:
        return None
    if reader.writer.b.type(memory.position).dtype is not dtype or not memory.is_contiguous:
        return None
    table = reader.writer.b.known(memory.position)
    places = None if table is None else of_lanes(address.index, address.shape)
    if table is None or places is None:
        return None
    inside = _holds(mask, address.shape)
    if inside is None or (other is None and not inside.all()):
        return None
    if ((places < 0) | (places >= table.size))[inside].any():
        return None
    filling = None if other is None else reader.writer.b.known(other.position)
    if not inside.all() and (filling is None or filling.shape not in ((), address.shape)):
        return None
    found = np.where(inside, table.reshape(-1)[np.where(inside, places, 0)], 0 if filling is None else filling)
    memory.is_table = True
    return _as_symbol(reader, found.astype(np.int64), dtype)


def _holds(mask: Truth, shape: Shape) -> Numbers | None:
    """Where a mask holds; None where that depends on more than lanes."""
    parts = [of_lanes(part, shape) for part in mask.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return np.logical_and.reduce([np.ones(shape, bool), *(part >= 0 for part in known)])


def _as_symbol(reader: Reader, values: Numbers, dtype: DType) -> Whole:
    """Numbers as an index: affine in lanes, or a table."""
    first = int(values.reshape(-1)[0])
    index = Index(first)
    for axis, size in enumerate(values.shape):
        step = 0 if size == 1 else int(values.take(1, axis).reshape(-1)[0]) - first
        index = index + variable(lane(axis)) * step
    even = of_lanes(index, values.shape)
    if even is not None and np.array_equal(even, values):
        return Whole(index, values.shape, dtype)
    table = Data(periodic_table(reader.writer.b, values, dtype), (), values.shape)
    return Whole(reader.writer.named(table), values.shape, dtype)


def refuse_changed(reader: Reader) -> None:
    """Raises UnsupportedOperator where a tensor is written whose elements were read as numbers."""
    for memory in reader.memories.values():
        if memory.is_table and memory.stores:
            raise UnsupportedOperator(f"the kernel writes to {memory.name}, whose elements it reads as numbers")
