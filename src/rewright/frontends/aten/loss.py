"""ATen losses."""

from __future__ import annotations

from rewright.frontends.aten.context import Context, Table, Value
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.reference import building as rb
from rewright.ops.reference import loss as reference
from rewright.ops.reference import softmax
from rewright.ops.reference.loss import Reduction

TABLE = Table()
_REDUCTIONS: tuple[Reduction, ...] = ("none", "mean", "sum")


@TABLE.register("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss_forward(
    c: Context, scores: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int
) -> tuple[int, int]:
    kind = _REDUCTIONS[reduction]
    return reference.nll_loss(c.b, scores.position, target.position, c.optional(weight), kind, ignore_index)


@TABLE.register("aten.nll_loss_nd.default", "aten.nll_loss.default")
def nll_loss(
    c: Context, scores: Value, target: Value, weight: Value | None = None, reduction: int = 1, ignore_index: int = -100
) -> int:
    return nll_loss_forward(c, scores, target, weight, reduction, ignore_index)[0]


@TABLE.register("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default")
def nll_loss_backward(
    c: Context,
    gradient: Value,
    scores: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: int,
    total_weight: Value,
) -> int:
    return reference.nll_loss_backward(
        c.b,
        gradient.position,
        scores.position,
        target.position,
        c.optional(weight),
        _REDUCTIONS[reduction],
        ignore_index,
        total_weight.position,
    )


@TABLE.register("aten.cross_entropy_loss.default")
def cross_entropy_loss(
    c: Context,
    scores: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> int:
    if label_smoothing or target.dtype.is_float:
        raise UnsupportedOperator("cross entropy with label smoothing or probabilities; write it with log_softmax")
    logarithms = softmax.log_softmax(c.b, scores.position, min(1, scores.rank - 1))
    kind = _REDUCTIONS[reduction]
    return reference.nll_loss(c.b, logarithms, target.position, c.optional(weight), kind, ignore_index)[0]


def _fold(c: Context, values: int, reduction: int) -> int:
    axes = range(c.b.type(values).rank)
    if reduction == 0:
        return values
    return rb.mean(c.b, values, axes) if reduction == 1 else rb.reduce(c.b, "sum", values, axes)


@TABLE.register("aten.mse_loss.default")
def mse_loss(c: Context, x: Value, target: Value, reduction: int = 1) -> int:
    difference = rb.subtract(c.b, *c.positions(x, target))
    return _fold(c, rb.multiply(c.b, difference, difference), reduction)


@TABLE.register("aten.mse_loss_backward.default")
def mse_loss_backward(c: Context, gradient: Value, x: Value, target: Value, reduction: int) -> int:
    difference = rb.scale_by(c.b, rb.subtract(c.b, *c.positions(x, target)), 2)
    if reduction == 1:
        difference = rb.divide(c.b, difference, rb.count(c.b, difference, range(c.b.type(difference).rank)))
    return rb.multiply(c.b, difference, gradient.position)
