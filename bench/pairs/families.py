"""Families of decoders that several packages implement: a class of Transformers, and the values of a configuration.

A family is data alone. Windows, the original context length of scaled rotary embeddings and the like are shorter than
the sequence of :data:`SEQUENCE` tokens, so that a model that ignores them computes something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

BATCH, SEQUENCE = 2, 12
SETTINGS = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "TORCH_COMPILE_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}
"""What these packages ask the environment for: to be quiet, and to fetch nothing."""
_WINDOW = 5
_DECODER = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 64,
}
_EXPERTS = {"num_experts_per_tok": 2}
_LATENT = {
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "moe_intermediate_size": 128,
    "kv_lora_rank": 32,
    "q_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 16,
    "v_head_dim": 16,
    "first_k_dense_replace": 1,
    **_EXPERTS,
}
"""Attention with a latent vector, one dense layer, and a mixture with a shared expert."""
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8,
}
_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 8}
_DEFAULT = {"rope_type": "default", "rope_theta": 10000.0}
_EPS = {"rms_norm_eps": 1e-4}
_WIDTHS = ("hidden_size", "n_embd", "word_embed_proj_dim")
_COUNTS = (
    *("num_attention_heads", "num_key_value_heads", "n_head", "intermediate_size", "ffn_dim", "moe_intermediate_size"),
    *("shared_expert_intermediate_size", "kv_lora_rank", "q_lora_rank"),
)
_THETA = {"rope_parameters": {**_DEFAULT, "rope_theta": 9000.0}}


@dataclass(frozen=True)
class Family:
    """A model class of Transformers, its configuration, and changes of it that compute something else."""

    stem: str
    """What the names of configuration and model begin with; ``configuration`` and ``suffix`` are the rest."""
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    mutants: tuple[Mapping[str, Any], ...] = (_EPS, _THETA)
    """Fields that are changed for the other package alone; each must be refuted."""
    common: Mapping[str, Any] = field(default_factory=lambda: _DECODER)
    suffix: str = "ForCausalLM"
    configuration: str = "Config"

    @property
    def model(self) -> str:
        """The class of the model."""
        return self.stem + self.suffix

    @property
    def values(self) -> dict[str, Any]:
        """All fields of the configuration that are given."""
        return {**self.common, **self.changes}

    def resized(self) -> Family:
        """Another model of the family: three times as wide, with half as many heads again, so that these are wider."""
        found = dict(self.values)
        for names, factor in ((_WIDTHS, 3.0), (_COUNTS, 1.5)):
            found.update({name: int(found[name] * factor) for name in names if name in found})
        return replace(self, changes=found)


_WIDER = {"sliding_window": _WINDOW + 1}
_NORM_EPS = {"layer_norm_eps": 1e-3}

FAMILIES: dict[str, Family] = {
    "llama": Family("Llama"),
    "llama, llama3 rotary": Family(
        "Llama",
        {"rope_parameters": _LLAMA3},
        (_EPS, {"rope_parameters": {**_LLAMA3, "factor": 4.0}}, {"rope_parameters": _DEFAULT}),
    ),
    "llama, yarn rotary": Family(
        "Llama", {"rope_parameters": _YARN}, (_EPS, {"rope_parameters": {**_YARN, "factor": 2.0}})
    ),
    "mistral": Family("Mistral", {"sliding_window": _WINDOW}, (_EPS, _WIDER)),
    "qwen2": Family("Qwen2"),
    "qwen3": Family("Qwen3", {"head_dim": 16}),
    "gemma": Family("Gemma", {"head_dim": 16}, (_EPS, _THETA, {"hidden_activation": "gelu"})),
    "gemma2": Family(
        "Gemma2",
        {"head_dim": 16, "sliding_window": _WINDOW, "query_pre_attn_scalar": 24},
        (_EPS, _WIDER, {"query_pre_attn_scalar": 16}, {"attn_logit_softcapping": 40.0}),
    ),
    "gemma3": Family(
        "Gemma3",
        {
            "head_dim": 16,
            "sliding_window": _WINDOW,
            "query_pre_attn_scalar": 24,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        (_EPS, _WIDER, {"query_pre_attn_scalar": 16}),
        configuration="TextConfig",
    ),
    "phi3": Family("Phi3", {"pad_token_id": 0}),
    "gpt2": Family(
        "GPT2",
        mutants=({"layer_norm_epsilon": 1e-3}, {"activation_function": "gelu"}),
        common={"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 128, "n_positions": 64},
        suffix="LMHeadModel",
    ),
    "opt": Family(
        "OPT",
        mutants=({"activation_function": "gelu"},),
        common={
            "hidden_size": 64,
            "ffn_dim": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 128,
            "max_position_embeddings": 64,
            "word_embed_proj_dim": 64,
        },
    ),
    "falcon": Family(
        "Falcon",
        mutants=({"layer_norm_epsilon": 1e-3}, _THETA),
        common={
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "vocab_size": 128,
            "alibi": False,
        },
    ),
    "bloom": Family(
        "Bloom",
        mutants=({"layer_norm_epsilon": 1e-3},),
        common={"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 128},
    ),
    "stablelm": Family("StableLm", mutants=(_NORM_EPS, _THETA)),
    "granite": Family(
        "Granite",
        {
            "embedding_multiplier": 3.0,
            "logits_scaling": 2.0,
            "residual_multiplier": 0.5,
            "attention_multiplier": 0.1,
        },
        (_EPS, {"logits_scaling": 4.0}, {"residual_multiplier": 0.25}),
    ),
    "glm4": Family("Glm4", {"head_dim": 16, "pad_token_id": 0}),
    "nemotron": Family("Nemotron", mutants=({"norm_eps": 1e-3}, _THETA)),
    "exaone4": Family("Exaone4", {"sliding_window": _WINDOW}, (_EPS, _WIDER)),
    "mixtral": Family("Mixtral", {"num_local_experts": 4, **_EXPERTS}),
    "qwen2_moe": Family(
        "Qwen2Moe",
        {"num_experts": 4, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 64, **_EXPERTS},
        (_EPS, {"norm_topk_prob": True}),
    ),
    "qwen3_moe": Family(
        "Qwen3Moe",
        {"head_dim": 16, "num_experts": 4, "moe_intermediate_size": 128, "norm_topk_prob": True, **_EXPERTS},
        (_EPS, {"norm_topk_prob": False}),
    ),
    "olmoe": Family("Olmoe", {"num_experts": 4, **_EXPERTS}, (_THETA, _EPS, {"norm_topk_prob": True})),
    "granitemoe": Family("GraniteMoe", {"num_local_experts": 4, **_EXPERTS}),
    "gpt_oss": Family(
        "GptOss",
        {
            "head_dim": 16,
            "num_local_experts": 4,
            "sliding_window": _WINDOW,
            "layer_types": ["sliding_attention", "full_attention"],
            **_EXPERTS,
        },
        (_EPS, _WIDER),
    ),
    "deepseek_v2": Family(
        "DeepseekV2",
        {
            **_LATENT,
            "n_group": 2,
            "topk_group": 1,
            "topk_method": "group_limited_greedy",
        },
        (_EPS, _THETA, {"routed_scaling_factor": 2.0}, {"topk_group": 2}),
    ),
    "deepseek_v2, greedy": Family(
        "DeepseekV2",
        {**_LATENT, "n_group": 1, "topk_group": 1, "topk_method": "greedy"},
        (_EPS, _THETA, {"routed_scaling_factor": 2.0}, {"n_group": 2}),
    ),
    "deepseek_v2, two of four groups": Family(
        "DeepseekV2",
        {
            **_LATENT,
            "n_routed_experts": 8,
            "num_experts_per_tok": 3,
            "n_group": 4,
            "topk_group": 2,
            "topk_method": "group_limited_greedy",
        },
        (_EPS, {"topk_group": 1}, {"topk_group": 3}),
    ),
}
