"""The dense path of a mixture of experts: every expert on every token, weighted by the router."""

from __future__ import annotations

from typing import Any

import torch


def dense_experts(
    module: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
) -> torch.Tensor:
    """What a loop over the chosen experts computes, as products of static shapes.

    ``hidden_states`` is (tokens, width), ``top_k_index`` and ``top_k_weights`` are (tokens, chosen); the module holds
    the weights of its experts as Transformers keeps them: ``gate_up_proj`` (experts, 2 inner, width), or ``up_proj``
    without a gate, and ``down_proj`` (experts, width, inner), with biases where it has some, and transposed where it
    says so. Returns (tokens, width).
    """
    experts = torch.arange(module.num_experts, device=hidden_states.device)
    chosen = (top_k_index.unsqueeze(-1) == experts).to(top_k_weights.dtype)
    weights = (chosen * top_k_weights.unsqueeze(-1)).sum(1)
    every = hidden_states.unsqueeze(0).expand(module.num_experts, -1, -1)
    up = _product(module, every, "gate_up_proj" if module.has_gate else "up_proj")
    down = _product(module, module._apply_gate(up) if module.has_gate else module.act_fn(up), "down_proj")
    if module.has_post_expert_norm:
        down = module.post_expert_norm(down)
    return (down * weights.transpose(0, 1).unsqueeze(-1)).sum(0)


def _product(module: Any, x: torch.Tensor, name: str) -> torch.Tensor:
    """(experts, tokens, in) times the weights of one projection of every expert, with its bias."""
    weight = getattr(module, name)
    product = torch.bmm(x, weight if module.is_transposed else weight.transpose(1, 2))
    return product + getattr(module, f"{name}_bias").unsqueeze(1) if module.has_bias else product
