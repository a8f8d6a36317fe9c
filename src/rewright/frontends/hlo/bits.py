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
from rewright.ops.base import integer_limits
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
        for instruction in computation.instructions
    )


def wrapped(c: Context, op: Operator, operands: Sequence[int]) -> int:
    """A sum, difference or product of unsigned 32-bit numbers that wraps around, computed in 64 bits."""
    limit = 1 << 32
    kind = DType.U64 if isinstance(op, ops.Multiply) else DType.I64
    wide = [rb.convert(c.b, operand, kind) for operand in operands]
    if isinstance(op, ops.Subtract):
        wide[0] = rb.shifted(c.b, wide[0], limit)
    total = c.b.add(op, *wide)
    return rb.convert(c.b, _remainder(c, total, limit), DType.U32)


def shift(c: Context, i: Instruction, operands: Sequence[int]) -> int:
    """Shifts by a number of the module: products and quotients by a power of two, as far as the width goes."""
    x, amount = operands
    kind = c.b.type(x)
    by = c.b.uniform(amount)
    width = _WIDTHS.get(kind.dtype)
    if by is None or width is None or by < 0:
        raise UnsupportedOperator("a shift by a number that the module does not say; multiply or divide instead")
    if by >= width and i.opcode != "shift-right-arithmetic":
        return rb.splat_like(c.b, 0, x)
    factor = 1 << min(int(by), width - 1)
    if i.opcode == "shift-left":
        return _shift_left(c, x, factor)
    if kind.dtype.is_unsigned:
        return rb.divide(c.b, x, rb.splat_like(c.b, factor, x)) if factor <= integer_limits(kind.dtype)[1] else x
    if i.opcode == "shift-right-arithmetic" and width < 64:
        return _floor_quotient(c, x, factor)
    raise UnsupportedOperator("a logical shift of signed numbers; make them unsigned first")


def _shift_left(c: Context, x: int, factor: int) -> int:
    if c.b.type(x).dtype is not DType.U32:
        return rb.multiply(c.b, x, rb.splat_like(c.b, factor, x))
    wide = rb.convert(c.b, x, DType.I64)
    product = rb.multiply(c.b, wide, rb.splat_like(c.b, factor, wide))
    return rb.convert(c.b, _remainder(c, product, 1 << 32), DType.U32)


def _floor_quotient(c: Context, x: int, factor: int) -> int:
    wide = rb.convert(c.b, x, DType.I64)
    by = rb.splat_like(c.b, factor, wide)
    rest = _remainder(c, rb.add(c.b, _remainder(c, wide, factor), by), factor)
    return rb.convert(c.b, rb.divide(c.b, rb.subtract(c.b, wide, rest), by), c.b.type(x).dtype)


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
    scale = c.b.add(ops.Power(), two, rb.shifted(c.b, power, -127.0))
    mantissa = rb.shifted(c.b, rb.scaled(c.b, fraction, 2.0**-23), 1.0)
    signed = rb.shifted(c.b, rb.scaled(c.b, minus, -2.0), 1.0)
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
