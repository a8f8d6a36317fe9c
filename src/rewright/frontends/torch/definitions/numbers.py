"""Functions of single numbers and products that have no operator of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rewright.frontends.torch.definitions.table import KNOWN, Definitions, broadcast_pair, common_shape

DEFINITIONS = Definitions()
_aten: Any = torch.ops.aten


@DEFINITIONS.define("addbmm.default")
def addbmm(
    x: torch.Tensor, first: torch.Tensor, second: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    """The sum of the products of many pairs of matrices, added to one; factors of integers are cut off to integers."""
    if not x.dtype.is_floating_point and not x.dtype.is_complex:
        alpha, beta = int(alpha), int(beta)
    product = alpha * torch.bmm(first, second).sum(0, dtype=x.dtype)
    return product.expand(common_shape(x.shape, product.shape)) if beta == 0 else beta * x + product


@DEFINITIONS.define("_trilinear.default")
def trilinear(
    x: torch.Tensor,
    y: torch.Tensor,
    z: torch.Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> torch.Tensor:
    """A product of three tensors with new axes, summed over some."""
    spread: list[torch.Tensor] = []
    for operand, places in ((x, expand1), (y, expand2), (z, expand3)):
        for place in sorted(places):
            operand = operand.unsqueeze(place)
        spread.append(operand)
    product = spread[0] * spread[1] * spread[2]
    return product.sum(list(sumdim)) if sumdim else product


@DEFINITIONS.define("linspace.Tensor_Tensor", "linspace.Tensor_Scalar", "linspace.Scalar_Tensor")
def linspace(
    start: torch.Tensor | float, end: torch.Tensor | float, steps: int, *, dtype: torch.dtype | None = None, **_: Any
) -> torch.Tensor:
    """Numbers at equal distances between two, which are first cut off to integers where integers are asked for."""
    if dtype is not None and not dtype.is_floating_point and not dtype.is_complex:
        start, end = (x.to(torch.int64) if isinstance(x, torch.Tensor) else int(x) for x in (start, end))
    device = next(x.device for x in (start, end) if isinstance(x, torch.Tensor))
    ends = [x if isinstance(x, torch.Tensor) else torch.full((), x, device=device) for x in (start, end)]
    return KNOWN[_aten.linspace.Tensor_Tensor](*ends, steps, dtype=dtype or torch.get_default_dtype(), device=device)


def _bits(dtype: torch.dtype) -> int:
    return torch.iinfo(dtype).bits


@DEFINITIONS.define("bitwise_left_shift.Tensor", "__lshift__.Tensor")
def left_shift(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """A product with a power of two, which is zero where that has more bits than the type."""
    dtype = torch.result_type(x, places)
    x, places = x.to(dtype), places.to(dtype)
    fits = (places >= 0) & (places < _bits(dtype))
    return torch.where(fits, x * torch.pow(2, torch.where(fits, places, 0)), 0)


@DEFINITIONS.define("bitwise_right_shift.Tensor", "__rshift__.Tensor")
def right_shift(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """A quotient by a power of two, towards minus infinity."""
    dtype = torch.result_type(x, places)
    x, places = x.to(dtype), places.to(dtype)
    most = _bits(dtype) - (1 if dtype.is_signed else 0)
    fits = (places >= 0) & (places < most)
    divisor = torch.pow(2, torch.where(fits, places, 0))
    return torch.where(fits, torch.div(x, divisor, rounding_mode="floor"), torch.where(x < 0, -1, 0).to(dtype))


@DEFINITIONS.define("gcd.default")
def gcd(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The greatest common divisor, by as many remainders as any two numbers of the type need."""
    dtype = torch.result_type(x, y)
    a, b = broadcast_pair(x.to(dtype).abs(), y.to(dtype).abs())
    for _ in range(math.ceil(_bits(dtype) * math.log(2) / math.log((1 + math.sqrt(5)) / 2)) + 1):
        more = b != 0
        a, b = torch.where(more, b, a), torch.where(more, torch.fmod(a, torch.where(more, b, 1)), 0)
    return a


@DEFINITIONS.define("lcm.default")
def lcm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The least common multiple; zero where both are."""
    divisor = gcd(x, y)
    part = torch.div(x, torch.where(divisor == 0, 1, divisor), rounding_mode="trunc")
    return torch.where(divisor == 0, 0, (part * y).abs())


@DEFINITIONS.define("frexp.Tensor")
def frexp(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A number from a half to one, and the power of two that it was divided by."""
    plain = torch.isfinite(x) & (x != 0)
    size = torch.where(plain, x.abs(), 0.5)
    exponent = size.log2().floor() + 1
    part = size / torch.pow(2.0, exponent)
    exponent = exponent + (part >= 1).to(x.dtype) - (part < 0.5).to(x.dtype)
    part = x / torch.pow(2.0, exponent)
    return torch.where(plain, part, x), torch.where(plain, exponent, 0).to(torch.int32)


