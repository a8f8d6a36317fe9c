"""Model families with tiny and published shapes, as configuration values of Transformers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewright.ir.errors import CaptureError

Values = Mapping[str, Any]

LLAMA_SCALING = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@dataclass(frozen=True)
class Family:
    """One model class of Transformers; ``common`` values hold at every size."""

    name: str
    stem: str
    """What the names of its classes begin with."""
    common: Values
    sizes: Mapping[str, Values]
    task: str = "ForCausalLM"
    kind: str = "decoder"
    attention: str = "sdpa"

    @property
    def model(self) -> str:
        """The name of the class of the module."""
        return self.stem + self.task

    @property
    def configuration(self) -> str:
        """The name of the class of the configuration."""
        return self.stem + "Config"

    def values(self, size: str, degree: int) -> dict[str, Any]:
        """Configuration values of a size; ``tiny`` has as many heads as the degree of parallelism needs.

        Raises CaptureError for a size that the family does not have.
        """
        shape, layers = split_size(size)
        if shape != "tiny" and shape not in self.sizes:
            raise CaptureError(f"{self.name} has no size {shape!r}; the sizes are tiny, {', '.join(self.sizes)}")
        values = {**self.common, **(tiny(self.name, degree) if shape == "tiny" else self.sizes[shape])}
        if layers is not None:
            values["n_layer" if "n_layer" in values else "num_hidden_layers"] = layers
        return values

    def sequence(self, size: str, degree: int) -> int:
        """A sequence length that sequence parallelism of that degree can split."""
        shape, _ = split_size(size)
        longest = 16 if shape == "tiny" else int(self.sizes[shape].get("example_sequence", 8192))
        return math.ceil(longest / degree) * degree


def split_size(size: str) -> tuple[str, int | None]:
    """``405b/4`` is the shape ``405b`` with 4 layers; without a number the shape has its own count.

    Raises CaptureError for a count that is no positive number.
    """
    shape, slash, layers = size.partition("/")
    if not slash:
        return shape, None
    if not layers.isdecimal() or int(layers) < 1:
        raise CaptureError(f"{size!r} asks for {layers!r} layers; write a positive number, such as {shape}/4")
    return shape, int(layers)


def tiny(name: str, degree: int) -> dict[str, Any]:
    """Two layers with heads and widths that the degree divides; the vocabulary of 128 may split unevenly."""
    heads = 4 * degree // math.gcd(4, degree)
    shared = heads // 2 if heads // 2 % degree == 0 else heads
    width, inner = 8 * heads, 12 * heads
    if name == "gpt2":
        return {"vocab_size": 128, "n_embd": width, "n_layer": 2, "n_head": heads, "n_positions": 64, "n_inner": inner}
    if name in ("bert", "vit"):
        found: dict[str, Any] = {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": heads}
        found["intermediate_size"] = inner
        return found | ({"image_size": 16, "patch_size": 4} if name == "vit" else {"vocab_size": 128})
    more = {"mixtral": {"num_local_experts": 4}, "gemma2": {"sliding_window": 8, "query_pre_attn_scalar": 8}}
    return {
        **more.get(name, {}),
        "vocab_size": 128,
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": 2,
        "num_attention_heads": heads,
        "num_key_value_heads": shared,
        "head_dim": 8,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    }


def _decoder(hidden: int, inner: int, layers: int, heads: int, shared: int, vocabulary: int, **more: Any) -> Values:
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": shared,
        "vocab_size": vocabulary,
        **more,
    }


def _llama(hidden: int, inner: int, layers: int, heads: int) -> Values:
    return _decoder(
        hidden, inner, layers, heads, 8, 128256, max_position_embeddings=131072, rope_parameters=LLAMA_SCALING
    )


_UNTIED: Values = {"tie_word_embeddings": False}
_LARGE_ENCODER: Values = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
_NO_DROPOUT: Values = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}

_ALL = (
    Family(
        "llama",
        "Llama",
        _UNTIED,
        {
            "8b": _llama(4096, 14336, 32, 32),
            "70b": _llama(8192, 28672, 80, 64),
            "405b": _llama(16384, 53248, 126, 128),
        },
    ),
    Family(
        "qwen2",
        "Qwen2",
        _UNTIED,
        {
            "7b": _decoder(3584, 18944, 28, 28, 4, 152064, max_position_embeddings=32768),
            "72b": _decoder(8192, 29568, 80, 64, 8, 152064, max_position_embeddings=32768),
        },
    ),
    Family(
        "qwen3",
        "Qwen3",
        _UNTIED,
        {
            "8b": _decoder(4096, 12288, 36, 32, 8, 151936, head_dim=128, max_position_embeddings=40960),
            "32b": _decoder(5120, 25600, 64, 64, 8, 151936, head_dim=128, max_position_embeddings=40960),
        },
    ),
    Family(
        "gpt2",
        "GPT2",
        {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0},
        {
            "small": {"example_sequence": 1024},
            "xl": {"n_embd": 1600, "n_layer": 48, "n_head": 25, "example_sequence": 1024},
        },
        task="LMHeadModel",
    ),
    Family(
        "gemma2",
        "Gemma2",
        {},
        {
            "9b": _decoder(3584, 14336, 42, 16, 8, 256000, head_dim=256, query_pre_attn_scalar=256),
            "27b": _decoder(4608, 36864, 46, 32, 16, 256000, head_dim=128, query_pre_attn_scalar=144),
        },
        attention="eager",
    ),
    Family(
        "phi3",
        "Phi3",
        _UNTIED,
        {
            "mini": _decoder(3072, 8192, 32, 32, 32, 32064, example_sequence=4096),
            "medium": _decoder(5120, 17920, 40, 40, 10, 32064, example_sequence=4096),
        },
    ),
    Family(
        "mixtral",
        "Mixtral",
        {"num_experts_per_tok": 2, "output_router_logits": False, **_UNTIED},
        {
            "8x7b": _decoder(4096, 14336, 32, 32, 8, 32000, num_local_experts=8),
            "8x22b": _decoder(6144, 16384, 56, 48, 8, 32768, num_local_experts=8),
        },
    ),
    Family(
        "bert",
        "Bert",
        _NO_DROPOUT,
        {
            "base": {"example_sequence": 512},
            "large": {**_LARGE_ENCODER, "example_sequence": 512},
        },
        task="ForMaskedLM",
        kind="encoder",
    ),
    Family(
        "vit",
        "ViT",
        _NO_DROPOUT,
        {
            "base": {},
            "large": _LARGE_ENCODER,
        },
        task="ForImageClassification",
        kind="image",
    ),
)

FAMILIES: dict[str, Family] = {family.name: family for family in _ALL}
SIZES: dict[str, tuple[str, ...]] = {family.name: ("tiny", *family.sizes) for family in _ALL}


def family(name: str) -> Family:
    """The family of that name; raises CaptureError naming the ones there are."""
    if name not in FAMILIES:
        raise CaptureError(f"there is no model {name!r} in the zoo; the models are {', '.join(FAMILIES)} and decoder")
    return FAMILIES[name]
