"""Layer, group and root-mean-square normalisation with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import building as rb


@dataclass(frozen=True, slots=True)
class Normalized:
    """The result with the mean and the reciprocal standard deviation, both kept with size one on folded axes."""

    result: int
    mean: int
    rstd: int


def standardize(b: GraphBuilder, x: int, axes: Sequence[int], eps: float) -> Normalized:
    """``(x - mean) / sqrt(variance + eps)`` over some axes; the variance is the biased one."""
    mean = rb.mean(b, x, axes, keep=True)
    centered = rb.subtract(b, x, mean)
    variance = rb.mean(b, rb.multiply(b, centered, centered), axes, keep=True)
    rstd = b.add(ops.Rsqrt(), rb.shift_by(b, variance, eps))
    return Normalized(rb.multiply(b, centered, rstd), mean, rstd)


def variance(b: GraphBuilder, x: int, axes: Sequence[int], correction: float, keep: bool = False) -> int:
    """Sum of squared deviations over some axes divided by their number minus ``correction``."""
    mean = rb.mean(b, x, axes, keep=True)
    centered = rb.subtract(b, x, mean)
    total = rb.reduce(b, "sum", rb.multiply(b, centered, centered), axes, keep)
    return rb.divide(b, total, rb.count(b, x, axes, less=correction))


def layer_norm(b: GraphBuilder, x: int, rank: int, weight: int | None, bias: int | None, eps: float) -> Normalized:
    """Normalisation over the last ``rank`` axes, then times ``weight`` plus ``bias`` (their shape)."""
    with rb.scope(b, "layer norm"):
        parts = standardize(b, x, _last(b, x, rank), eps)
        result = parts.result if weight is None else rb.multiply(b, parts.result, weight)
        return Normalized(result if bias is None else rb.add(b, result, bias), parts.mean, parts.rstd)


def layer_norm_backward(
    b: GraphBuilder, gradient: int, x: int, rank: int, mean: int, rstd: int, weight: int | None
) -> tuple[int, int, int]:
    """Gradients of input, weight and bias."""
    with rb.scope(b, "layer norm"):
        axes = _last(b, x, rank)
        outer = [axis for axis in range(b.type(x).rank) if axis not in axes]
        unit = rb.multiply(b, rb.subtract(b, x, mean), rstd)
        scaled = gradient if weight is None else rb.multiply(b, gradient, weight)
        result = standardized_backward(b, scaled, unit, rstd, axes)
        weights = rb.reduce(b, "sum", rb.multiply(b, gradient, unit), outer)
        return result, weights, rb.reduce(b, "sum", gradient, outer)


def standardized_backward(b: GraphBuilder, gradient: int, unit: int, rstd: int, axes: Sequence[int]) -> int:
    """Gradient through ``standardize``: ``rstd * (g - mean(g) - u * mean(g * u))``."""
    inner = rb.mean(b, rb.multiply(b, gradient, unit), axes, keep=True)
    centered = rb.subtract(b, gradient, rb.mean(b, gradient, axes, keep=True))
    return rb.multiply(b, rstd, rb.subtract(b, centered, rb.multiply(b, unit, inner)))


def rms_norm(b: GraphBuilder, x: int, rank: int, weight: int | None, eps: float) -> tuple[int, int]:
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last ``rank`` axes, and the reciprocal root."""
    with rb.scope(b, "rms norm"):
        square = rb.mean(b, rb.multiply(b, x, x), _last(b, x, rank), keep=True)
        rstd = b.add(ops.Rsqrt(), rb.shift_by(b, square, eps))
        unit = rb.multiply(b, x, rstd)
        return unit if weight is None else rb.multiply(b, unit, weight), rstd


def rms_norm_backward(
    b: GraphBuilder, gradient: int, x: int, rank: int, rstd: int, weight: int | None
) -> tuple[int, int]:
    """Gradients of input and weight."""
    with rb.scope(b, "rms norm"):
        axes = _last(b, x, rank)
        outer = [axis for axis in range(b.type(x).rank) if axis not in axes]
        unit = rb.multiply(b, x, rstd)
        scaled = gradient if weight is None else rb.multiply(b, gradient, weight)
        inner = rb.mean(b, rb.multiply(b, scaled, unit), axes, keep=True)
        result = rb.multiply(b, rstd, rb.subtract(b, scaled, rb.multiply(b, unit, inner)))
        return result, rb.reduce(b, "sum", rb.multiply(b, gradient, unit), outer)


def group_norm(
    b: GraphBuilder, x: int, groups: int, weight: int | None, bias: int | None, eps: float
) -> tuple[int, int, int]:
    """Normalisation of (N, C, ..) over each of ``groups`` runs of channels; result, mean and rstd (N, groups)."""
    with rb.scope(b, "group norm"):
        shape = b.type(x).shape
        grouped, axes = grouped_channels(b, x, groups)
        parts = standardize(b, grouped, axes, eps)
        result = rb.reshape(b, parts.result, shape)
        if weight is not None:
            result = rb.multiply(b, result, rb.broadcast_along(b, weight, shape, 1))
        if bias is not None:
            result = rb.add(b, result, rb.broadcast_along(b, bias, shape, 1))
        small = (shape[0], groups)
        return result, rb.reshape(b, parts.mean, small), rb.reshape(b, parts.rstd, small)


def grouped_channels(b: GraphBuilder, x: int, groups: int) -> tuple[int, list[int]]:
    """(N, C, ..) as (N, groups, C / groups, ..), and the axes that belong to one group."""
    shape = b.type(x).shape
    channels = shape[1]
    assert isinstance(channels, int)
    grouped = rb.reshape(b, x, (shape[0], groups, channels // groups, *shape[2:]))
    return grouped, list(range(2, len(shape) + 1))


def group_norm_backward(
    b: GraphBuilder, gradient: int, x: int, mean: int, rstd: int, weight: int | None, groups: int
) -> tuple[int, int, int]:
    """Gradients of input, weight and bias."""
    with rb.scope(b, "group norm"):
        shape = b.type(x).shape
        grouped, axes = grouped_channels(b, x, groups)
        small = (shape[0], groups, *(1 for _ in axes))
        spread = rb.reshape(b, rstd, small)
        unit = rb.multiply(b, rb.subtract(b, grouped, rb.reshape(b, mean, small)), spread)
        scaled = gradient if weight is None else rb.multiply(b, gradient, rb.broadcast_along(b, weight, shape, 1))
        inner = standardized_backward(b, grouped_channels(b, scaled, groups)[0], unit, spread, axes)
        others = [axis for axis in range(len(shape)) if axis != 1]
        weights = rb.reduce(b, "sum", rb.multiply(b, gradient, rb.reshape(b, unit, shape)), others)
        return rb.reshape(b, inner, shape), weights, rb.reduce(b, "sum", gradient, others)


def _last(b: GraphBuilder, x: int, rank: int) -> list[int]:
    total = b.type(x).rank
    return list(range(total - rank, total))