@DEFINITIONS.define("special_ndtri.default")
def ndtri(x: torch.Tensor) -> torch.Tensor:
    """The number below which a standard normal variable is with the given probability."""
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return math.sqrt(2) * torch.erfinv(2 * x - 1)


@DEFINITIONS.define("special_spherical_bessel_j0.default")
def spherical_bessel_j0(x: torch.Tensor) -> torch.Tensor:
    """``sin(x) / x``, one at zero, and zero at both infinities."""
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    plain = torch.isfinite(x) & (x != 0)
    part = torch.where(plain, x, 1.0)
    other = torch.where(torch.isinf(x), 0.0, torch.where(x == 0, 1.0, x))
    return torch.where(plain, part.sin() / part, other)


@DEFINITIONS.define("special_modified_bessel_i0.default")
def modified_bessel_i0(x: torch.Tensor) -> torch.Tensor:
    """The same function under another name."""
    return _aten.i0.default(x)


@DEFINITIONS.define("special_modified_bessel_i1.default")
def modified_bessel_i1(x: torch.Tensor) -> torch.Tensor:
    """The same function under another name."""
    return _aten.special_i1.default(x)


@DEFINITIONS.define("angle.default")
def angle(x: torch.Tensor) -> torch.Tensor:
    """The angle of a number in the complex plane: zero, or pi for one below zero."""
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return torch.where(torch.isnan(x), x, torch.where(x < 0, math.pi, 0.0))


def _chebyshev(kind: str, shift: bool) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """A polynomial by angles: ``x = cos(t)``, or ``cosh(t)`` beyond one, where sines and cosines are hyperbolic ones.

    At both ends, where it is a quotient of zeros, it is its limit.
    """

    def polynomial(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        dtype = torch.result_type(x, n)
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
        x, n = broadcast_pair(x.to(dtype), n.to(dtype).trunc())
        x = 2 * x - 1 if shift else x
        odd = torch.fmod(n, 2) != 0
        near = x.abs() < 1
        inside, beyond = torch.where(near, x, 0.0), torch.where(near, 2.0, x.abs().clamp(min=1))
        value = torch.where(near, _by_angle(kind, n, inside), _by_hyperbola(kind, n, beyond, x < 0))
        value = torch.where(x == 1, _at_one(kind, n), torch.where(x == -1, _at_minus_one(kind, n, odd), value))
        return torch.where(n < 0, 0.0, value)

    return polynomial


def _by_angle(kind: str, n: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    t = x.acos()
    if kind == "t":
        return (n * t).cos()
    if kind == "u":
        return ((n + 1) * t).sin() / t.sin()
    return ((n + 0.5) * t).cos() / (t / 2).cos() if kind == "v" else ((n + 0.5) * t).sin() / (t / 2).sin()


def _by_hyperbola(kind: str, n: torch.Tensor, size: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    """Of negative numbers an odd polynomial changes its sign, and the third kind becomes the fourth one."""
    t = size.acosh()
    t = torch.where(t == 0, 1.0, t)
    sign = torch.where(below & (torch.fmod(n, 2) != 0), -1.0, 1.0)
    if kind == "t":
        return sign * (n * t).cosh()
    if kind == "u":
        return sign * ((n + 1) * t).sinh() / t.sinh()
    third = ((n + 0.5) * t).cosh() / (t / 2).cosh()
    fourth = ((n + 0.5) * t).sinh() / (t / 2).sinh()
    return sign * (torch.where(below, fourth, third) if kind == "v" else torch.where(below, third, fourth))


def _at_one(kind: str, n: torch.Tensor) -> torch.Tensor:
    if kind in ("t", "v"):
        return torch.ones_like(n)
    return n + 1 if kind == "u" else 2 * n + 1


def _at_minus_one(kind: str, n: torch.Tensor, odd: torch.Tensor) -> torch.Tensor:
    size = {"t": torch.ones_like(n), "u": n + 1, "v": 2 * n + 1, "w": torch.ones_like(n)}[kind]
    return torch.where(odd, -size, size)


for _kind in "tuvw":
    DEFINITIONS.define(f"special_chebyshev_polynomial_{_kind}.default")(_chebyshev(_kind, shift=False))
    DEFINITIONS.define(f"special_shifted_chebyshev_polynomial_{_kind}.default")(_chebyshev(_kind, shift=True))
