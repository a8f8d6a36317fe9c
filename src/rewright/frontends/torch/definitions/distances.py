"""Distances between rows, and their gradients as PyTorch's kernels define them where a distance is zero."""

from __future__ import annotations

import math
from typing import Any

import torch

from rewright.frontends.torch.definitions.table import Definitions

DEFINITIONS = Definitions()
_aten: Any = torch.ops.aten


def _pairs(count: int) -> tuple[list[int], list[int]]:
    """The rows of all pairs of different rows."""
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def _norm(difference: torch.Tensor, p: float) -> torch.Tensor:
    return _aten.linalg_vector_norm.default(difference, p, [-1])


def _slope(gradient: torch.Tensor, difference: torch.Tensor, p: float, distance: torch.Tensor) -> torch.Tensor:
    """The gradient of the differences; zero where a distance is."""
    size, sign = difference.abs(), difference.sign()
    if p == 0:
        return torch.zeros_like(difference)
    if p == 1:
        return gradient * sign
    if p == math.inf:
        return torch.where(size == distance, gradient * sign, 0.0)
    none = distance == 0
    divisor = torch.where(none, 1.0, distance)
    if p == 2:
        return torch.where(none, 0.0, gradient * difference / divisor)
    if p < 2:
        none = none | ((difference == 0) & (p < 1))
        base = torch.where(none, 1.0, size)
        return torch.where(none, 0.0, sign * base.pow(p - 1) * gradient / divisor.pow(p - 1))
    return torch.where(none, 0.0, difference * size.pow(p - 2) * gradient / divisor.pow(p - 1))


@DEFINITIONS.define("_cdist_forward.default")
def cdist_forward(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None) -> torch.Tensor:
    """The distance of every row of one matrix to every row of another one."""
    return _norm(x.unsqueeze(-2) - y.unsqueeze(-3), p)


@DEFINITIONS.define("_cdist_backward.default")
def cdist_backward(
    gradient: torch.Tensor, x: torch.Tensor, y: torch.Tensor, p: float, distance: torch.Tensor
) -> torch.Tensor:
    """The gradient of the first matrix."""
    difference = x.unsqueeze(-2) - y.unsqueeze(-3)
    return _slope(gradient.unsqueeze(-1), difference, p, distance.unsqueeze(-1)).sum(-2)


@DEFINITIONS.define("_pdist_forward.default")
def pdist_forward(x: torch.Tensor, p: float = 2) -> torch.Tensor:
    """The distances of all pairs of rows."""
    first, second = _pairs(x.shape[0])
    if not first:
        return x.new_zeros((0,))
    i, j = (torch.tensor(rows, device=x.device) for rows in (first, second))
    return _norm(x[i] - x[j], p)


@DEFINITIONS.define("_pdist_backward.default")
def pdist_backward(gradient: torch.Tensor, x: torch.Tensor, p: float, distance: torch.Tensor) -> torch.Tensor:
    """The gradient of the rows."""
    first, second = _pairs(x.shape[0])
    if not first or not x.numel():
        return torch.zeros_like(x)
    i, j = (torch.tensor(rows, device=x.device) for rows in (first, second))
    slope = _slope(gradient.unsqueeze(-1), x[i] - x[j], p, distance.unsqueeze(-1))
    return torch.zeros_like(x).index_add(0, i, slope).index_add(0, j, -slope)
