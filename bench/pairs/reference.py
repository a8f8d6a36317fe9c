"""The left side of every pair: a small model of Transformers with random values."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import rewright as rw
from bench.pairs.families import BATCH, SEQUENCE, Family
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from zoo.transformers_models import quiet, transformers_module

_SPREAD = 0.15


@dataclass(frozen=True)
class Pair:
    """Two captured programs with the values of their inputs, and how far their outputs were apart when they ran."""

    left: Graph
    right: Graph | RankProgram
    values: Any
    seconds: float
    difference: float | None = None


def pair(left: nn.Module, right: nn.Module, args: tuple[torch.Tensor, ...]) -> Pair:
    """Two modules over the same arguments, run once and captured."""
    with torch.no_grad():
        difference = float((left(*args) - right(*args)).abs().max())
    start = time.perf_counter()
    graphs = rw.capture(left, args), rw.capture(right, args)
    return Pair(*graphs, (values(left), values(right)), time.perf_counter() - start, difference)


class Logits(nn.Module):
    """A causal language model as a function from tokens to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, use_cache=False).logits


def configuration(family: Family, changed: Mapping[str, Any] | None = None) -> Any:
    """The configuration of a family, with some fields changed."""
    with quiet():
        made = getattr(transformers_module(), family.stem + family.configuration)(
            **{**family.values, **(changed or {})}
        )
    made.architectures = [family.model]
    made._attn_implementation = "eager"
    functions = importlib.import_module("transformers.integrations.moe").ALL_EXPERTS_FUNCTIONS
    functions.register("every_expert", every_expert)
    made._experts_implementation = "every_expert"
    return made


def every_expert(
    module: Any, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor
) -> torch.Tensor:
    """What a loop over the chosen experts computes: all of them on all tokens, weighted by the router.

    ``hidden_states`` is (tokens, width), ``top_k_index`` and ``top_k_weights`` are (tokens, chosen); the module says
    how its weights lie, whether they have biases, and how it gates.
    """
    numbers = torch.arange(module.num_experts)
    weights = torch.where(top_k_index.unsqueeze(-1) == numbers, top_k_weights.unsqueeze(-1), 0.0).sum(1)
    inner = _projected(module, "gate_up_proj", hidden_states.expand(module.num_experts, -1, -1))
    down = _projected(module, "down_proj", module._apply_gate(inner))
    return (down * weights.T.unsqueeze(-1)).sum(0)


def _projected(module: Any, name: str, x: torch.Tensor) -> torch.Tensor:
    """(experts, tokens, inputs) as (experts, tokens, outputs)."""
    weight: torch.Tensor = getattr(module, name)
    made = torch.bmm(x, weight if module.is_transposed else weight.transpose(1, 2))
    return made + getattr(module, f"{name}_bias").unsqueeze(1) if module.has_bias else made


def built(family: Family, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A model of Transformers in evaluation mode; all parameters are random, so that none equals another."""
    with quiet():
        model: nn.Module = getattr(transformers_module(), family.model)(configuration(family))
    fill(model)
    return model.to(dtype).eval()


def tokens() -> torch.Tensor:
    """Tokens (sequences, positions), the same each time."""
    return torch.randint(1, 128, (BATCH, SEQUENCE), generator=torch.Generator().manual_seed(0))


def fill(model: nn.Module) -> None:
    """Random values for every parameter, the same each time."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scales = "norm" in name.lower() and parameter.ndim == 1 and not name.endswith("bias")
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * _SPREAD + scales)


def values(module: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name."""
    return dict(module.named_parameters()) | dict(module.named_buffers())
