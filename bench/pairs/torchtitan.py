"""torchtitan's decoders against Transformers': weights go through torchtitan's adapters, which permute them for rotary.

Attention is torchtitan's own FlexAttention, with the mask that it makes of positions: causal, and within documents.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from torch import nn

from bench.pairs import reference
from bench.pairs.reference import Pair
from zoo.transformers_models import quiet, transformers_module

_flex: Any = importlib.import_module("torch.nn.attention.flex_attention")
_THETA = {"rope_parameters": {"rope_type": "default", "rope_theta": 9000.0}}
PAIRS: dict[str, tuple[Mapping[str, Any], ...]] = {
    "llama3": ({"rms_norm_eps": 1e-4}, _THETA),
    "qwen3": ({"rms_norm_eps": 1e-4}, _THETA),
}
"""By family what is changed of the configuration of Transformers."""
_LAYERS = 2
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


class Trained(nn.Module):
    """A decoder of torchtitan as a function from tokens (sequences, positions) to logits."""

    def __init__(self, model: nn.Module, tokens: torch.Tensor) -> None:
        super().__init__()
        self.model = model
        untyped: Any = model
        self.positions = torch.arange(tokens.shape[1]).expand(tokens.shape)
        with torch.compiler.set_stance("force_eager"):
            self.masks = untyped.get_attention_masks(self.positions)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        with ExitStack() as stack:
            # Nothing is compiled here, and FlexAttention says that it has to be.
            stack.enter_context(mock.patch.object(_flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True))
            for module in self.model.modules():
                if hasattr(module, "_precompute_cache"):  # rotary tables, as they are when the model is made
                    stack.enter_context(mock.patch.dict(module._buffers, cache=module._precompute_cache()))
            return self.model(input_ids, positions=self.positions, attention_masks=self.masks)


def pair(name: str, changed: Mapping[str, Any] | None) -> Pair:
    """A model of Transformers with some fields of its configuration changed, and torchtitan's of one layer's size."""
    module = importlib.import_module(f"torchtitan.models.{name}")
    settings = getattr(module, f"{name}_configs")["debugmodel"](attn_backend="flex")
    settings.layers = settings.layers[:_LAYERS]
    model = settings.build()
    model.init_states(buffer_device=torch.device("cpu"))
    reference.fill(model)
    adapter = getattr(module, f"{name.capitalize()}StateDictAdapter")(settings, None)
    weights = adapter.to_hf(model.state_dict())
    attention = settings.layers[0].attention
    values = {
        "hidden_size": settings.dim,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": attention.n_heads,
        "num_key_value_heads": attention.n_kv_heads or attention.n_heads,
        "vocab_size": settings.vocab_size,
        "intermediate_size": len(weights["model.layers.0.mlp.gate_proj.weight"]),
        "rms_norm_eps": settings.norm.eps,
        "tie_word_embeddings": settings.enable_weight_tying,
        "head_dim": getattr(attention, "head_dim", None) or settings.dim // attention.n_heads,
        "rope_parameters": {"rope_theta": attention.rope.theta, **(_LLAMA3 if name == "llama3" else {})},
        "max_position_embeddings": 131072,
        **(changed or {}),
    }
    left = _loaded({"llama3": "Llama", "qwen3": "Qwen3"}[name], values, weights)
    tokens = reference.tokens()
    return reference.pair(reference.Logits(left), Trained(model.eval(), tokens), (tokens,))


def _loaded(stem: str, values: Mapping[str, Any], weights: Mapping[str, torch.Tensor]) -> nn.Module:
    with quiet():
        configuration = getattr(transformers_module(), f"{stem}Config")(**values)
        configuration._attn_implementation = "eager"
        model: nn.Module = getattr(transformers_module(), f"{stem}ForCausalLM")(configuration)
    missing, unknown = model.load_state_dict(dict(weights), strict=False)
    if unknown or [name for name in missing if name != "lm_head.weight"]:
        raise ValueError(f"weights do not fit: {missing} are missing, {unknown} are too many")
    return model.eval()
