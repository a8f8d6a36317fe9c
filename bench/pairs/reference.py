"""The left side of every pair: a small model of Transformers with random values."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from bench.pairs.families import Family
from rewright.zoo.experts import dense_experts
from rewright.zoo.transformers_models import quiet, transformers_module

_SPREAD = 0.15


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
        made = getattr(transformers_module(), f"{family.stem}Config")(**{**family.values, **(changed or {})})
    made.architectures = [family.model]
    made._attn_implementation = "eager"
    functions = importlib.import_module("transformers.integrations.moe").ALL_EXPERTS_FUNCTIONS
    functions.register("every_expert", dense_experts)
    made._experts_implementation = "every_expert"
    return made


def built(family: Family, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A model of Transformers in evaluation mode; all parameters are random, so that none equals another."""
    with quiet():
        model: nn.Module = getattr(transformers_module(), family.model)(configuration(family))
    fill(model)
    return model.to(dtype).eval()


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
