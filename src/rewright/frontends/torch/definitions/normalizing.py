"""Batch normalisation that writes its running statistics."""

from __future__ import annotations

from typing import Any

import torch

from rewright.frontends.torch.definitions.table import Definitions

TRACED = Definitions()
_aten: Any = torch.ops.aten


@TRACED.define("_native_batch_norm_legit.default")
def native_batch_norm_legit(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    """What the functional form computes, and the running statistics written."""
    result, mean, rstd, new_mean, new_var = _aten._native_batch_norm_legit_functional.default(
        x, weight, bias, running_mean, running_var, training, momentum, eps
    )
    if training:
        running_mean.copy_(new_mean)
        running_var.copy_(new_var)
    return result, mean, rstd


@TRACED.define("_batch_norm_with_update.default")
def batch_norm_with_update(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    """In training; the last result is for the kernel of the gradient alone."""
    found = native_batch_norm_legit(x, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*found, x.new_zeros((0,), dtype=torch.uint8))
