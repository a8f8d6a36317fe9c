"""Inverse trigonometric, gamma, error and Bessel functions, by the few of them that are operators."""

from __future__ import annotations

import math
from collections.abc import Callable

from rewright import ops
from rewright.frontends.aten.context import Context, Operand, Table, Value
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import building as rb

TABLE = Table()
NEAR = -1.0
"""From here on ``log(erfc(x))`` is taken from the difference to one."""


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


def _bessel(scaled: Callable[[], ops.TensorOperator]) -> Callable[[GraphBuilder, int], int]:
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


def _lowering(function: Callable[[GraphBuilder, int], int]) -> Callable[[Context, Value], int]:
    def lower(c: Context, x: Value) -> int:
        (position,) = c.positions(x)
        return function(c.b, position)

    return lower


for _name, _function in {
    "atan": atan,
    "asin": asin,
    "acos": acos,
    "i0": _bessel(ops.BesselI0e),
    "special_i1": _bessel(ops.BesselI1e),
    "special_log_ndtr": log_ndtr,
}.items():
    TABLE.register(f"aten.{_name}.default")(_lowering(_function))


def _binary(c: Context, op: ops.TensorOperator, x: Operand, y: Operand) -> int:
    return c.spread(rb.binary(c.b, op, *c.positions(x, y)))


@TABLE.register("aten.atan2.default")
def atan2(c: Context, x: Operand, y: Operand) -> int:
    return _binary(c, ops.Atan2(), x, y)


@TABLE.register("aten.special_zeta.default", "aten.special_zeta.self_scalar", "aten.special_zeta.other_scalar")
def zeta(c: Context, x: Operand, y: Operand) -> int:
    return _binary(c, ops.Zeta(), x, y)


@TABLE.register("aten.polygamma.default")
def polygamma(c: Context, n: int, x: Value) -> int:
    """``(-1)^(n + 1) n! zeta(n + 1, x)``, and digamma for n = 0."""
    (position,) = c.positions(x)
    if n < 0:
        raise UnsupportedOperator(f"polygamma of order {n} is not defined; use an order of 0 or more")
    if n == 0:
        return c.b.add(ops.Digamma(), position)
    order = rb.splat_like(c.b, float(n + 1), position)
    return rb.scale_by(c.b, c.b.add(ops.Zeta(), order, position), math.factorial(n) * (1.0 if n % 2 else -1.0))


@TABLE.register("aten.mvlgamma.default")
def mvlgamma(c: Context, x: Value, p: int) -> int:
    """The sum of ``lgamma(x - i / 2)`` over i below p, and ``p (p - 1) / 4 log(pi)``."""
    (position,) = c.positions(x)
    total = rb.splat_like(c.b, p * (p - 1) / 4 * math.log(math.pi), position)
    for i in range(p):
        total = rb.add(c.b, total, c.b.add(ops.LogGamma(), rb.shift_by(c.b, position, -i / 2)))
    return total


@TABLE.register("aten.xlogy.Scalar_Self", "aten.xlogy.Scalar_Other")
def xlogy(c: Context, x: Operand, y: Operand) -> int:
    """``x log(y)``, zero where x is, and no number where y is none."""
    b = c.b
    left, right = c.positions(x, y)
    product = rb.binary(b, ops.Multiply(), left, b.add(ops.Log(), right))
    shape = b.type(product).shape
    left, right = (rb.broadcast(b, p, shape) for p in (left, right))
    found = rb.select(b, rb.compare(b, "EQ", left, rb.splat_like(b, 0.0, left)), rb.splat_like(b, 0.0, left), product)
    return c.spread(rb.select(b, rb.compare(b, "NE", right, right), right, found))
