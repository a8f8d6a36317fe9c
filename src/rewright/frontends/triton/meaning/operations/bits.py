"""Bits of integers, as numbers with a sign and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.values import Data, Value, Whole
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.functions.record import Direction

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader

BITS = {DType.I8: 8, DType.I16: 16, DType.I32: 32, DType.U8: 8}
"""Integers whose bits may be read in two ways."""


def without_sign(reader: Reader, value: Value) -> Data:
    """Bits as a number that is not negative: of the byte -56 it is 200."""
    data = reader.writer.data(value)
    dtype = reader.writer.dtype(data)
    if dtype.is_unsigned or dtype is DType.BOOL or (isinstance(value, Whole) and reader.implies(value.index)):
        return data
    if dtype not in BITS:
        raise UnsupportedOperator("takes an integer that may be negative for one without a sign")
    return _moved_where(reader, data, "LT", 0, 1 << BITS[dtype])


def with_sign(reader: Reader, value: Value) -> Data:
    """Bits as a number with a sign: of the byte 200 it is -56, and of what is true -1."""
    data = reader.writer.data(value)
    dtype = reader.writer.dtype(data)
    if dtype is DType.BOOL:
        return reader.writer.apply(ops.Negate(), reader.writer.convert(data, DType.I32))
    return with_sign_of(reader, data, dtype) if dtype.is_unsigned else data


def with_sign_of(reader: Reader, data: Data, dtype: DType) -> Data:
    """A number that is not negative as the bits of one with a sign, of so many bits as a dtype has."""
    return _moved_where(reader, data, "GE", 1 << (BITS[dtype] - 1), -(1 << BITS[dtype]))


def _moved_where(reader: Reader, data: Data, direction: Direction, bound: int, by: int) -> Data:
    """Integers, in 64 bits, of which those beyond a bound are moved."""
    writer, wide = reader.writer, reader.writer.convert(data, DType.I64)
    last, steps = (writer.constant(number, data.shape, DType.I64) for number in (bound, by))
    moved = writer.apply(ops.Add(), wide, steps)
    return writer.select(writer.apply(ops.Compare(direction), wide, last), moved, wide)
