"""Shifts of integers: products and quotients by powers of two."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rewright import ops
from rewright.frontends.triton.meaning.addresses.indices import of_lanes
from rewright.frontends.triton.meaning.operations.bits import BITS, with_sign_of, without_sign
from rewright.frontends.triton.meaning.operations.integers import floor
from rewright.frontends.triton.meaning.table import MEANINGS
from rewright.frontends.triton.meaning.values import Data, Value, Whole
from rewright.frontends.triton.text import Operation
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.types import DType
from rewright.ops.reference.division import floor_divide
from rewright.ops.reference.tables import periodic_table
from rewright.terms.index import Index

if TYPE_CHECKING:
    from rewright.frontends.triton.meaning.reader import Reader


@MEANINGS.enter("arith.shli", "arith.shrsi", "arith.shrui")
def shift(reader: Reader, op: Operation) -> Value:
    """A shift, of which Triton says nothing where it is by as many bits as there are, or more."""
    left, right = reader.operands(op)
    writer, steps = reader.writer, right.index.as_size() if isinstance(right, Whole) else None
    if isinstance(left, Whole) and isinstance(steps, int) and 0 <= steps <= _most(left.dtype):
        if op.name == "arith.shli":
            return reader.fitting(replace(left, index=left.index * (1 << steps)))
        if reader.implies(left.index):
            return replace(left, index=floor(left.index, 1 << steps))
    data = writer.data(left)
    dtype = writer.dtype(data)
    most = _most(dtype)
    if not _is_within(reader, right, 0, most):
        reader.assumptions[f"shifts in line {writer.b.span.line} are by 0 to {most} bits"] = None
    if op.name == "arith.shli":
        return _up(reader, data, right)
    if op.name == "arith.shrsi":
        return writer.convert(_floor_quotient(reader, data, right), dtype)
    found = writer.apply(ops.Divide(), _wide(reader, without_sign(reader, left)), _power_of_two(reader, right))
    is_short = dtype.is_unsigned or dtype is DType.I64 or _is_within(reader, right, 1, most)
    return writer.convert(found if is_short else with_sign_of(reader, found, dtype), dtype)


def _most(dtype: DType) -> int:
    """The most bits by which numbers are shifted here; two to the power 63 is no number of 64 bits."""
    if dtype is not DType.I64 and dtype not in BITS:
        raise UnsupportedOperator(f"a shift of numbers of type {dtype.value} is not read")
    return 62 if dtype is DType.I64 else BITS[dtype] - 1


def _is_within(reader: Reader, amount: Value, least: int, most: int) -> bool:
    """Whether a number of bits is known to be within bounds."""
    if not isinstance(amount, Whole):
        return False
    return reader.implies(amount.index - least) and reader.implies(Index(most) - amount.index)


def _wide(reader: Reader, number: Data) -> Data:
    return reader.writer.convert(number, DType.I64)


def _power_of_two(reader: Reader, amount: Value) -> Data:
    """Two to a power; where lanes alone decide it, by a table of one period along each axis."""
    writer = reader.writer
    known = of_lanes(amount.index, amount.shape) if isinstance(amount, Whole) else None
    if known is not None and (known >= 0).all() and (known < 63).all():
        return Data(periodic_table(writer.b, 1 << known, DType.I64), (), known.shape)
    number = writer.data(amount)
    two = writer.constant(2, number.shape, DType.I64)
    return writer.apply(ops.Power(), two, _wide(reader, number))


def _up(reader: Reader, data: Data, amount: Value) -> Data:
    """The product by a power of two; of short integers the bits that do not fit are dropped."""
    writer, dtype = reader.writer, reader.writer.dtype(data)
    power = _power_of_two(reader, amount)
    if dtype in (DType.I32, DType.I64):
        return writer.apply(ops.Multiply(), data, writer.convert(power, dtype))
    number, size = _wide(reader, without_sign(reader, data)), writer.constant(1 << BITS[dtype], data.shape, DType.I64)
    low = writer.apply(ops.Remainder(), writer.apply(ops.Multiply(), number, power), size)
    return writer.convert(low if dtype.is_unsigned else with_sign_of(reader, low, dtype), dtype)


def _floor_quotient(reader: Reader, data: Data, amount: Value) -> Data:
    """The quotient by a power of two, towards minus infinity."""
    writer, power = reader.writer, _power_of_two(reader, amount)
    axes = writer.union(data, power)
    sides = (writer.spread(side, axes) for side in (_wide(reader, data), power))
    return Data(floor_divide(writer.b, *sides), axes, data.shape)
