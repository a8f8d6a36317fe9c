"""Discrete Fourier transforms as sums of products with turns, one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from rewright.frontends.torch.complexes.tensor import FUNCTIONS, Complex, join_parts, real_and_imaginary

_aten: Any = torch.ops.aten


def _turns(count: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of ``2 pi j k / n``."""
    ramp = torch.arange(count, device=like.device)
    angle = (ramp.unsqueeze(0) * ramp.unsqueeze(1) % count).to(like.dtype) * (2 * math.pi / count)
    return angle.cos(), angle.sin()


def _along(x: torch.Tensor, axis: int, matrix: torch.Tensor) -> torch.Tensor:
    """Sums of products along an axis with the columns of a matrix."""
    return (x.movedim(axis, -1) @ matrix).movedim(-1, axis)


def _transform(x: Complex, axis: int, forward: bool) -> Complex:
    real, imaginary = real_and_imaginary(x)
    cosine, sine = _turns(x.shape[axis], real)
    sine = -sine if forward else sine
    return join_parts(
        _along(real, axis, cosine) - _along(imaginary, axis, sine),
        _along(real, axis, sine) + _along(imaginary, axis, cosine),
    )


def _scale(sizes: Sequence[int], normalization: int) -> float:
    count = math.prod(sizes)
    return (1.0, 1 / math.sqrt(count), 1 / count)[normalization] if count else 1.0


def complex_to_complex(func: Any, x: Complex, dim: Sequence[int], normalization: int, forward: bool) -> Complex:
    """The transform over some axes."""
    factor = _scale([x.shape[axis] for axis in dim], normalization)
    for axis in dim:
        x = _transform(x, axis % x.dim(), forward)
    return Complex(x.plain * factor)


def real_to_complex(x: torch.Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Complex:
    """The transform of real numbers; of the last axis only the first half, where so asked."""
    *rest, last = [axis % x.dim() for axis in dim]
    factor = _scale([x.shape[axis] for axis in dim], normalization)
    cosine, sine = _turns(x.shape[last], x)
    if onesided:
        kept = x.shape[last] // 2 + 1
        cosine, sine = cosine[:, :kept], sine[:, :kept]
    found = join_parts(_along(x, last, cosine) * factor, _along(x, last, -sine) * factor)
    return complex_to_complex(None, found, rest, 0, True)


def complex_to_real(func: Any, x: Complex, dim: Sequence[int], normalization: int, last_dim_size: int) -> torch.Tensor:
    """The transform back to real numbers, of half of the last axis: the other half is the conjugate of that."""
    *rest, last = [axis % x.dim() for axis in dim]
    sizes = [*(x.shape[axis] for axis in rest), last_dim_size]
    real, imaginary = real_and_imaginary(complex_to_complex(None, x, rest, 0, False))
    cosine, sine = _turns(last_dim_size, real)
    kept = last_dim_size // 2 + 1
    real, imaginary = real.narrow(last, 0, kept), imaginary.narrow(last, 0, kept)
    ramp = torch.arange(kept, device=real.device)
    alone = (ramp == 0) | (2 * ramp == last_dim_size)
    weight = torch.where(alone, 1.0, 2.0).to(real.dtype).unsqueeze(1)
    inner = torch.where(alone, 0.0, 2.0).to(real.dtype).unsqueeze(1)  # what is its own conjugate is real
    found = _along(real, last, cosine[:kept] * weight) - _along(imaginary, last, sine[:kept] * inner)
    return found * _scale(sizes, normalization)


FUNCTIONS.update(
    {
        _aten._fft_c2c: complex_to_complex,
        _aten._fft_c2r: complex_to_real,
    }
)
