"""The negative log-likelihood loss with ignored targets, and its gradient."""

from __future__ import annotations

from typing import Literal

from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import TensorType
from rewright.ops.reference import building as rb
from rewright.ops.reference import indexing

Reduction = Literal["none", "mean", "sum"]


def nll_loss(
    b: GraphBuilder, scores: int, target: int, weight: int | None, reduction: Reduction, ignore: int
) -> tuple[int, int]:
    """``-weight[target] * scores[target]`` folded over all targets but ``ignore``, and the total weight.

    ``scores`` is (N, C) or (N, C, ..) with integer targets (N) or (N, ..).
    """
    with rb.scope(b, "cross entropy"):
        axis = min(1, b.type(scores).rank - 1)
        valid = rb.compare(b, "NE", target, rb.splat_like(b, ignore, target))
        safe = rb.select(b, valid, target, rb.splat_like(b, 0, target))
        picked = indexing.pick(b, scores, safe, axis)
        zero = rb.splat_like(b, 0.0, picked)
        weights = _weights(b, scores, safe, weight)
        weights = rb.select(b, valid, weights, zero)
        losses = rb.select(b, valid, b.add(ops.Negate(), picked), zero)
        if weight is not None:
            losses = rb.multiply(b, losses, weights)
        axes = range(b.type(picked).rank)
        total_weight = rb.reduce(b, "sum", weights, axes)
        if reduction == "none":
            return losses, rb.splat(b, 0.0, (), b.type(scores).dtype)
        total = rb.reduce(b, "sum", losses, axes)
        return (total if reduction == "sum" else rb.divide(b, total, total_weight)), total_weight


def nll_loss_backward(
    b: GraphBuilder,
    gradient: int,
    scores: int,
    target: int,
    weight: int | None,
    reduction: Reduction,
    ignore: int,
    total_weight: int,
) -> int:
    """The gradient of the scores: ``-weight[target] * g`` (over the total weight for a mean) at the targets."""
    with rb.scope(b, "cross entropy"):
        kind = b.type(scores)
        axis = min(1, kind.rank - 1)
        shared = rb.divide(b, gradient, total_weight) if reduction == "mean" else gradient
        valid = rb.compare(b, "NE", target, rb.splat_like(b, ignore, target))
        rows = rb.broadcast(b, b.add(ops.Negate(), shared), b.type(target).shape)
        if weight is not None:
            safe = rb.select(b, valid, target, rb.splat_like(b, 0, target))
            rows = rb.multiply(b, rows, _weights(b, scores, safe, weight))
        rows = rb.select(b, valid, rows, rb.splat_like(b, 0.0, rows))
        return one_hot_rows(b, rows, target, kind, axis)


def one_hot_rows(b: GraphBuilder, values: int, index: int, kind: TensorType, axis: int) -> int:
    """Zeros of a type with ``values`` at ``index`` along an axis; both lack that axis."""
    others = tuple(i for i in range(kind.rank) if i != axis)
    place = b.add(ops.BroadcastInDim(kind.shape, others), index)
    spread = b.add(ops.BroadcastInDim(kind.shape, others), values)
    ramp = rb.iota(b, kind.shape, axis, b.type(index).dtype)
    here = b.add(ops.Compare("EQ"), ramp, place)
    return b.add(ops.Select(), here, spread, rb.splat(b, 0, kind.shape, kind.dtype))


def _weights(b: GraphBuilder, scores: int, target: int, weight: int | None) -> int:
    """The weight of each target's class, or one."""
    if weight is not None:
        return indexing.take(b, weight, target, 0)
    return rb.splat(b, 1.0, b.type(target).shape, b.type(scores).dtype)
