"""Activation functions and their gradients."""

from __future__ import annotations

import math

from rewright import ops
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import building as rb

_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715


def silu(b: GraphBuilder, x: int) -> int:
    """``x * logistic(x)``."""
    with rb.scope(b, "silu"):
        return rb.multiply(b, x, b.add(ops.Logistic(), x))


def silu_backward(b: GraphBuilder, gradient: int, x: int) -> int:
    """``g * s * (1 + x * (1 - s))`` with s the logistic function of x."""
    with rb.scope(b, "silu"):
        gate = b.add(ops.Logistic(), x)
        one = rb.splat_like(b, 1.0, x)
        slope = rb.add(b, one, rb.multiply(b, x, rb.subtract(b, one, gate)))
        return rb.multiply(b, rb.multiply(b, gradient, gate), slope)


def gelu(b: GraphBuilder, x: int, approximate: str = "none") -> int:
    """``x * Phi(x)`` with the normal distribution's Phi, or its approximation by tanh."""
    with rb.scope(b, "gelu"):
        half = rb.scale_by(b, x, 0.5)
        inner = _tanh_part(b, x) if approximate == "tanh" else _erf_part(b, x)
        return rb.multiply(b, half, rb.shift_by(b, inner, 1.0))


def gelu_backward(b: GraphBuilder, gradient: int, x: int, approximate: str = "none") -> int:
    """The gradient of the input."""
    with rb.scope(b, "gelu"):
        slope = _tanh_slope(b, x) if approximate == "tanh" else _erf_slope(b, x)
        return rb.multiply(b, gradient, slope)


def _erf_part(b: GraphBuilder, x: int) -> int:
    return b.add(ops.Erf(), rb.scale_by(b, x, math.sqrt(0.5)))


def _tanh_part(b: GraphBuilder, x: int) -> int:
    cubic = rb.scale_by(b, rb.power(b, x, 3), _TANH_CUBIC)
    return b.add(ops.Tanh(), rb.scale_by(b, rb.add(b, x, cubic), _TANH_SCALE))


def _erf_slope(b: GraphBuilder, x: int) -> int:
    """``Phi(x) + x * phi(x)``."""
    phi = rb.scale_by(b, rb.shift_by(b, _erf_part(b, x), 1.0), 0.5)
    density = b.add(ops.Exponential(), rb.scale_by(b, rb.multiply(b, x, x), -0.5))
    return rb.add(b, phi, rb.multiply(b, x, rb.scale_by(b, density, 1 / math.sqrt(2 * math.pi))))


def _tanh_slope(b: GraphBuilder, x: int) -> int:
    """``0.5 (1 + t) + 0.5 x (1 - t^2) * scale * (1 + 3 cubic x^2)``."""
    t = _tanh_part(b, x)
    left = rb.scale_by(b, rb.shift_by(b, t, 1.0), 0.5)
    steep = rb.subtract(b, rb.splat_like(b, 1.0, x), rb.multiply(b, t, t))
    inner = rb.shift_by(b, rb.scale_by(b, rb.multiply(b, x, x), 3 * _TANH_CUBIC), 1.0)
    right = rb.multiply(b, rb.scale_by(b, x, 0.5), rb.multiply(b, steep, rb.scale_by(b, inner, _TANH_SCALE)))
    return rb.add(b, left, right)


def softplus(b: GraphBuilder, x: int, beta: float, threshold: float) -> int:
    """``log(1 + exp(beta x)) / beta``, and x itself above ``threshold / beta``."""
    with rb.scope(b, "softplus"):
        steep = rb.scale_by(b, x, beta)
        curved = b.add(ops.LogPlusOne(), b.add(ops.Exponential(), steep))
        curved = rb.divide(b, curved, rb.splat_like(b, beta, x))
        return rb.select(b, rb.compare(b, "GT", steep, rb.splat_like(b, threshold, x)), x, curved)


def softplus_backward(b: GraphBuilder, gradient: int, x: int, beta: float, threshold: float) -> int:
    """``g * logistic(beta x)``, and g itself above ``threshold / beta``."""
    with rb.scope(b, "softplus"):
        steep = rb.scale_by(b, x, beta)
        curved = rb.multiply(b, gradient, b.add(ops.Logistic(), steep))
        return rb.select(b, rb.compare(b, "GT", steep, rb.splat_like(b, threshold, x)), gradient, curved)


def log_sigmoid(b: GraphBuilder, x: int) -> int:
    """``-log(1 + exp(-x))``, shifted by the larger exponent so that no exponential overflows."""
    with rb.scope(b, "log_sigmoid"):
        zero, opposite = rb.splat_like(b, 0.0, x), b.add(ops.Negate(), x)
        largest = b.add(ops.Maximum(), zero, opposite)
        shifted = [b.add(ops.Exponential(), rb.subtract(b, one, largest)) for one in (zero, opposite)]
        total = rb.add(b, largest, b.add(ops.Log(), rb.add(b, *shifted)))
        return b.add(ops.Negate(), total)


def log_sigmoid_backward(b: GraphBuilder, gradient: int, x: int) -> int:
    """``g * logistic(-x)``."""
    with rb.scope(b, "log_sigmoid"):
        return rb.multiply(b, gradient, b.add(ops.Logistic(), b.add(ops.Negate(), x)))
