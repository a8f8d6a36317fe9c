"""Whole models with one layer, of random weights, that ``bench.optimize`` takes the time of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Example = tuple[Callable[..., Any], tuple[Any, ...]]
SIZES = {
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 100,
}


def _language(name: str, **more: Any) -> Example:
    """A model that gives logits of tokens."""
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**{**SIZES, "use_cache": False, **more})
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()

    def logits(tokens: torch.Tensor) -> torch.Tensor:
        return model(tokens).logits

    return logits, (torch.arange(48).reshape(2, 24),)


def llama() -> Example:
    """Rotary positions and grouped heads."""
    return _language("Llama", num_key_value_heads=2)


def gemma2() -> Example:
    """Capped logits and a window."""
    return _language("Gemma2", num_key_value_heads=2, head_dim=16, sliding_window=8, attn_implementation="eager")


def mixtral() -> Example:
    """Experts."""
    return _language("Mixtral", num_key_value_heads=2, num_local_experts=4)


def starcoder2() -> Example:
    """Biases and a window."""
    return _language("Starcoder2", num_key_value_heads=2, sliding_window=8)


def qwen3_moe() -> Example:
    """More experts, and norms of queries and keys."""
    return _language(
        "Qwen3Moe", num_key_value_heads=2, head_dim=16, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32
    )


BLOCKS: dict[str, Callable[[], Example]] = {f.__name__: f for f in (llama, gemma2, mixtral, starcoder2, qwen3_moe)}
