"""Small models of Transformers, with values, captured with a given attention."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import nn

import rewright as rw
from rewright.ir.graph import Graph
from zoo.experts import dense_experts
from zoo.transformers_models import quiet, transformers_module

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 61,
    "max_position_embeddings": 64,
}


def built(family: str, attention: str, *, experts: str | None = None, **values: Any) -> nn.Module:
    """A small model; ``experts`` says how a mixture computes them: ``"dense"`` in one product, or ``"each"``."""
    transformers = transformers_module()
    with quiet():
        configuration = getattr(transformers, f"{family}Config")(**{**SMALL, **values})
        configuration._attn_implementation = attention
        configuration.use_cache = False
        if experts is not None:
            functions = importlib.import_module("transformers.integrations.moe").ALL_EXPERTS_FUNCTIONS
            functions.register(f"test_{experts}", {"dense": dense_experts, "each": each_expert}[experts])
            configuration._experts_implementation = f"test_{experts}"
        model: nn.Module = getattr(transformers, f"{family}ForCausalLM")(configuration)
    return model.eval()


def each_expert(
    module: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
) -> torch.Tensor:
    """One expert after the other on all tokens; shapes as for :func:`zoo.experts.dense_experts`."""
    total = torch.zeros_like(hidden_states)
    for expert in range(module.num_experts):
        share = torch.where(top_k_index == expert, top_k_weights, 0).sum(-1, keepdim=True)
        both = hidden_states @ module.gate_up_proj[expert].T
        gate, up = both[:, : both.shape[1] // 2], both[:, both.shape[1] // 2 :]
        total = total + share * ((module.act_fn(gate) * up) @ module.down_proj[expert].T)
    return total


class Padded(nn.Module):
    """A model with the mask that says which tokens are padding, on either side."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


class Decoding(nn.Module):
    """A prompt, and after it steps of one token that read what the earlier ones left in the cache."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, prompt: torch.Tensor, steps: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = [self.model(input_ids=prompt, use_cache=True)]
        for k in range(steps.shape[1]):
            cache = found[-1].past_key_values
            found.append(self.model(input_ids=steps[:, k : k + 1], past_key_values=cache, use_cache=True))
        return tuple(step.logits for step in found)


def captured(model: nn.Module, sequence: int = 12) -> Graph:
    return rw.capture(model, (torch.zeros(2, sequence, dtype=torch.long),))
