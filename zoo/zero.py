"""ZeRO-1 by hand: every rank has all parameters, the optimizer state of its rows, and updates these.

Gradients are averaged by ``reduce_scatter``, AdamW works on the own rows, ``all_gather`` brings the parameters of the
others. The state is a mapping from parameter name to tensors that is named as ``torch.optim.AdamW`` names its own.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed
from torch import nn

dist: Any = torch.distributed  # most of it is not annotated
State = dict[str, dict[str, torch.Tensor]]


def fresh_state(model: nn.Module, parts: int) -> State:
    """State for one of so many ranks, its parameters' rows divided evenly."""
    return {
        name: {
            "step": torch.zeros(()),
            "exp_avg": torch.zeros(parameter.shape[0] // parts, *parameter.shape[1:]),
            "exp_avg_sq": torch.zeros(parameter.shape[0] // parts, *parameter.shape[1:]),
        }
        for name, parameter in model.named_parameters()
    }


@torch.no_grad()
def own_rows_step(model: nn.Module, state: State, *, lr: float = 0.1, decay: float = 0.01) -> None:
    """AdamW on the rows of this rank; gradients are those of this rank's part of the batch. One device has all rows."""
    if not dist.is_initialized():
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            adamw_(parameter, parameter.grad, state[name], lr, decay)
        model.zero_grad()
        return
    rank, size = dist.get_rank(), dist.get_world_size()
    for name, parameter in model.named_parameters():
        rows = parameter.shape[0] // size
        assert parameter.grad is not None
        gradient = torch.empty_like(parameter[:rows])
        dist.reduce_scatter_tensor(gradient, parameter.grad, op=dist.ReduceOp.AVG)
        own = parameter[rank * rows : (rank + 1) * rows].clone()
        adamw_(own, gradient, state[name], lr, decay)
        dist.all_gather_into_tensor(parameter, own)
    model.zero_grad()


def adamw_(
    x: torch.Tensor, gradient: torch.Tensor, state: dict[str, torch.Tensor], lr: float, decay: float
) -> torch.Tensor:
    """One step of AdamW in place, with the usual betas and epsilon."""
    step = state["step"].add_(1)
    first = state["exp_avg"].lerp_(gradient, 1 - 0.9)
    second = state["exp_avg_sq"].mul_(0.999).addcmul_(gradient, gradient, value=1 - 0.999)
    x.mul_(1 - lr * decay)
    scale = lr / (1 - 0.9**step)
    return x.sub_(scale * first / (second.sqrt() / (1 - 0.999**step).sqrt() + 1e-8))
