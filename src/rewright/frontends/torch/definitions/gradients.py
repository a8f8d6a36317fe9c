"""Gradients of resampling and padding, by differentiating PyTorch's decomposition, and those of margin losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rewright.frontends.torch.definitions.sampling import grid_sampler
from rewright.frontends.torch.definitions.table import KNOWN, Definitions

DEFINITIONS = Definitions()
TRACED = Definitions()
_aten: Any = torch.ops.aten


def transposed(
    forward: Callable[..., torch.Tensor], operands: Sequence[torch.Tensor], gradient: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """The gradients of the operands of a function that is written in operators with derivatives."""
    with torch.enable_grad():
        given = [x.detach().requires_grad_() for x in operands]
        result = forward(*given)
        untyped: Any = torch.autograd.grad(result, given, gradient, allow_unused=True)
        found: Sequence[torch.Tensor | None] = untyped
    return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(operands, found, strict=True))


def _resampling(forward: Any) -> Callable[..., torch.Tensor]:
    def backward(
        gradient: torch.Tensor, output_size: Sequence[int], input_size: Sequence[int], *rest: Any
    ) -> torch.Tensor:
        def resampled(x: torch.Tensor) -> torch.Tensor:
            return KNOWN[forward](x, output_size, *rest)

        return transposed(resampled, [gradient.new_zeros(input_size)], gradient)[0]

    return backward


for _name in (
    "upsample_nearest1d",
    "upsample_nearest2d",
    "upsample_nearest3d",
    "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d",
    "_upsample_nearest_exact3d",
    "upsample_linear1d",
    "upsample_bilinear2d",
    "upsample_trilinear3d",
    "upsample_bicubic2d",
):
    DEFINITIONS.define(f"{_name}_backward.default")(_resampling(getattr(_aten, _name).default))


def _padding(forward: Any) -> Callable[..., torch.Tensor]:
    def backward(gradient: torch.Tensor, x: torch.Tensor, padding: Sequence[int]) -> torch.Tensor:
        def padded(x: torch.Tensor) -> torch.Tensor:
            return KNOWN[forward](x, padding)

        return transposed(padded, [torch.zeros_like(x)], gradient)[0]

    return backward


for _name in ("replication_pad1d", "replication_pad2d", "replication_pad3d"):
    DEFINITIONS.define(f"{_name}_backward.default")(_padding(getattr(_aten, _name).default))


@DEFINITIONS.define("grid_sampler_2d_backward.default", "grid_sampler_3d_backward.default")
def grid_sampler_backward(
    gradient: torch.Tensor,
    x: torch.Tensor,
    grid: torch.Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of the elements and of the points; that of a point on the border is zero where it is clipped."""

    def forward(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return grid_sampler(x, grid, interpolation_mode, padding_mode, align_corners)

    first, second = transposed(forward, [x, grid], gradient)
    return first, second


@DEFINITIONS.define("softshrink_backward.default", "hardshrink_backward.default")
def shrink_backward(gradient: torch.Tensor, x: torch.Tensor, lambd: float) -> torch.Tensor:
    """Nothing where the function is zero."""
    return torch.where((x >= -lambd) & (x <= lambd), 0.0, gradient)


def _fold(values: torch.Tensor, reduction: int) -> torch.Tensor:
    if reduction == 0:
        return values
    return values.mean() if reduction == 1 else values.sum()


@TRACED.define("multilabel_margin_loss_forward.default")
def multilabel_margin_loss(
    x: torch.Tensor, target: torch.Tensor, reduction: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """By how much other classes come near those before the first negative one; and which classes these are."""
    gaps, is_target = _gaps(x, target)
    losses = gaps.sum((-2, -1)) / gaps.shape[-1]
    losses = losses if x.dim() > 1 else losses.reshape(())
    return _fold(losses, reduction), is_target.to(x.dtype).reshape(target.shape)


def _gaps(x: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """By target and class what the class lacks of a distance of one; and which classes are targets."""
    scores, targets = (part if part.dim() > 1 else part.reshape(1, -1) for part in (x, target))
    counts = (targets < 0).long().cumsum(-1) == 0
    places = torch.arange(scores.shape[-1], device=x.device)
    is_target = ((targets.unsqueeze(-1) == places) & counts.unsqueeze(-1)).any(-2)
    own = scores.gather(-1, targets.clamp(min=0))
    gaps = (1 - own.unsqueeze(-1) + scores.unsqueeze(-2)).clamp(min=0)
    counted = counts.unsqueeze(-1) & is_target.logical_not().unsqueeze(-2)
    return torch.where(counted, gaps, 0.0), is_target


def _score_gradient(gradient: torch.Tensor, slope: torch.Tensor, x: torch.Tensor, reduction: int) -> torch.Tensor:
    """The gradient of the scores of rows, by that of the reduced losses."""
    rows = gradient.reshape(-1, 1) if reduction == 0 else gradient
    count = slope.shape[0] * slope.shape[1] if reduction == 1 else slope.shape[1]
    return (rows * slope / count).reshape(x.shape)


@TRACED.define("multilabel_margin_loss_backward.default")
def multilabel_margin_loss_backward(
    gradient: torch.Tensor, x: torch.Tensor, target: torch.Tensor, reduction: int, is_target: torch.Tensor
) -> torch.Tensor:
    """The gradient of the scores: up for the others, down for the targets."""
    active = (_gaps(x, target)[0] > 0).to(x.dtype)
    targets = target.reshape(active.shape[:-1]).clamp(min=0)
    slope = active.sum(-2).scatter_add(-1, targets, -active.sum(-1))
    return _score_gradient(gradient, slope, x, reduction)


@TRACED.define("multi_margin_loss_backward.default")
def multi_margin_loss_backward(
    gradient: torch.Tensor,
    x: torch.Tensor,
    target: torch.Tensor,
    p: float,
    margin: float,
    weight: torch.Tensor | None = None,
    reduction: int = 1,
) -> torch.Tensor:
    """The gradient of the scores: up for the others, down for the target."""
    scores, targets = (x if x.dim() > 1 else x.reshape(1, -1)), target.reshape(-1, 1)
    places = torch.arange(scores.shape[-1], device=x.device)
    gaps = margin - scores.gather(-1, targets) + scores
    active = (gaps > 0) & (places != targets)
    slope = torch.where(active, 1.0 if p == 1 else 2 * gaps, 0.0).to(x.dtype)
    slope = slope if weight is None else slope * weight[targets]
    slope = slope.scatter_add(-1, targets, -slope.sum(-1, keepdim=True))
    return _score_gradient(gradient, slope, x, reduction)
