"""Sampling at points, and histograms, where an element or a point is on a bound."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch.nn import functional

import rewright as rw
from rewright.interp.program import run

BORDER = (-1.0, 1.0, 0.0, -0.5, 0.5, 1.25, -1.25, -3.0, 0.2)
"""Coordinates in the middle, on the border, on elements and outside."""


@pytest.mark.sample(5)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("is_aligned", [True, False])
@pytest.mark.parametrize("axes", [2, 3])
def test_gradients_of_points_on_the_border_are_those_of_pytorch(axes: int, is_aligned: bool, padding: str) -> None:
    """A point that is clipped has no gradient, one on the border itself included; ``clamp`` would give it one."""

    def sampled(x: torch.Tensor, grid: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x, grid = x.detach().requires_grad_(), grid.detach().requires_grad_()
        found = functional.grid_sample(x, grid, padding_mode=padding, align_corners=is_aligned)
        weights = torch.arange(found.numel(), dtype=x.dtype).reshape(found.shape)
        return found, *torch.autograd.grad((found * weights).sum(), (x, grid))

    points = torch.tensor(list(product(BORDER, BORDER[:5])), dtype=torch.float64)
    grid = torch.cat([points, points[:, :1].flip(0)], -1)[:, :axes].reshape(1, *(1,) * (axes - 1), -1, axes)
    x = torch.randn(1, 2, *(3, 2, 5)[3 - axes :], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    graph = rw.capture(sampled, (x, grid))
    found = run(graph, dict(zip(graph.inputs, (x.numpy(), grid.numpy()), strict=True)))
    for wanted, value in zip(sampled(x, grid), found.values(), strict=True):
        np.testing.assert_allclose(value, wanted.detach().numpy(), atol=1e-9)


def test_elements_on_the_bounds_of_intervals_are_counted_as_by_pytorch() -> None:
    def counted(x: torch.Tensor) -> torch.Tensor:
        return torch.histc(x, bins=10, min=0, max=1)

    x = torch.arange(-2, 14, dtype=torch.float64) / 10
    graph = rw.capture(counted, (x,))
    (found,) = run(graph, {name: x.numpy() for name in graph.inputs}).values()
    assert found.tolist() == counted(x).tolist()
