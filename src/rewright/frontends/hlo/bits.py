"""Instructions on the bits of integers, and unsigned numbers that wrap around.

Generators of random numbers add, shift and mix 32-bit numbers and rely on their wrapping around. Written out with
remainders they are functions of integers like any other; modules that do none of this keep plain sums, which are
taken not to overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewright import ops
from rewright.frontends.hlo.context import Context
from rewright.frontends.hlo.module import Instruction, Module
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.operator import Operator
from rewright.ir.types import DType
from rewright.ops.base import integer_limits, wrap_integer
from rewright.ops.reference import building as rb

Function = Callable[[Context, Instruction, Sequence[int]], int]
_MIXING = frozenset({"xor", "shift-left", "shift-right-logical"})
_UNSIGNED = {DType.U8: 8, DType.U16: 16, DType.U32: 32, DType.U64: 64}
_WIDTHS = _UNSIGNED | {DType.I8: 8, DType.I16: 16, DType.I32: 32, DType.I64: 64}


def wraps(module: Module) -> bool:
    """Whether a module mixes the bits of unsigned 32-bit numbers, so that their sums have to wrap around."""
    return any(
        instruction.opcode in _MIXING and instruction.shape.element == "u32"
        for computation in module.computations.values()
        for instruction in computation.instructions.values()
    )


def wrapping(c: Context, op: Operator, operands: Sequence[int]) -> int:
    """A sum, difference or product of unsigned 32-bit numbers that wraps around, computed in 64 bits."""
    limit = 1 << 32
    kind = DType.U64 if isinstance(op, ops.Multiply) else DType.I64
    wide = [rb.convert(c.b, operand, kind) for operand in operands]
    if isinstance(op, ops.Subtract):
        wide[0] = rb.shift_by(c.b, wide[0], limit)
    total = c.b.add(op, *wide)
    return rb.convert(c.b, _remainder(c, total, limit), DType.U32)


def shift(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    """Shifts as products and quotients by a power of two; by the width or more nothing is left, or the sign."""
    x, amount = operands
    dtype = c.b.type(x).dtype
    width = _WIDTHS[dtype]
    by = c.b.uniform(amount)
    if by == 0:
        return x
    if by is not None and c.wraps and dtype is DType.U32 and 0 < by < width and i.opcode == "shift-left":
        return _wide_shift_left(c, x, int(by))
    beyond = _is_beyond(c, amount, width)
    kept = _kept_amount(c, amount, beyond, width - 1 if dtype.is_unsigned else width - 2)
    zero = rb.splat_like(c.b, 0, x)
    if i.opcode == "shift-left":
        factor = _power(c, rb.select(c.b, beyond, rb.splat_like(c.b, 0, amount), amount))
        return rb.select(c.b, beyond, zero, rb.multiply(c.b, x, factor))
    if i.opcode == "shift-right-logical":
        found = _logical(c, x, amount, kept) if not dtype.is_unsigned else rb.divide(c.b, x, _power(c, kept))
        return rb.select(c.b, beyond, zero, found)
    return _with_sign(c, x, kept, beyond) if dtype.is_unsigned else _arithmetic(c, x, amount, kept, beyond)


def _is_beyond(c: Context, amount: int, width: int) -> int:
    """Whether a shift goes as far as the width: its amount counts as unsigned."""
    beyond = rb.compare(c.b, "GE", amount, rb.splat_like(c.b, width, amount))
    if c.b.type(amount).dtype.is_unsigned:
        return beyond
    return c.b.add(ops.Or(), beyond, rb.compare(c.b, "LT", amount, rb.splat_like(c.b, 0, amount)))


def _kept_amount(c: Context, amount: int, beyond: int, most: int) -> int:
    """The amount, and no more than a power of two of the dtype has."""
    inside = c.b.add(ops.Minimum(), amount, rb.splat_like(c.b, most, amount))
    return rb.select(c.b, beyond, rb.splat_like(c.b, most, amount), inside)


def _power(c: Context, amount: int) -> int:
    by = c.b.uniform(amount)
    if by is None:
        return c.b.add(ops.Power(), rb.splat_like(c.b, 2, amount), amount)
    return rb.splat_like(c.b, wrap_integer(c.b.type(amount).dtype, 1 << int(by)), amount)


def _floor_quotient(c: Context, x: int, factor: int) -> int:
    """A signed number divided by a power of two and rounded down."""
    zero = rb.splat_like(c.b, 0, x)
    quotient = rb.divide(c.b, x, factor)
    inexact = rb.compare(c.b, "NE", rb.multiply(c.b, quotient, factor), x)
    below = c.b.add(ops.And(), rb.compare(c.b, "LT", x, zero), inexact)
    return rb.select(c.b, below, rb.shift_by(c.b, quotient, -1), quotient)


def _arithmetic(c: Context, x: int, amount: int, kept: int, beyond: int) -> int:
    """A signed number shifted to the right; by the width less one or more its sign is left."""
    width = _WIDTHS[c.b.type(x).dtype]
    zero, minus = rb.splat_like(c.b, 0, x), rb.splat_like(c.b, -1, x)
    sign = rb.select(c.b, rb.compare(c.b, "LT", x, zero), minus, zero)
    last = rb.compare(c.b, "EQ", amount, rb.splat_like(c.b, width - 1, amount))
    return rb.select(c.b, c.b.add(ops.Or(), beyond, last), sign, _floor_quotient(c, x, _power(c, kept)))


def _logical(c: Context, x: int, amount: int, kept: int) -> int:
    """A signed number whose bits are shifted to the right: by one, after which it is not negative, and by the rest."""
    half = 1 << (_WIDTHS[c.b.type(x).dtype] - 2)
    zero = rb.splat_like(c.b, 0, x)
    one = _floor_quotient(c, x, rb.splat_like(c.b, 2, x))
    risen = rb.shift_by(c.b, rb.shift_by(c.b, one, half), half)
    positive = rb.select(c.b, rb.compare(c.b, "LT", x, zero), risen, one)
    rest = c.b.add(ops.Maximum(), rb.shift_by(c.b, amount, -1), rb.splat_like(c.b, 0, amount))
    rest = c.b.add(ops.Minimum(), rest, rb.splat_like(c.b, _WIDTHS[c.b.type(x).dtype] - 2, rest))
    found = rb.divide(c.b, positive, _power(c, rest))
    return rb.select(c.b, rb.compare(c.b, "EQ", amount, rb.splat_like(c.b, 0, amount)), x, found)


def _with_sign(c: Context, x: int, kept: int, beyond: int) -> int:
    """The bits of an unsigned number shifted to the right as if it had a sign: its first bit moves in."""
    dtype = c.b.type(x).dtype
    most, zero = rb.splat_like(c.b, integer_limits(dtype)[1], x), rb.splat_like(c.b, 0, x)
    negative = rb.compare(c.b, "GE", x, rb.splat_like(c.b, 1 << (_WIDTHS[dtype] - 1), x))
    factor = _power(c, kept)
    moved = rb.subtract(c.b, most, rb.divide(c.b, most, factor))
    filled = rb.add(c.b, rb.divide(c.b, x, factor), rb.select(c.b, negative, moved, zero))
    return rb.select(c.b, beyond, rb.select(c.b, negative, most, zero), filled)


def _wide_shift_left(c: Context, x: int, by: int) -> int:
    wide = rb.convert(c.b, x, DType.I64)
    product = rb.multiply(c.b, wide, rb.splat_like(c.b, 1 << by, wide))
    return rb.convert(c.b, _remainder(c, product, 1 << 32), DType.U32)


def saturate_cast(c: Context, x: int, dtype: DType) -> int:
    """A float as an integer, as XLA converts it: NaN is zero, and what is too large is the largest number.

    The conversion itself only meets numbers that the dtype holds, where every framework agrees. The largest number may
    be no float, so that what lies beyond is chosen among integers.
    """
    low, high = integer_limits(dtype)
    zero, least = rb.splat_like(c.b, 0, x), rb.splat_like(c.b, low, x)
    lowest = rb.select(c.b, rb.compare(c.b, "LT", x, least), least, zero) if low else zero
    number = rb.select(c.b, rb.compare(c.b, "GE", x, least), x, lowest)
    over = rb.compare(c.b, "GE", x, rb.splat_like(c.b, high + 1, x))
    found = rb.convert(c.b, rb.select(c.b, over, zero, number), dtype)
    return rb.select(c.b, over, rb.splat_like(c.b, high, found), found)


def bitcast(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    """``bitcast-convert`` of unsigned 32-bit numbers to floats, from sign, exponent and fraction; no others."""
    (bits,) = operands
    if c.b.type(bits).dtype is not DType.U32 or i.shape.element != "f32":
        raise UnsupportedOperator("reading the bits of a tensor as another dtype has no meaning over the reals")
    c.assume("bits that are read as floats are those of normal numbers")
    low, high = _remainder(c, bits, 1 << 23), _quotient(c, bits, 1 << 23)
    exponent, sign = _remainder(c, high, 1 << 8), _quotient(c, high, 1 << 8)
    fraction, power, minus = (rb.convert(c.b, part, DType.F32) for part in (low, exponent, sign))
    two = rb.splat_like(c.b, 2.0, power)
    scale = c.b.add(ops.Power(), two, rb.shift_by(c.b, power, -127.0))
    mantissa = rb.shift_by(c.b, rb.scale_by(c.b, fraction, 2.0**-23), 1.0)
    signed = rb.shift_by(c.b, rb.scale_by(c.b, minus, -2.0), 1.0)
    return rb.multiply(c.b, signed, rb.multiply(c.b, scale, mantissa))


def _remainder(c: Context, x: int, by: int) -> int:
    return c.b.add(ops.Remainder(), x, rb.splat_like(c.b, by, x))


def _quotient(c: Context, x: int, by: int) -> int:
    return rb.divide(c.b, x, rb.splat_like(c.b, by, x))


TABLE: dict[str, Function] = {
    "shift-left": shift,
    "shift-right-logical": shift,
    "shift-right-arithmetic": shift,
    "bitcast-convert": bitcast,
}
