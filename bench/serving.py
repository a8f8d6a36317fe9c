"""``make serving``: decoding a token with a cache against one pass, for Transformers' models and any length.

For each family the left program is a pass over all tokens, and the right one a pass over all but the last, and a step
with the cache that it leaves. Compared are the logits of the last token and what is in the cache afterwards. So what
is proved holds for any number of steps, with windows once these are full. Models are small and have two layers; their
code is as it is installed.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import torch
import transformers

import rewright as rw
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph

Tensor = torch.Tensor
SMALL = {
    "hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 20,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GROUPED = SMALL | {"num_key_value_heads": 2}
WINDOW = {"sliding_window": 4}
PARTIAL = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
MLA = {
    "num_key_value_heads": 4, "kv_lora_rank": 8, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4,
    "v_head_dim": 4, "first_k_dense_replace": 2, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
    "topk_group": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Family:
    """A configuration of Transformers, and what a row says of it."""

    config: str
    what: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    base: dict[str, Any] = field(default_factory=lambda: GROUPED)
    length: str = "S"
    attention: str = "sdpa"

    def build(self) -> Any:
        """A model with random numbers."""
        kind = getattr(transformers, f"{self.config}Config")
        config = kind(**self.base, **self.options, attn_implementation=self.attention)
        untyped: Any = transformers.AutoModelForCausalLM
        return untyped.from_config(config).eval()


FAMILIES = (
    Family("Llama", "grouped queries, rotary"),
    Family("Llama", "eager attention", attention="eager"),
    Family(
        "Llama",
        "rotary scaled as in Llama 3",
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 1e4,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            },
        },
    ),
    Family("Qwen2", "biases of queries, keys and values"),
    Family("Qwen3", "norms of queries and keys", {"head_dim": 8}),
    Family("Mistral", "no window", {"sliding_window": None}),
    Family("Mistral", "a window of keys", WINDOW, length="S+4"),
    Family("Gemma", "scaled embeddings", {"head_dim": 8}),
    Family(
        "Gemma2", "windows in every other layer, soft-caps", {"head_dim": 8} | WINDOW, length="S+4", attention="eager"
    ),
    Family("Gemma3Text", "windows, norms of queries and keys", {"head_dim": 8} | WINDOW, length="S+4"),
    Family("Olmo", "clipped norms"),
    Family("Olmo2", "norms behind the layers"),
    Family("Cohere", "parallel layers, turned pairs"),
    Family(
        "Cohere2",
        "windows, layers without positions",
        {"layer_types": ["sliding_attention", "full_attention"]} | WINDOW,
        length="S+4",
    ),
    Family("Granite", "multipliers"),
    Family("Starcoder2", "a window of keys", WINDOW, length="S+4"),
    Family("StableLm", "partial rotary", {"rope_parameters": PARTIAL}),
    Family("Phi", "parallel layers, partial rotary"),
    Family("Phi3", "fused projections"),
    Family("Nemotron", "squared rectifier"),
    Family("Glm", "partial rotary, turned pairs", {"head_dim": 8}),
    Family("SmolLM3", "layers without positions", {"no_rope_layers": [1, 0]}),
    Family(
        "Exaone4",
        "windows, norms behind the layers",
        WINDOW | {"layer_types": ["sliding_attention", "full_attention"]},
        length="S+4",
    ),
    Family("Arcee", "squared rectifier"),
    Family("Falcon", "multi-query", base=SMALL),
    Family(
        "GPTNeoX",
        "partial rotary",
        {"rope_parameters": PARTIAL},
        SMALL,
    ),
    Family("Bloom", "ALiBi", {"n_layer": 2, "n_head": 4}, {"hidden_size": 32, "vocab_size": 20}, attention="eager"),
    Family(
        "GPT2", "positions of a table", {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 64}, {"vocab_size": 20}
    ),
    Family("OPT", "positions counted by a mask", {"ffn_dim": 32, "word_embed_proj_dim": 32}, SMALL),
    Family("DeepseekV3", "latent attention, dense layers", MLA, SMALL),
    Family(
        "GptOss",
        "sinks, windows, experts",
        {"head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1} | WINDOW,
        length="S+4",
        attention="eager",
    ),
    Family("Mixtral", "experts", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    Family(
        "Qwen3Moe", "experts", {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
    ),
)


class Whole(torch.nn.Module):
    """The logits of the last token, and the cache, of one pass."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """One pass over all tokens."""
        cache = transformers.DynamicCache(config=self.model.config)
        logits = self.model(input_ids=ids, past_key_values=cache, use_cache=True).logits
        return logits[:, -1:], *_tensors(cache)


class Decoding(Whole):
    """The same with the last token by itself; ``late`` is by how much its position is wrong."""

    late = 0

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        """A pass over all but the last token, and a step."""
        cache = transformers.DynamicCache(config=self.model.config)
        self.model(input_ids=ids[:, :-1], past_key_values=cache, use_cache=True)
        place = torch.arange(1)[None] + cache.get_seq_length() + self.late if self.late else None
        logits = self.model(input_ids=ids[:, -1:], position_ids=place, past_key_values=cache, use_cache=True).logits
        return logits, *_tensors(cache)


def _tensors(cache: Any) -> Iterator[Tensor]:
    return (x for layer in cache.layers for x in (layer.keys, layer.values))


def programs(family: Family, late: int = 0) -> tuple[Graph, Graph]:
    """One pass, and a pass and a step."""
    model, ids = family.build(), torch.zeros(2, 8, dtype=torch.int64)
    step = Decoding(model)
    step.late = late
    dynamic = {"ids": {1: family.length}} if family.length else None
    left, right = (rw.capture(f, (ids,), dynamic=dynamic) for f in (Whole(model), step))
    return left, right


def row(family: Family, budget: float) -> str:
    """What the table says of a family."""
    started = time.process_time()
    try:
        found = rw.equiv(*programs(family), budget=budget, explain=False)
        text = found.status if found.status == "proved" else f"{found.status}: {found.reason[:90]}"
    except (RewrightError, TypeError, ValueError) as error:
        text = f"error: {str(error)[:90]}"
    seconds = time.process_time() - started
    return f"| {family.config} | {family.what} | {family.attention} | {text} | {seconds:.1f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of families' names")
    parser.add_argument("--budget", type=float, default=60, help="wall-clock seconds of a proof")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    print(f"transformers {metadata.version('transformers')}, torch {torch.__version__}; two layers, DynamicCache\n")
    print("| family | what it has | attention | any length | seconds of CPU |\n|---|---|---|---|---|")
    for family in FAMILIES:
        if not given.names or any(name in f"{family.config} {family.what}" for name in given.names):
            print(row(family, given.budget), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
