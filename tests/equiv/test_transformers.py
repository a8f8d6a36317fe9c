"""Transformers' own two attentions, and an injected change of configuration on one side."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra rewright[models]")

import torch

import rewright as rw
from rewright.equiv.engine import equiv
from tests.equiv.transformers_models import Decoding, Padded, built, captured
from tests.versions import of_transformers_5


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("family", "values"),
    [
        ("Llama", {}),
        ("Mistral", {"sliding_window": 5}),
        ("Qwen2", {}),
        ("Qwen3", {"head_dim": 8}),
        ("Gemma", {"head_dim": 8}),
        ("Phi3", {"pad_token_id": 0}),
        ("GPTNeoX", {"num_key_value_heads": 4}),
        ("Olmo2", {}),
        ("Granite", {}),
        ("Falcon", {}),
        ("Phi", {}),
        ("OPT", {"ffn_dim": 48, "word_embed_proj_dim": 32}),
        ("Cohere2", {"head_dim": 8, "sliding_window": 5}),
        ("Glm4", {"head_dim": 8, "pad_token_id": 0}),
        ("Exaone4", {"sliding_window": 5}),
        ("StableLm", {}),
        ("Starcoder2", {}),
    ],
)
def test_eager_and_sdpa_are_one_function(family: str, values: dict[str, Any]) -> None:
    verdict = equiv(captured(built(family, "eager", **values)), captured(built(family, "sdpa", **values)))
    assert verdict.status == "proved", verdict.reason


@of_transformers_5("has no choice of experts")
@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("family", "values"),
    [
        ("Mixtral", {"num_local_experts": 4}),
        ("Qwen3Moe", {"num_experts": 4, "head_dim": 8, "moe_intermediate_size": 24, "norm_topk_prob": True}),
        ("Olmoe", {"num_experts": 4}),
        pytest.param(
            "Qwen2Moe",
            {"num_experts": 4, "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_experts_in_one_product_and_one_by_one(family: str, values: dict[str, Any]) -> None:
    values = {"num_experts_per_tok": 2, "num_hidden_layers": 1, **values}
    sides = built(family, "eager", experts="dense", **values), built(family, "sdpa", experts="each", **values)
    verdict = equiv(captured(sides[0]), captured(sides[1]))
    assert verdict.status == "proved", verdict.reason


TOKENS = torch.zeros(2, 12, dtype=torch.long)
MASKED = [("Llama", {}), ("Mistral", {"sliding_window": 5}), ("OPT", {"ffn_dim": 48, "word_embed_proj_dim": 32})]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("family", "values"), MASKED)
def test_with_padding(family: str, values: dict[str, Any]) -> None:
    left, right = (Padded(built(family, attention, **values)) for attention in ("eager", "sdpa"))
    verdict = equiv(rw.capture(left, (TOKENS, TOKENS + 1)), rw.capture(right, (TOKENS, TOKENS + 1)))
    assert verdict.status == "proved", verdict.reason


def test_padding_that_one_side_ignores() -> None:
    left = rw.capture(Padded(built("Llama", "eager")), (TOKENS, TOKENS + 1))
    unmasked = Padded(built("Llama", "sdpa"))
    unmasked.forward = lambda input_ids, attention_mask: unmasked.model(input_ids=input_ids).logits
    verdict = equiv(left, rw.capture(unmasked, (TOKENS, TOKENS + 1)))
    assert verdict.status == "refuted"


@pytest.mark.sample(2)
@pytest.mark.parametrize(("family", "values"), MASKED[:2])
def test_a_prompt_and_steps_with_a_cache(family: str, values: dict[str, Any]) -> None:
    left, right = (Decoding(built(family, attention, **values)) for attention in ("eager", "sdpa"))
    verdict = equiv(*(rw.capture(side, (TOKENS[:, :8], TOKENS[:, :2])) for side in (left, right)))
    assert verdict.status == "proved", verdict.reason


@pytest.mark.slow
def test_a_window_that_only_a_later_step_passes() -> None:
    left = Decoding(built("Mistral", "eager", sliding_window=8))
    right = Decoding(built("Mistral", "sdpa", sliding_window=9))
    few, many = ([rw.capture(side, (TOKENS[:, :7], TOKENS[:, :n])) for side in (left, right)] for n in (1, 2))
    assert equiv(*few).status == "proved"
    verdict = equiv(*many)
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind.startswith("window")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("family", "values", "changed", "kind"),
    [
        ("Mistral", {"sliding_window": 5}, {"sliding_window": 6}, "window_off_by_one"),
        ("Llama", {}, {"rms_norm_eps": 1e-5}, "eps"),
        ("Qwen2", {"hidden_act": "gelu"}, {"hidden_act": "gelu_pytorch_tanh"}, "activation"),
        ("Granite", {"logits_scaling": 4.0}, {"logits_scaling": 8.0}, "wrong_constant"),
        ("Granite", {"residual_multiplier": 0.5}, {"residual_multiplier": 1.0}, "missing_scale"),
    ],
)
def test_another_configuration_on_one_side(
    family: str, values: dict[str, Any], changed: dict[str, Any], kind: str
) -> None:
    left, right = built(family, "eager", **values), built(family, "sdpa", **{**values, **changed})
    verdict = equiv(captured(left), captured(right))
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == kind, verdict.findings
    assert "proved equal" in str(verdict.findings[0].suggestion)
