"""Small models of Transformers, with values, captured with a given attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import rewright as rw
from rewright.ir.graph import Graph
from rewright.zoo.transformers_models import quiet, transformers_module

SMALL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 61,
    "max_position_embeddings": 64,
}


def built(family: str, attention: str, **values: Any) -> nn.Module:
    transformers = transformers_module()
    with quiet():
        configuration = getattr(transformers, f"{family}Config")(**{**SMALL, **values})
        configuration._attn_implementation = attention
        configuration.use_cache = False
        model: nn.Module = getattr(transformers, f"{family}ForCausalLM")(configuration)
    return model.eval()


def captured(model: nn.Module, sequence: int = 12) -> Graph:
    return rw.capture(model, (torch.zeros(2, sequence, dtype=torch.long),))
