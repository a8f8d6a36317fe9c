"""The dense path of a mixture of experts: every expert on every token, weighted by the router."""

from __future__ import annotations

from typing import Any

import torch


def dense_experts(
    module: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
) -> torch.Tensor:
    """What a loop over the chosen experts computes, as products of static shapes.

    ``hidden_states`` is (tokens, width), ``top_k_index`` and ``top_k_weights`` are (tokens, chosen); the module holds
    ``gate_up_proj`` (experts, 2 inner, width) and ``down_proj`` (experts, width, inner). Returns (tokens, width).
    """
    experts = torch.arange(module.num_experts, device=hidden_states.device)
    chosen = (top_k_index.unsqueeze(-1) == experts).to(top_k_weights.dtype)
    weights = (chosen * top_k_weights.unsqueeze(-1)).sum(1)
    every = hidden_states.unsqueeze(0).expand(module.num_experts, -1, -1)
    gate, up = torch.bmm(every, module.gate_up_proj.transpose(1, 2)).chunk(2, dim=-1)
    down = torch.bmm(module.act_fn(gate) * up, module.down_proj.transpose(1, 2))
    return (down * weights.transpose(0, 1).unsqueeze(-1)).sum(0)
