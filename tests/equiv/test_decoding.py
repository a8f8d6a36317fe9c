"""Decoding one token with a cache is one pass over the sequence, for sequences of any length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import rewright as rw  # noqa: E402
from bench.serving import FAMILIES, Family, programs  # noqa: E402

Tensor = torch.Tensor
LLAMA = Family("Llama", "grouped queries")


def verdict(family: Family, late: int = 0) -> Any:
    left, right = programs(family, late)
    return rw.equiv(left, right)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_step_with_a_cache_is_one_pass(attention: str) -> None:
    found = verdict(replace(LLAMA, attention=attention))
    assert found.status == "proved", found.reason
    assert any("S >= " in text for text in found.assumptions)


def test_lengths_may_be_numbers() -> None:
    found = verdict(replace(LLAMA, length=""))
    assert found.status == "proved", found.reason


def test_a_cache_of_a_window_of_keys() -> None:
    found = verdict(Family("Mistral", "a window of keys", {"sliding_window": 4}, length="S+4"))
    assert found.status == "proved", found.reason


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.config}, {family.what}")
def test_families(family: Family) -> None:
    if family.config in ("OPT", "GptOss", "Mixtral", "Qwen3Moe"):
        pytest.skip("positions that a mask counts, and experts behind a prefix, have no proof")
    found = verdict(family)
    assert found.status == "proved", found.reason


@pytest.mark.long
def test_six_layers() -> None:
    found = verdict(replace(LLAMA, base=LLAMA.base | {"num_hidden_layers": 6}))
    assert found.status == "proved", found.reason


def test_a_token_at_the_next_position_is_refuted() -> None:
    assert verdict(LLAMA, late=1).status == "refuted"


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
