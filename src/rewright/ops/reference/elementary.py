"""Elementary functions that the vocabulary has not, by those that it has.

Each is written so that it is as accurate as what it is made of: near zero, where differences would cancel, and near
the largest numbers, where exponentials and squares would overflow before the result does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb

Function = Callable[[GraphBuilder, int], int]
_LARGE = {DType.F16: 1e2, DType.F64: 1e100}
"""From here on ``x + sqrt(x * x + 1)`` is ``2 x``, before the square overflows; of floats of 32 bits from 1e9 on."""
NEAR = -1.0
"""From here on ``log(erfc(x))`` is taken from the difference to one."""


def _exponential(b: GraphBuilder, x: int) -> int:
    """``exp(x) / 2`` as ``(exp(x / 2) / 2) exp(x / 2)``, which is in range where the exponential is not."""
    root = b.add(ops.Exponential(), rb.scale_by(b, x, 0.5))
    return rb.multiply(b, rb.scale_by(b, root, 0.5), root)


def compared_with(b: GraphBuilder, direction: Direction, x: int, value: float) -> int:
    """A comparison with one number."""
    return rb.compare(b, direction, x, rb.splat_like(b, value, x))


def _large(b: GraphBuilder, x: int) -> float:
    return _LARGE.get(b.type(x).dtype, 1e9)


def cosh(b: GraphBuilder, x: int) -> int:
    """``(exp(x) + exp(-x)) / 2``."""
    return rb.add(b, _exponential(b, x), _exponential(b, b.add(ops.Negate(), x)))


def sinh(b: GraphBuilder, x: int) -> int:
    """``(exp(x) - exp(-x)) / 2``; near zero ``(t + t / (t + 1)) / 2`` with ``t = exp(x) - 1``."""
    far = rb.subtract(b, _exponential(b, x), _exponential(b, b.add(ops.Negate(), x)))
    t = b.add(ops.ExponentialMinusOne(), x)
    near = rb.scale_by(b, rb.add(b, t, rb.divide(b, t, rb.shift_by(b, t, 1.0))), 0.5)
    return rb.select(b, compared_with(b, "LT", b.add(ops.Abs(), x), 1.0), near, far)


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
    return rb.multiply(b, b.add(ops.Sign(), x), rb.select(b, compared_with(b, "GT", a, _large(b, x)), far, near))


def acosh(b: GraphBuilder, x: int) -> int:
    """``log(x + sqrt(x x - 1))``, as ``log(1 + t + sqrt(t) sqrt(t + 2))`` with ``t = x - 1``."""
    t = rb.shift_by(b, x, -1.0)
    root = rb.multiply(b, b.add(ops.Sqrt(), t), b.add(ops.Sqrt(), rb.shift_by(b, t, 2.0)))
    near = b.add(ops.LogPlusOne(), rb.add(b, t, root))
    far = rb.shift_by(b, b.add(ops.Log(), x), math.log(2))
    return rb.select(b, compared_with(b, "GT", x, _large(b, x)), far, near)


def atanh(b: GraphBuilder, x: int) -> int:
    """``(log(1 + x) - log(1 - x)) / 2``."""
    low = b.add(ops.LogPlusOne(), b.add(ops.Negate(), x))
    return rb.scale_by(b, rb.subtract(b, b.add(ops.LogPlusOne(), x), low), 0.5)


def logarithm(base: float) -> Function:
    """``log(x) / log(base)``."""

    def found(b: GraphBuilder, x: int) -> int:
        return rb.divide(b, b.add(ops.Log(), x), rb.splat_like(b, math.log(base), x))

    return found


def atan(b: GraphBuilder, x: int) -> int:
    """The angle of the point (1, x)."""
    return b.add(ops.Atan2(), x, rb.splat_like(b, 1.0, x))


def _roots(b: GraphBuilder, x: int) -> tuple[int, int]:
    """``sqrt(1 - x)`` and ``sqrt(1 + x)``, no numbers where x is out of range."""
    less = rb.shift_by(b, b.add(ops.Negate(), x), 1.0)
    return b.add(ops.Sqrt(), less), b.add(ops.Sqrt(), rb.shift_by(b, x, 1.0))


def asin(b: GraphBuilder, x: int) -> int:
    """The angle of the point ``(sqrt(1 - x) sqrt(1 + x), x)``."""
    return b.add(ops.Atan2(), x, rb.multiply(b, *_roots(b, x)))


def acos(b: GraphBuilder, x: int) -> int:
    """Twice the angle of the point ``(sqrt(1 + x), sqrt(1 - x))``."""
    return rb.scale_by(b, b.add(ops.Atan2(), *_roots(b, x)), 2.0)


def _bessel(scaled: Callable[[], ops.TensorOperator]) -> Function:
    def lower(b: GraphBuilder, x: int) -> int:
        """The scaled function times ``exp(|x|)``, by its root twice: the exponential alone overflows before."""
        root = b.add(ops.Exponential(), rb.scale_by(b, b.add(ops.Abs(), x), 0.5))
        return rb.multiply(b, rb.multiply(b, b.add(scaled(), x), root), root)

    return lower


def log_ndtr(b: GraphBuilder, x: int) -> int:
    """The logarithm of the normal distribution: ``log(erfcx(-x / sqrt 2) / 2) - x^2 / 2`` where x is small."""
    part = rb.scale_by(b, x, math.sqrt(0.5))
    tail = b.add(ops.Log(), rb.scale_by(b, b.add(ops.ErfcScaled(), b.add(ops.Negate(), part)), 0.5))
    far = rb.subtract(b, tail, rb.multiply(b, part, part))
    near = b.add(ops.LogPlusOne(), rb.scale_by(b, b.add(ops.Erfc(), part), -0.5))
    return rb.select(b, rb.compare(b, "LT", x, rb.splat_like(b, NEAR, x)), far, near)


def hypot(b: GraphBuilder, x: int, y: int) -> int:
    """``sqrt(x x + y y)`` as ``m sqrt(1 + (n / m)^2)``, m being the larger size; infinite beside NaN too."""
    sizes = [b.add(ops.Abs(), p) for p in (x, y)]
    m, n = (rb.binary(b, op, *sizes) for op in (ops.Maximum(), ops.Minimum()))
    part = rb.divide(b, n, m)
    length = rb.multiply(b, m, b.add(ops.Sqrt(), rb.shift_by(b, rb.multiply(b, part, part), 1.0)))
    alike = rb.compare(b, "EQ", m, n)  # both may be zero, or infinite
    length = rb.select(b, alike, rb.scale_by(b, m, math.sqrt(2)), length)
    infinity = rb.splat_like(b, math.inf, m)
    for size in sizes:
        length = rb.select(b, rb.compare(b, "EQ", size, infinity), infinity, length)
    return length


def is_negative(b: GraphBuilder, x: int) -> int:
    """Whether a number is below zero, or the zero whose inverse is."""
    inverse = rb.divide(b, rb.splat_like(b, 1.0, x), x)
    return rb.select(
        b, compared_with(b, "EQ", x, 0.0), compared_with(b, "LT", inverse, 0.0), compared_with(b, "LT", x, 0.0)
    )


def copysign(b: GraphBuilder, x: int, y: int) -> int:
    """The size of one number with the sign of another one."""
    size = b.add(ops.Abs(), x)
    return rb.select(b, is_negative(b, y), b.add(ops.Negate(), size), size)


FUNCTIONS: dict[str, Function] = {
    "cosh": cosh,
    "sinh": sinh,
    "tan": tan,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "log2": logarithm(2),
    "log10": logarithm(10),
    "atan": atan,
    "asin": asin,
    "acos": acos,
    "i0": _bessel(ops.BesselI0e),
    "i1": _bessel(ops.BesselI1e),
    "log_ndtr": log_ndtr,
}
"""Functions of one number by the names that mathematical libraries have for them."""
