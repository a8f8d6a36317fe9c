"""Elementary functions that the vocabulary has not, by those that it has.

Each is written so that it is as accurate as what it is made of: near zero, where differences would cancel, and near
the largest numbers, where exponentials and squares would overflow before the result does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rewright import ops
from rewright.frontends.aten.context import Context, Operand, Table, Value
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import GraphBuilder
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb

TABLE = Table()
LARGE = 1e4
"""From here on ``x + sqrt(x * x + 1)`` is ``2 x`` in single precision."""


def _unary(function: Callable[[GraphBuilder, int], int]) -> Callable[[Context, Value], int]:
    def lower(c: Context, x: Value) -> int:
        (position,) = c.positions(x)
        return function(c.b, position)

    return lower


def _exponential(b: GraphBuilder, x: int) -> int:
    """``exp(x) / 2``, which is in range where the exponential is not."""
    return b.add(ops.Exponential(), rb.shift_by(b, x, -math.log(2)))


def _is(b: GraphBuilder, direction: Direction, x: int, value: float) -> int:
    return rb.compare(b, direction, x, rb.splat_like(b, value, x))


def cosh(b: GraphBuilder, x: int) -> int:
    """``(exp(x) + exp(-x)) / 2``."""
    return rb.add(b, _exponential(b, x), _exponential(b, b.add(ops.Negate(), x)))


def sinh(b: GraphBuilder, x: int) -> int:
    """``(exp(x) - exp(-x)) / 2``; near zero ``(t + t / (t + 1)) / 2`` with ``t = exp(x) - 1``."""
    far = rb.subtract(b, _exponential(b, x), _exponential(b, b.add(ops.Negate(), x)))
    t = b.add(ops.ExponentialMinusOne(), x)
    near = rb.scale_by(b, rb.add(b, t, rb.divide(b, t, rb.shift_by(b, t, 1.0))), 0.5)
    return rb.select(b, _is(b, "LT", b.add(ops.Abs(), x), 1.0), near, far)


def tan(b: GraphBuilder, x: int) -> int:
    """``sin(x) / cos(x)``."""
    return rb.divide(b, b.add(ops.Sine(), x), b.add(ops.Cosine(), x))


def asinh(b: GraphBuilder, x: int) -> int:
    """``sign(x) log(a + sqrt(a a + 1))`` with ``a = |x|``."""
    a = b.add(ops.Abs(), x)
    square = rb.multiply(b, a, a)
    root = b.add(ops.Sqrt(), rb.shift_by(b, square, 1.0))
    near = b.add(ops.LogPlusOne(), rb.add(b, a, rb.divide(b, square, rb.shift_by(b, root, 1.0))))
    far = rb.shift_by(b, b.add(ops.Log(), a), math.log(2))
    return rb.multiply(b, b.add(ops.Sign(), x), rb.select(b, _is(b, "GT", a, LARGE), far, near))


def acosh(b: GraphBuilder, x: int) -> int:
    """``log(x + sqrt(x x - 1))``, as ``log(1 + t + sqrt(t) sqrt(t + 2))`` with ``t = x - 1``."""
    t = rb.shift_by(b, x, -1.0)
    root = rb.multiply(b, b.add(ops.Sqrt(), t), b.add(ops.Sqrt(), rb.shift_by(b, t, 2.0)))
    near = b.add(ops.LogPlusOne(), rb.add(b, t, root))
    far = rb.shift_by(b, b.add(ops.Log(), x), math.log(2))
    return rb.select(b, _is(b, "GT", x, LARGE), far, near)


def atanh(b: GraphBuilder, x: int) -> int:
    """``(log(1 + x) - log(1 - x)) / 2``."""
    low = b.add(ops.LogPlusOne(), b.add(ops.Negate(), x))
    return rb.scale_by(b, rb.subtract(b, b.add(ops.LogPlusOne(), x), low), 0.5)


def _logarithm(base: float) -> Callable[[GraphBuilder, int], int]:
    def lower(b: GraphBuilder, x: int) -> int:
        return rb.divide(b, b.add(ops.Log(), x), rb.splat_like(b, math.log(base), x))

    return lower


for _name, _function in {
    "cosh": cosh,
    "sinh": sinh,
    "tan": tan,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "log2": _logarithm(2),
    "log10": _logarithm(10),
}.items():
    TABLE.register(f"aten.{_name}.default")(_unary(_function))


def _present(larger: bool) -> Callable[[Context, Operand, Operand], int]:
    """The larger or smaller one of two numbers, and the other one where one is none."""

    def lower(c: Context, x: Operand, y: Operand) -> int:
        left, right = c.positions(x, y)
        both = rb.binary(c.b, ops.Maximum() if larger else ops.Minimum(), left, right)
        left, right = (rb.broadcast(c.b, p, c.b.type(both).shape) for p in (left, right))
        if not c.b.type(both).dtype.is_float:
            return c.spread(both)
        found = rb.select(c.b, rb.compare(c.b, "NE", right, right), left, both)
        return c.spread(rb.select(c.b, rb.compare(c.b, "NE", left, left), right, found))

    return lower


TABLE.register("aten.fmax.default")(_present(True))
TABLE.register("aten.fmin.default")(_present(False))


@TABLE.register("aten.hypot.default")
def hypot(c: Context, x: Operand, y: Operand) -> int:
    """``sqrt(x x + y y)`` as ``m sqrt(1 + (n / m)^2)``, m being the larger size; infinite beside NaN too."""
    b = c.b
    sizes = [b.add(ops.Abs(), p) for p in c.positions(x, y)]
    m, n = (rb.binary(b, op, *sizes) for op in (ops.Maximum(), ops.Minimum()))
    part = rb.divide(b, n, m)
    length = rb.multiply(b, m, b.add(ops.Sqrt(), rb.shift_by(b, rb.multiply(b, part, part), 1.0)))
    alike = rb.compare(b, "EQ", m, n)  # both may be zero, or infinite
    length = rb.select(b, alike, rb.scale_by(b, m, math.sqrt(2)), length)
    infinity = rb.splat_like(b, math.inf, m)
    for size in sizes:
        length = rb.select(b, rb.compare(b, "EQ", size, infinity), infinity, length)
    return c.spread(length)


@TABLE.register("aten.round.decimals")
def round_(c: Context, x: Value, *, decimals: int) -> int:
    (position,) = c.positions(x)
    scale = rb.splat_like(c.b, 10.0 ** abs(decimals), position)
    there, back = (rb.multiply, rb.divide) if decimals >= 0 else (rb.divide, rb.multiply)
    return back(c.b, c.b.add(ops.RoundNearestEven(), there(c.b, position, scale)), scale)


@TABLE.register("aten.signbit.default")
def signbit(c: Context, x: Value) -> int:
    """Whether a number is below zero, or the zero whose inverse is."""
    if not x.dtype.is_float:
        return _is(c.b, "LT", x.position, 0)
    return _negative(c.b, x.position)


def _negative(b: GraphBuilder, x: int) -> int:
    inverse = rb.divide(b, rb.splat_like(b, 1.0, x), x)
    return rb.select(b, _is(b, "EQ", x, 0.0), _is(b, "LT", inverse, 0.0), _is(b, "LT", x, 0.0))


@TABLE.register("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(c: Context, x: Operand, y: Operand) -> int:
    """The size of one number with the sign of another one."""
    b = c.b
    size, sign = c.positions(x, y)
    size = b.add(ops.Abs(), size)
    shape = b.type(rb.binary(b, ops.Add(), size, sign)).shape
    size, sign = (rb.broadcast(b, p, shape) for p in (size, sign))
    return c.spread(rb.select(b, _negative(b, sign), b.add(ops.Negate(), size), size))


@TABLE.register("aten.rrelu.default")
def rrelu(
    c: Context, x: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: object = None
) -> int:
    """A leaky rectifier with the mean of the slopes that training draws from."""
    if training:
        raise UnsupportedOperator("rrelu draws random slopes in training; call model.eval()")
    (position,) = c.positions(x)
    below = rb.scale_by(c.b, position, (lower + upper) / 2)
    return c.spread(rb.select(c.b, _is(c.b, "GE", position, 0.0), position, below))


@TABLE.register("aten.rrelu_with_noise.default")
def rrelu_with_noise(
    c: Context,
    x: Value,
    noise: Value,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: object = None,
) -> int:
    """The same; the noise is what training writes to."""
    return rrelu(c, x, lower, upper, training, generator)
