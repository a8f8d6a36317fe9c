"""Matrix products and convolutions by torch: oneDNN's and MKL's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as functional

from rewright import ops

Axes = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
_CONVOLUTIONS: dict[int, Callable[..., torch.Tensor]] = {
    1: functional.conv1d,
    2: functional.conv2d,
    3: functional.conv3d,
}


def multiply(op: ops.DotGeneral, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Sums of products over the contracting axes, as ``torch.matmul`` computes them in the operands' dtype."""
    first, second = _orders(op, left.ndim, right.ndim)
    free = op.free_axes(left.ndim, right.ndim)
    rows, columns, batch = _sizes(left, free[0]), _sizes(right, free[1]), _sizes(left, op.lhs_batch)
    depth = math.prod(_sizes(left, op.lhs_contracting))
    many = [math.prod(batch)] if batch else []
    x = left.permute(first).reshape([*many, math.prod(rows), depth])
    y = right.permute(second).reshape([*many, depth, math.prod(columns)])
    return _product(x, y).reshape([*batch, *rows, *columns])


@lru_cache(maxsize=4096)
def _orders(op: ops.DotGeneral, left: int, right: int) -> tuple[Axes, Axes]:
    rows, columns = op.free_axes(left, right)
    return (*op.lhs_batch, *rows, *op.lhs_contracting), (*op.rhs_batch, *op.rhs_contracting, *columns)


def _sizes(x: torch.Tensor, axes: Sequence[int]) -> list[int]:
    return [x.shape[axis] for axis in axes]


def _product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point() or not x.is_cuda:
        return torch.matmul(x, y)
    # cuBLAS has no integers, and floats would round them: products one by one, summed in the dtype, which wraps.
    return (x.unsqueeze(-1) * y.unsqueeze(-3)).sum(-2, dtype=x.dtype)


def convolve(op: ops.Convolution, x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor | None:
    """A convolution of floats over one to three axes; None for another one, which torch has not."""
    rank = x.ndim - 2
    if rank not in _CONVOLUTIONS or not x.is_floating_point() or 0 in (*x.shape, *kernel.shape):
        return None
    padding = [(int(str(low)), int(str(high))) for low, high in op.padding]
    x = _spread(x, op.lhs_dilation)
    if all(low == high for low, high in padding):
        around: Any = tuple(low for low, _ in padding)
    else:
        x = functional.pad(x, [side for pair in reversed(padding) for side in pair])
        around = 0
    return _CONVOLUTIONS[rank](x, kernel, None, op.strides, around, op.rhs_dilation, op.feature_groups)


def _spread(x: torch.Tensor, steps: Sequence[int]) -> torch.Tensor:
    """The tensor with zeros between its elements, so many steps apart."""
    if all(step == 1 for step in steps):
        return x
    sizes = [(size - 1) * step + 1 for size, step in zip(x.shape[2:], steps, strict=True)]
    found = x.new_zeros((*x.shape[:2], *sizes))
    found[(..., *(slice(None, None, step) for step in steps))] = x
    return found
