"""Decoding one token with a cache is one pass over the sequence, for sequences of any length."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import rewright as rw  # noqa: E402

Tensor = torch.Tensor
SMALL = {
    "hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": 20,
}  # fmt: skip


def model(family: str = "Llama", layers: int = 2, attention: str = "sdpa", **options: Any) -> Any:
    config = getattr(transformers, f"{family}Config")(
        **SMALL, num_hidden_layers=layers, attn_implementation=attention, **options
    )
    return transformers.AutoModelForCausalLM.from_config(config).eval()


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


def verdict(model: Any, decoding: Any, length: str | None = "S") -> Any:
    ids = torch.zeros(2, 8, dtype=torch.int64)
    dynamic = None if length is None else {"ids": {1: length}}
    left, right = (rw.capture(f, (ids,), dynamic=dynamic) for f in (Whole(model), decoding))
    return rw.equiv(left, right)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_step_with_a_cache_is_one_pass(attention: str) -> None:
    one = model(attention=attention)
    found = verdict(one, Decoding(one))
    assert found.status == "proved", found.reason
    assert any("S >= " in text for text in found.assumptions)


def test_lengths_may_be_numbers() -> None:
    one = model()
    found = verdict(one, Decoding(one), None)
    assert found.status == "proved", found.reason


def test_a_cache_of_a_window_of_keys() -> None:
    one = model("Mistral", sliding_window=4)
    found = verdict(one, Decoding(one), "S+4")
    assert found.status == "proved", found.reason


@pytest.mark.long
@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("Qwen2", {}), ("Qwen3", {"head_dim": 8}), ("Olmo2", {}), ("Cohere", {}),
        ("Gemma2", {"head_dim": 8, "sliding_window": 4, "attention": "eager"}),
        ("Gemma3Text", {"head_dim": 8, "sliding_window": 4}),
        ("Llama", {"layers": 6}),
    ],
)  # fmt: skip
def test_families(family: str, options: dict[str, Any]) -> None:
    """Soft-caps, windows in every other layer, norms of queries and keys, and more layers."""
    one = model(family, **options)
    found = verdict(one, Decoding(one), "S+4" if "sliding_window" in options else "S")
    assert found.status == "proved", found.reason


def test_a_token_at_the_next_position_is_refuted() -> None:
    one = model(layers=1)
    late = Decoding(one)
    late.late = 1
    assert verdict(one, late).status == "refuted"


def attended(q: Tensor, keys: Tensor, seen: Tensor | None) -> Tensor:
    scores = q @ keys.transpose(-1, -2)
    scores = scores if seen is None else torch.where(seen, scores, float("-inf"))
    return torch.softmax(scores, -1) @ keys


def causal(rows: int, keys: int, first: int, window: int | None, ahead: int = 0) -> Tensor:
    row, key = torch.arange(rows)[:, None] + first, torch.arange(keys)[None]
    seen = key <= row + ahead
    return seen if window is None else seen & (key > row - window)


def by_hand(window: int | None, own: int | None, *, ahead: int = 0, masked: bool = True) -> Any:
    """Two layers of attention at once, and with the last row after the others by a window of its own."""

    def whole(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        for weight in (first, second):
            x = x + attended(x @ weight, x, causal(x.shape[1], x.shape[1], 0, window))
        return x[:, -1]

    def step(x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        prefix, last = x[:, :-1], x[:, -1:]
        for weight in (first, second):
            length = prefix.shape[1]
            keys = torch.cat([prefix, last], 1)
            seen = causal(1, length + 1, length, own) if masked else None
            last = last + attended(last @ weight, keys if masked or own is None else keys[:, -own:], seen)
            prefix = prefix + attended(prefix @ weight, prefix, causal(length, length, 0, own, ahead))
        return last[:, 0]

    given = (torch.randn(2, 6, 4), torch.randn(4, 4), torch.randn(4, 4))
    left, right = (rw.capture(f, given, dynamic={"x": {1: "S+4"}}) for f in (whole, step))
    return rw.equiv(left, right)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("masked", [True, False])
def test_a_step_that_is_written_by_hand(window: int | None, masked: bool) -> None:
    found = by_hand(window, window, masked=masked)
    assert found.status == "proved", found.reason


@pytest.mark.parametrize(
    ("window", "own", "ahead"), [(None, None, 1), (None, None, -1), (3, 4, 0), (3, None, 0), (None, 3, 0)]
)
def test_a_prefix_under_another_mask_is_refuted(window: int | None, own: int | None, ahead: int) -> None:
    assert by_hand(window, own, ahead=ahead).status == "refuted"
