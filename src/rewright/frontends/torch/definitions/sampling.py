"""Sampling of planes and volumes at points."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch

from rewright.frontends.torch.definitions.table import KNOWN, Definitions
from rewright.ir.errors import UnsupportedOperator

DEFINITIONS = Definitions()
_CUBIC = 2
"""The interpolation of the sixteen elements around a point of a plane; it clips their places, not the point."""


def _reflect(place: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """A place thrown back at both ends."""
    if low == high:
        return torch.zeros_like(place)
    span = high - low
    away = (place - low).abs()
    turns = torch.floor(away / span)
    rest = away - turns * span
    return torch.where(turns % 2 == 0, rest + low, high - rest)


def _place(grid: torch.Tensor, size: int, padding_mode: int, align_corners: bool) -> torch.Tensor:
    """Where a coordinate from -1 to 1 is on an axis."""
    place = (grid + 1) / 2 * (size - 1) if align_corners else ((grid + 1) * size - 1) / 2
    if padding_mode == 2:
        ends = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        place = _reflect(place, *ends)
    return _clip(place, size - 1) if padding_mode else place


def _clip(place: torch.Tensor, last: int) -> torch.Tensor:
    """A place kept on the axis, NaN at its start; unlike that of ``clamp``, the derivative is zero at both ends."""
    return torch.where((place > 0) & (place < last), place, place.detach().nan_to_num(0.0).clamp(0, last))


@DEFINITIONS.define("grid_sampler_2d.default", "grid_sampler_3d.default")
def grid_sampler(
    x: torch.Tensor, grid: torch.Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> torch.Tensor:
    """The elements of a plane at points (x, y), or of a volume at (x, y, z), or means of those around each.

    Points outside read zeros, or the border, or are reflected at it.
    """
    if interpolation_mode == _CUBIC:
        return KNOWN[torch.ops.aten.grid_sampler_2d.default](x, grid, _CUBIC, padding_mode, align_corners)
    sizes = x.shape[:1:-1]
    places = [_place(grid[..., axis], size, padding_mode, align_corners) for axis, size in enumerate(sizes)]
    if interpolation_mode == 1:
        return _read(x, [place.round() for place in places])
    corners = [place.floor() for place in places]
    total: torch.Tensor | None = None
    for steps in itertools.product((0, 1), repeat=len(sizes)):
        weight = torch.ones_like(places[0])
        for place, corner, step in zip(places, corners, steps, strict=True):
            weight = weight * (place - corner if step else corner + 1 - place)
        at = [corner + step for corner, step in zip(corners, steps, strict=True)]
        part = _read(x, at) * weight.unsqueeze(1)
        total = part if total is None else total + part
    assert total is not None
    return total


def _read(x: torch.Tensor, places: list[torch.Tensor]) -> torch.Tensor:
    sizes = x.shape[:1:-1]
    inside = torch.ones_like(places[0], dtype=torch.bool)
    indices: list[torch.Tensor] = []
    for place, size in zip(places, sizes, strict=True):
        inside = inside & (place >= 0) & (place <= size - 1)
        indices.append(place.clamp(0, size - 1).long())
    batch = torch.arange(x.shape[0], device=x.device).reshape(-1, *(1 for _ in sizes))
    found = x.movedim(1, -1)[(batch, *reversed(indices))]
    return torch.where(inside.unsqueeze(1), found.movedim(-1, 1), 0.0)


def _interpolate(target: Any) -> Callable[..., torch.Tensor]:
    def forward(x: torch.Tensor, *rest: Any) -> torch.Tensor:
        """PyTorch's decomposition; of bytes its kernel computes with weights that it rounds to integers."""
        if x.dtype is torch.uint8:
            raise UnsupportedOperator("interpolation of bytes rounds its weights; convert the tensor to floats")
        return KNOWN[target](x, *rest)

    return forward


for _name in ("upsample_bilinear2d", "upsample_bicubic2d"):
    for _overload in ("default", "vec"):
        DEFINITIONS.define(f"{_name}.{_overload}")(_interpolate(getattr(getattr(torch.ops.aten, _name), _overload)))
