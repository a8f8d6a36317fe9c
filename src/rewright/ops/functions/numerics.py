"""Special functions that numpy does not have, in double precision, of every element and in the dtype of the operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)
LARGE = 25.0
"""From here on an asymptotic series has more digits than a double."""
FAR = 20.0
"""From here on Bessel functions are taken from their asymptotic series."""
SHIFT = 10.0
"""Gamma functions are taken from their asymptotic series at this argument or above."""
MOST_STEPS = 10_000
"""So many times an argument is moved by one at most."""
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def error_function(values: Array) -> Array:
    """The error function."""
    return np.asarray(_erf(values)).astype(values.dtype)


def error_function_complement(values: Array) -> Array:
    """One less the error function, with the digits of that difference."""
    return np.asarray(_erfc(values)).astype(values.dtype)


def _in_double(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def applied(values: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(np.asarray(values, np.float64))).astype(values.dtype)

    applied.__doc__ = function.__doc__
    return applied


@_in_double
def scaled_error_function_complement(x: Array) -> Array:
    """``exp(x^2) erfc(x)``, which is about ``1 / (x sqrt(pi))`` where x is large."""
    near = np.exp(x * x) * np.asarray(_erfc(x)).astype(np.float64)
    half = 1 / (2 * x * x)
    far = (1 - half * (1 - 3 * half * (1 - 5 * half * (1 - 7 * half)))) / (x * math.sqrt(math.pi))
    return np.where(x > LARGE, far, near)


@_in_double
def inverse_error_function(y: Array) -> Array:
    """The inverse of the error function: an estimate (S. Winitzki, 2008) and steps of Halley's method."""
    size = np.abs(y)
    log = np.log1p(-size * size)
    part = 2 / (math.pi * 0.147) + log / 2
    x = np.sqrt(np.sqrt(part * part - log / 0.147) - part)
    for _ in range(8):
        excess = np.where(size < 0.5, np.asarray(_erf(x)) - size, (1 - size) - np.asarray(_erfc(x))).astype(np.float64)
        step = excess / (2 / math.sqrt(math.pi) * np.exp(-x * x))
        x = x - step / (1 + x * step)
    found = np.where(size < 1, np.copysign(x, y), np.where(size == 1, np.copysign(np.inf, y), np.nan))
    return np.where(y == 0, y, found)


def _log_gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):  # a pole, or too large
        return math.inf


_lgamma = np.frompyfunc(_log_gamma, 1, 1)


def log_gamma(values: Array) -> Array:
    """The logarithm of the size of the gamma function; infinite at its poles."""
    return np.asarray(_lgamma(values.astype(np.float64))).astype(values.dtype)


@_in_double
def digamma(x: Array) -> Array:
    """The derivative of the logarithm of the gamma function, by reflection, recurrence and Stirling's series."""
    below = x < 0
    a = np.where(below, 1 - x, x)
    total = np.zeros_like(a)
    for _ in range(int(SHIFT)):
        small = a < SHIFT
        total = total - np.where(small, 1 / a, 0.0)
        a = np.where(small, a + 1, a)
    square = 1 / (a * a)
    series = np.zeros_like(a)
    for k, number in reversed(list(enumerate(BERNOULLI, 1))):
        series = square * (number / (2 * k) + series)
    found = total + np.log(a) - 0.5 / a - series
    turned = x - np.rint(x)
    found = np.where(below, found - math.pi / np.tan(math.pi * turned), found)
    found = np.where(below & (turned == 0), np.nan, found)
    return np.where(x == 0, -np.copysign(np.inf, x), found)


def _bessel(order: int) -> Callable[[Array], Array]:
    def scaled(x: Array) -> Array:
        a = np.abs(x)
        near, far = np.minimum(a, FAR), np.maximum(a, FAR)
        term = (near / 2) ** order
        total = term
        for k in range(1, 60):
            term = term * (near * near / 4) / (k * (k + order))
            total = total + term
        part = np.ones_like(a)
        series = part
        for k in range(1, 26):
            part = part * -((4 * order**2 - (2 * k - 1) ** 2) / (8 * k)) / far
            series = series + part
        found = np.where(a <= FAR, np.exp(-near) * total, series / np.sqrt(2 * math.pi * far))
        return np.where(np.isnan(x), x, np.copysign(found, x) if order % 2 else found)

    return _in_double(scaled)


bessel_i0e = _bessel(0)
bessel_i1e = _bessel(1)


def hurwitz_zeta(s: Array, q: Array) -> Array:
    """The sum of ``(q + k)^-s`` over k from 0 on: the first terms, and Euler's and Maclaurin's formula for the rest."""
    kind = s.dtype
    with np.errstate(all="ignore"):
        s, a = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(q, np.float64))
        whole = a == np.floor(a)
        pole = (s == 1) | ((s > 1) & (a <= 0) & whole)
        undefined = ~pole & (~(s > 1) | ~((a > 0) | (s == np.floor(s))) | ~(a > -MOST_STEPS))
        total = np.zeros_like(a)
        for _ in range(MOST_STEPS + int(SHIFT)):
            small = (a < SHIFT) & ~undefined & ~pole
            if not small.any():
                break
            total = total + np.where(small, a**-s, 0.0)
            a = np.where(small, a + 1, a)
        total = total + a ** (1 - s) / (s - 1) + a**-s / 2
        factor = s * a ** (-s - 1)
        for k, number in enumerate(BERNOULLI, 1):
            total = total + factor * number / math.factorial(2 * k)
            factor = factor * (s + 2 * k - 1) * (s + 2 * k) / (a * a)
        return np.where(undefined, np.nan, np.where(pole, np.inf, total)).astype(kind)
