"""litgpt's models, written independently, against those of Transformers: weights are matched by name."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra rewright[zoo]")
pytest.importorskip("litgpt", reason="litgpt is no dependency; make installs it")

import litgpt
import torch
from torch import nn

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.ir.graph import Graph
from tests.equiv.transformers_models import built, captured

SMALL = {
    "n_embd": 32,
    "intermediate_size": 48,
    "n_layer": 2,
    "n_head": 4,
    "n_query_groups": 2,
    "padded_vocab_size": 61,
    "vocab_size": 61,
    "block_size": 64,
}


class Tabled(nn.Module):
    """A model that computes its rotary tables where they are used."""

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        super().__init__()
        self.gpt = litgpt.GPT(litgpt.Config.from_name(name, **{**SMALL, **values})).eval()

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        before = self.gpt.cos, self.gpt.sin
        for name, table in zip(("cos", "sin"), self.gpt.rope_cache(), strict=True):
            self.gpt.register_buffer(name, table, persistent=False)
        try:
            return self.gpt(input_ids)
        finally:
            self.gpt.cos, self.gpt.sin = before


def other(name: str, values: dict[str, Any]) -> Graph:
    return rw.capture(Tabled(name, values), (torch.zeros(2, 12, dtype=torch.long),))


PAIRS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("Llama-2-7b-hf", {}, "Llama", {"rms_norm_eps": 1e-5}),
    ("Gemma-2b", {"head_size": 8}, "Gemma", {"head_dim": 8, "rms_norm_eps": 1e-5}),
    (
        "Gemma-2-2b",
        {"head_size": 8, "sliding_window_size": 5, "attention_scores_scalar": 24},
        "Gemma2",
        {"head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 24, "rms_norm_eps": 1e-5},
    ),
    ("Qwen2.5-0.5B", {}, "Qwen2", {"tie_word_embeddings": True, "rope_theta": 1000000}),
    ("Qwen3-0.6B", {"head_size": 8}, "Qwen3", {"head_dim": 8, "rope_theta": 1000000}),
    ("OLMo-2-1124-7B", {}, "Olmo2", {"rms_norm_eps": 1e-6, "rope_theta": 500000}),
]


@pytest.mark.parametrize(("name", "values", "family", "changes"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_litgpt_is_transformers(name: str, values: dict[str, Any], family: str, changes: dict[str, Any]) -> None:
    model = built(family, "eager", **changes)
    verdict = equiv(captured(model), other(name, values), dict(model.named_buffers()))
    assert verdict.status == "proved", verdict.reason


def test_a_default_eps_is_found() -> None:
    model = built("Gemma", "eager", head_dim=8, rms_norm_eps=1e-6)
    verdict = equiv(captured(model), other("Gemma-2b", {"head_size": 8}), dict(model.named_buffers()))
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == "eps"
