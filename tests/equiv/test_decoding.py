"""Decoding one token with a cache is one pass over the sequence, for sequences of any length."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import rewright as rw  # noqa: E402

Tensor = torch.Tensor


def llama(attention: str) -> Any:
    config = transformers.LlamaConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        vocab_size=20, attn_implementation=attention,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


class Whole(torch.nn.Module):
    """Logits of the last token, and the cache, of one pass."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache(config=self.model.config)
        logits = self.model(input_ids=ids, past_key_values=cache, use_cache=True).logits
        return logits[:, -1:], *(x for layer in cache.layers for x in (layer.keys, layer.values))


class Decoding(Whole):
    """The same with the last token after the others; ``late`` is by how much its position is wrong."""

    late = 0

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache(config=self.model.config)
        self.model(input_ids=ids[:, :-1], past_key_values=cache, use_cache=True)
        place = torch.arange(1)[None] + cache.get_seq_length() + self.late
        logits = self.model(input_ids=ids[:, -1:], position_ids=place, past_key_values=cache, use_cache=True).logits
        return logits, *(x for layer in cache.layers for x in (layer.keys, layer.values))


def verdict(model: Any, decoding: Any) -> Any:
    ids = torch.zeros(2, 6, dtype=torch.int64)
    left, right = (rw.capture(f, (ids,), dynamic={"ids": {1: "S"}}) for f in (Whole(model), decoding))
    return rw.equiv(left, right)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_step_with_a_cache_is_one_pass(attention: str) -> None:
    model = llama(attention)
    found = verdict(model, Decoding(model))
    assert found.status == "proved", found.reason
    assert any("S >= " in text for text in found.assumptions)


def test_a_token_at_the_next_position_is_refuted() -> None:
    model = llama("sdpa")
    late = Decoding(model)
    late.late = 1
    assert verdict(model, late).status == "refuted"
