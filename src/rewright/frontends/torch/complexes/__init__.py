"""Complex tensors while a program is traced: real tensors with one more axis for the two parts.

``view_as_complex`` and ``view_as_real`` are no operators then, and a trace has real tensors only. What shares memory
goes on sharing it. Rotary embeddings and Fourier transforms are what this is for: operators that they do not need, and
writing into a complex tensor, are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rewright.frontends.torch.complexes import arithmetic, fourier, layouts
from rewright.frontends.torch.complexes.tensor import Complex, inner, join_parts, outer, parts

__all__ = ["decompositions", "inner", "layouts", "outer", "parts"]


def decompositions(*, opaque: bool = False) -> dict[Any, Callable[..., Any]]:
    """What makes complex tensors of real ones; not what may be left to PyTorch, where calls may be opaque."""
    aten: Any = torch.ops.aten
    found: dict[Any, Callable[..., Any]] = {
        aten.view_as_complex.default: Complex,
        aten.complex.default: join_parts,
        aten.polar.default: arithmetic.from_polar,
    }
    if opaque:
        return found
    return found | {
        aten._to_copy.default: arithmetic.cast_to_complex,
        aten._fft_r2c.default: fourier.real_to_complex,
    }
