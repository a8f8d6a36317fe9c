"""Transformers' own two attentions, and an injected change of configuration on one side."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra rewright[zoo]")

from rewright.equiv.engine import equiv
from tests.equiv.transformers_models import built, captured


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
    ],
)
def test_eager_and_sdpa_are_one_function(family: str, values: dict[str, Any]) -> None:
    verdict = equiv(captured(built(family, "eager", **values)), captured(built(family, "sdpa", **values)))
    assert verdict.status == "proved", verdict.reason


@pytest.mark.parametrize(
    ("family", "values", "changed", "kind"),
    [
        ("Mistral", {"sliding_window": 5}, {"sliding_window": 6}, "window_off_by_one"),
        ("Llama", {}, {"rms_norm_eps": 1e-5}, "eps"),
        ("Qwen2", {"hidden_act": "gelu"}, {"hidden_act": "gelu_pytorch_tanh"}, "activation"),
        ("Granite", {"logits_scaling": 4.0}, {"logits_scaling": 8.0}, "wrong_constant"),
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
