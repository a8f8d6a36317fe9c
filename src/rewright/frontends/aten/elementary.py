"""Elementary functions that are no operators of the vocabulary; see :mod:`rewright.ops.reference.elementary`."""

from __future__ import annotations

from collections.abc import Callable

from rewright import ops
from rewright.frontends.aten.context import Context, Operand, Table, Value
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.reference import building as rb
from rewright.ops.reference.elementary import FUNCTIONS, Function, compared_with, copysign, hypot, is_negative

TABLE = Table()
_SPECIAL = ("i1", "log_ndtr")
"""Functions that ATen has among its special ones."""


def _unary(function: Function) -> Callable[[Context, Value], int]:
    def lower(c: Context, x: Value) -> int:
        (position,) = c.positions(x)
        return function(c.b, position)

    return lower


for _name, _function in FUNCTIONS.items():
    TABLE.register(f"aten.{'special_' if _name in _SPECIAL else ''}{_name}.default")(_unary(_function))


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
def hypot_(c: Context, x: Operand, y: Operand) -> int:
    return c.spread(hypot(c.b, *c.positions(x, y)))


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
        return compared_with(c.b, "LT", x.position, 0)
    return is_negative(c.b, x.position)


@TABLE.register("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign_(c: Context, x: Operand, y: Operand) -> int:
    left, right = c.positions(x, y)
    shape = c.b.type(rb.binary(c.b, ops.Add(), left, right)).shape
    return c.spread(copysign(c.b, *(rb.broadcast(c.b, p, shape) for p in (left, right))))


@TABLE.register("aten.rrelu.default")
def rrelu(
    c: Context, x: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: object = None
) -> int:
    """A leaky rectifier with the mean of the slopes that training draws from."""
    if training:
        raise UnsupportedOperator("rrelu draws random slopes in training; call model.eval()")
    (position,) = c.positions(x)
    below = rb.scale_by(c.b, position, (lower + upper) / 2)
    return c.spread(rb.select(c.b, compared_with(c.b, "GE", position, 0.0), position, below))


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
