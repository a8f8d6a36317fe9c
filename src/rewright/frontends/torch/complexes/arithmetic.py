"""Arithmetic of complex tensors by their real and imaginary parts."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rewright.frontends.torch.complexes.tensor import COMPLEX, FUNCTIONS, Complex, join_parts, real_and_imaginary
from rewright.ir.errors import UnsupportedOperator

_aten: Any = torch.ops.aten
Part = torch.Tensor | float


def from_polar(size: torch.Tensor, angle: torch.Tensor) -> Complex:
    """The complex number of a size and an angle."""
    return join_parts(size * angle.cos(), size * angle.sin())


def cast_to_complex(x: torch.Tensor, **keywords: Any) -> Any:
    """A real tensor as a complex one where a cast asks for that."""
    dtype = keywords.get("dtype")
    if dtype is None or not dtype.is_complex or x.is_complex():
        return NotImplemented
    parts = {wide: narrow for narrow, wide in COMPLEX.items()}
    real = x.to(parts[dtype])
    return join_parts(real, torch.zeros_like(real))


def _pair(x: Any) -> tuple[Part, Part]:
    """Real and imaginary part of a complex or real tensor, or of a number."""
    if isinstance(x, Complex):
        return real_and_imaginary(x)
    if isinstance(x, complex):
        return x.real, x.imag
    return x, 0.0


def _is_real(x: Any) -> bool:
    return not isinstance(x, (Complex, complex))


def _spread(factor: Any) -> Any:
    """A real factor of both parts."""
    return factor.unsqueeze(-1) if isinstance(factor, torch.Tensor) else factor


def _join(real: Part, imaginary: Part, like: tuple[Part, ...]) -> Complex:
    """The parts of a result; one of them may be a number."""
    tensor = next(x for x in (real, imaginary, *like) if isinstance(x, torch.Tensor))
    full = [x if isinstance(x, torch.Tensor) else torch.full_like(tensor, x) for x in (real, imaginary)]
    return join_parts(full[0], full[1])


def _product(func: Any, x: Any, y: Any) -> Complex:
    if _is_real(x) or _is_real(y):
        scaled, factor = (x, y) if isinstance(x, Complex) else (y, x)
        return Complex(func(scaled.plain, _spread(factor)))
    (a, b), (c, d) = _pair(x), _pair(y)
    return _join(a * c - b * d, a * d + b * c, (a, c))


def _quotient(func: Any, x: Any, y: Any, **keywords: Any) -> Complex:
    if keywords.get("rounding_mode") is not None:
        raise UnsupportedOperator("a rounded quotient of complex numbers has no meaning")
    if _is_real(y):
        return Complex(func(x.plain, _spread(y)))
    (a, b), (c, d) = _pair(x), _pair(y)
    square = c * c + d * d
    return _join((a * c + b * d) / square, (b * c - a * d) / square, (a, c))


def _inverse(func: Any, x: Complex) -> Complex:
    return _quotient(func, 1.0 + 0.0j, x)


def _sum(func: Any, x: Any, y: Any, alpha: Any = 1) -> Complex:
    """A sum or difference; the second operand may have a factor."""
    if isinstance(alpha, complex):
        raise UnsupportedOperator("a sum with a complex factor; multiply before")
    (a, b), (c, d) = _pair(x), _pair(y)
    return _join(_add(func, a, c, alpha), _add(func, b, d, alpha), (a, b, c, d))


def _add(func: Any, a: Part, b: Part, alpha: float) -> Part:
    if isinstance(a, torch.Tensor):
        return func(a, b, alpha=alpha)
    signed = -alpha * b if func.overloadpacket is _aten.sub else alpha * b
    return signed + a


def _by_parts(func: Any, x: Complex) -> Complex:
    return x.with_parts(func(x.parts))


def _conjugate(func: Any, x: Complex) -> Complex:
    real, imaginary = real_and_imaginary(x)
    return join_parts(real, -imaginary)


def _shown_conjugated(func: Any, x: Complex) -> Complex:
    """The same memory, seen as conjugates."""
    return Complex(_aten.alias(x.parts), not x.conjugate)


def _real_parts(func: Any, x: Complex) -> torch.Tensor:
    return x.plain if x.conjugate else _aten.alias(x.parts)


def _copy(func: Any, x: Complex, source: Any, *_: Any) -> Complex:
    """What is written: complex numbers, or real ones."""
    if isinstance(source, Complex):
        return Complex(source.plain.to(x.parts.dtype).expand(x.parts.shape))
    real = source.to(x.parts.dtype).expand(x.shape)
    return join_parts(real, torch.zeros_like(real))


def _zero(func: Any, x: Complex) -> Complex:
    return Complex(torch.zeros_like(x.parts))


def _size(func: Any, x: Complex) -> torch.Tensor:
    return torch.hypot(*real_and_imaginary(x))


def _angle(func: Any, x: Complex) -> torch.Tensor:
    real, imaginary = real_and_imaginary(x)
    return torch.atan2(imaginary, real)


def _sign(func: Any, x: Complex) -> Complex:
    size = torch.hypot(*real_and_imaginary(x)).unsqueeze(-1)
    zero = size == 0
    return Complex(torch.where(zero, 0.0, x.plain / torch.where(zero, 1.0, size)))


def _exponential(func: Any, x: Complex) -> Complex:
    real, imaginary = real_and_imaginary(x)
    return from_polar(real.exp(), imaginary)


def _logarithm(func: Any, x: Complex) -> Complex:
    return join_parts(_size(func, x).log(), _angle(func, x))


def _matrix_product(func: Any, x: Complex, y: Complex) -> Complex:
    (a, b), (c, d) = real_and_imaginary(x), real_and_imaginary(y)
    return join_parts(func(a, c) - func(b, d), func(a, d) + func(b, c))


def _fold(func: Any, x: Complex, axes: int | Sequence[int] | None = None, keepdim: bool = False, **_: Any) -> Complex:
    every = list(range(x.dim())) if axes is None or axes == [] else [axes] if isinstance(axes, int) else list(axes)
    parts = [part if not every else func.overloadpacket(part, every, keepdim) for part in real_and_imaginary(x)]
    return join_parts(parts[0], parts[1])


def _select(func: Any, condition: torch.Tensor, x: Any, y: Any) -> Complex:
    parts = zip(_pair(x), _pair(y), strict=True)
    real, imaginary = (torch.where(condition, a, b) for a, b in parts)
    return join_parts(real, imaginary)


def _fill(func: Any, x: Complex, mask: torch.Tensor, value: Any) -> Complex:
    return _select(func, mask, value, x)


def _power(func: Any, x: Complex, exponent: Any) -> Complex:
    """A power by a whole number that is small, else by logarithm and exponential."""
    if isinstance(exponent, (int, float)) and 1 <= exponent <= 4 and exponent == int(exponent):
        found = x
        for _ in range(int(exponent) - 1):
            found = _product(_aten.mul.Tensor, found, x)
        return found
    return _exponential(func, _product(_aten.mul.Tensor, _logarithm(func, x), exponent))


def _root(func: Any, x: Complex) -> Complex:
    return from_polar(_size(func, x).sqrt(), _angle(func, x) / 2)


def _sine(turn: float) -> Callable[[Any, Complex], Complex]:
    def lower(func: Any, x: Complex) -> Complex:
        """``sin(a + i b) = sin(a) cosh(b) + i cos(a) sinh(b)``, and the cosine a quarter of a turn further."""
        real, imaginary = real_and_imaginary(x)
        if turn:
            return join_parts(real.cos() * imaginary.cosh(), -real.sin() * imaginary.sinh())
        return join_parts(real.sin() * imaginary.cosh(), real.cos() * imaginary.sinh())

    return lower


FUNCTIONS.update(
    {
        _aten.mul.Tensor: _product,
        _aten.mul.Scalar: _product,
        _aten.div.Tensor: _quotient,
        _aten.div.Scalar: _quotient,
        _aten.reciprocal: _inverse,
        _aten.add.Tensor: _sum,
        _aten.add.Scalar: _sum,
        _aten.sub.Tensor: _sum,
        _aten.sub.Scalar: _sum,
        _aten.neg: _by_parts,
        _aten._conj: _shown_conjugated,
        _aten.conj_physical: _conjugate,
        _aten._conj_physical: _conjugate,
        _aten.copy: _copy,
        _aten.zero: _zero,
        _aten.view_as_real: _real_parts,
        _aten.abs: _size,
        _aten.angle: _angle,
        _aten.sgn: _sign,
        _aten.exp: _exponential,
        _aten.log: _logarithm,
        _aten.sqrt: _root,
        _aten.sin: _sine(0.0),
        _aten.cos: _sine(cmath.pi / 2),
        _aten.pow.Tensor_Scalar: _power,
        _aten.mm: _matrix_product,
        _aten.bmm: _matrix_product,
        _aten.mv: _matrix_product,
        _aten.dot: _matrix_product,
        _aten.sum: _fold,
        _aten.mean: _fold,
        _aten.where.self: _select,
        _aten.masked_fill: _fill,
    }
)
