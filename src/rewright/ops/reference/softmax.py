"""Softmax, its logarithm and the logarithm of the sum of exponentials, with their gradients."""

from __future__ import annotations

from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import building as rb


@dataclass(frozen=True, slots=True)
class Exponentials:
    """``exp(x - maximum)`` with the maximum and the sum over an axis, both kept with size one."""

    values: int
    maximum: int
    total: int


def exponentials(b: GraphBuilder, x: int, axis: int) -> Exponentials:
    """What softmax and log-softmax share; shifting by the maximum changes neither."""
    maximum = rb.reduce(b, "maximum", x, [axis], keep=True)
    values = b.add(ops.Exponential(), rb.subtract(b, x, maximum))
    return Exponentials(values, maximum, rb.reduce(b, "sum", values, [axis], keep=True))


def softmax(b: GraphBuilder, x: int, axis: int) -> int:
    """``exp(x) / sum(exp(x))`` along an axis, same shape; NaN where all elements are minus infinity."""
    with rb.scope(b, "softmax"):
        parts = exponentials(b, x, axis)
        return rb.divide(b, parts.values, parts.total)


def safe_softmax(b: GraphBuilder, x: int, axis: int) -> int:
    """Softmax that is zero where all elements along the axis are minus infinity."""
    with rb.scope(b, "softmax"):
        parts = exponentials(b, x, axis)
        empty = rb.compare(b, "EQ", parts.maximum, rb.splat_like(b, float("-inf"), parts.maximum))
        return rb.select(b, empty, rb.splat_like(b, 0.0, x), rb.divide(b, parts.values, parts.total))


def logsumexp(b: GraphBuilder, x: int, axis: int, keep: bool = False) -> int:
    """``maximum + log(sum(exp(x - maximum)))`` along an axis."""
    with rb.scope(b, "logsumexp"):
        parts = exponentials(b, x, axis)
        result = rb.add(b, parts.maximum, b.add(ops.Log(), parts.total))
        shape = list(b.type(result).shape)
        return result if keep else rb.reshape(b, result, [*shape[: axis % len(shape)], *shape[axis % len(shape) + 1 :]])


def log_softmax(b: GraphBuilder, x: int, axis: int) -> int:
    """``x - maximum - log(sum(exp(x - maximum)))`` along an axis, same shape."""
    with rb.scope(b, "log softmax"):
        parts = exponentials(b, x, axis)
        return rb.subtract(b, rb.subtract(b, x, parts.maximum), b.add(ops.Log(), parts.total))


def softmax_backward(b: GraphBuilder, gradient: int, output: int, axis: int) -> int:
    """The gradient of the input from those of the output: ``y * (g - sum(g * y))``."""
    with rb.scope(b, "softmax"):
        inner = rb.reduce(b, "sum", rb.multiply(b, gradient, output), [axis], keep=True)
        return rb.multiply(b, output, rb.subtract(b, gradient, inner))


def log_softmax_backward(b: GraphBuilder, gradient: int, output: int, axis: int) -> int:
    """The gradient of the input from those of the output: ``g - exp(y) * sum(g)``."""
    with rb.scope(b, "log softmax"):
        total = rb.reduce(b, "sum", gradient, [axis], keep=True)
        return rb.subtract(b, gradient, rb.multiply(b, b.add(ops.Exponential(), output), total))
