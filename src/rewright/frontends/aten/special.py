"""Gamma, zeta and angle functions, by the few of them that are operators."""

from __future__ import annotations

import math

from rewright import ops
from rewright.frontends.aten.context import Context, Operand, Table, Value
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.reference import building as rb

TABLE = Table()


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
