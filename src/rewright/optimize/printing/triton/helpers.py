"""Scalar functions that Triton has not, or not with the accuracy of float32 near zero, as functions of a module."""

from __future__ import annotations

FUNCTIONS = {
    "tanh_": '''
@triton.jit
def tanh_(x):
    """1 - 2 / (exp(2 x) + 1); near zero, where that cancels, the series up to x^9."""
    s = x * x
    series = x * (1.0 + s * (-0.3333333333 + s * (0.1333333333 + s * (-0.0539682540 + s * 0.0218694885))))
    return tl.where(tl.abs(x) < 0.25, series, 1.0 - 2.0 / (tl.exp2(2.8853900817779268 * x) + 1.0))
''',
    "expm1_": '''
@triton.jit
def expm1_(x):
    """(u - 1) x / log u with u = exp(x), in which the error of u cancels (Kahan)."""
    u = tl.exp(x)
    near = (u != 1.0) & (tl.abs(x) < 1.0)
    return tl.where(u == 1.0, x, tl.where(near, (u - 1.0) * x / tl.log(tl.where(near, u, 2.0)), u - 1.0))
''',
    "log1p_": '''
@triton.jit
def log1p_(x):
    """x log u / (u - 1) with u = 1 + x, in which the error of u cancels (Kahan)."""
    u = 1.0 + x
    near = (u != 1.0) & (tl.abs(x) < 1.0)
    return tl.where(u == 1.0, x, tl.where(near, tl.log(u) * x / tl.where(near, u - 1.0, 1.0), tl.log(u)))
''',
    "round_": '''
@triton.jit
def round_(x):
    """The nearest whole number, the even one of two."""
    low = tl.floor(x)
    rest = x - low
    odd = low - 2.0 * tl.floor(0.5 * low)
    up = (rest > 0.5) | ((rest == 0.5) & (odd == 1.0))
    return tl.where(x == low, x, low + tl.where(up, 1.0, 0.0))
''',
    "power_": '''
@triton.jit
def power_(x, y):
    """2^(y log2 |x|), with the sign of x where y is odd, and no number for other powers of negative ones."""
    size = tl.exp2(y * tl.log2(tl.abs(x)))
    whole = tl.floor(y) == y
    odd = whole & (y - 2.0 * tl.floor(0.5 * y) == 1.0)
    signed = tl.where(odd, -size, tl.where(whole, size, float("nan")))
    return tl.where((y == 0.0) | (x == 1.0), 1.0, tl.where(x < 0.0, signed, size))
''',
}
"""Their text by their name."""


def needed(text: str) -> str:
    """The functions that a module uses, to be put before it."""
    return "".join(f"{source}\n" for name, source in FUNCTIONS.items() if f"{name}(" in text)
