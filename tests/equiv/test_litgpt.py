"""litgpt's models, written independently, against those of Transformers: weights are matched by name."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra rewright[models]")
pytest.importorskip("litgpt", reason="litgpt is no dependency; make installs it")

import litgpt
import torch
from torch import nn

import rewright as rw
from bench import depth
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
    (
        "phi-2",
        {"n_query_groups": 4, "rotary_percentage": 0.5},
        "Phi",
        {"num_key_value_heads": 4, "partial_rotary_factor": 0.5},
    ),
]
BY_HEADS = "reshape(transpose(reshape(gpt_neox.layers.*.attention.query_key_value.{}, {}), {}), {})"
"""Queries, keys and values of one head after the other, as all queries, all keys and all values."""


@pytest.mark.sample(4)
@pytest.mark.parametrize(("name", "values", "family", "changes"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_litgpt_is_transformers(name: str, values: dict[str, Any], family: str, changes: dict[str, Any]) -> None:
    model = built(family, "eager", **changes)
    verdict = equiv(captured(model), other(name, values), dict(model.named_buffers()))
    assert verdict.status == "proved", verdict.reason


@pytest.mark.long
@pytest.mark.parametrize(
    ("heads", "status"), [((4, 3), "proved"), pytest.param((3, 4), "refuted", marks=pytest.mark.slow)]
)
def test_queries_keys_and_values_of_each_head_together(heads: tuple[int, int], status: str) -> None:
    relations = {
        "gpt.transformer.h.*.attn.qkv.weight": BY_HEADS.format("weight", (*heads, 8, 32), (1, 0, 2, 3), (96, 32)),
        "gpt.transformer.h.*.attn.qkv.bias": BY_HEADS.format("bias", (*heads, 8), (1, 0, 2), (96,)),
    }
    model = built("GPTNeoX", "eager", num_key_value_heads=4, rotary_pct=0.25)
    right = other("pythia-14m", {"n_query_groups": 4, "rotary_percentage": 0.25})
    verdict = equiv(captured(model), right, dict(model.named_buffers()), relations)
    assert verdict.status == status, verdict.reason


@pytest.mark.long
def test_a_default_eps_is_found() -> None:
    model = built("Gemma", "eager", head_dim=8, rms_norm_eps=1e-6)
    verdict = equiv(captured(model), other("Gemma-2b", {"head_size": 8}), dict(model.named_buffers()))
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == "eps"


@pytest.mark.long
def test_full_size_without_values() -> None:
    """8B parameters have shapes alone, and are matched by their names; one layer is like another."""
    left, right, buffers = depth.modules(2, "litgpt")
    example = (torch.zeros(1, 16, dtype=torch.long),)
    graphs = rw.capture(left, example), rw.capture(right, example)
    verdict = equiv(*graphs, (buffers, {}))
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    assert depth.twin_of(*graphs, buffers).compare(trials=1).agrees is True
