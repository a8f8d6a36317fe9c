"""Transformers' models against implementations in plain PyTorch of the same checkpoint, and against wrong ones."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra rewright[models]")

from bench.pairs import reference
from bench.pairs.families import FAMILIES, Family
from rewright.equiv.engine import Equivalence, equiv
from tests.equiv import plain_models
from tests.versions import of_transformers_5

SMALL = {"hidden_size": 32, "intermediate_size": 48, "vocab_size": 61, "num_hidden_layers": 2}
ROTARY = {"rope_type": "default", "rope_theta": 10000.0}
PLAIN: dict[str, tuple[type[plain_models.Plain], str, dict[str, Any]]] = {
    "deepseek_v2": (
        plain_models.DeepseekV2,
        "deepseek_v2",
        {"topk_method": "group_limited_greedy", "routed_scaling_factor": 1.5, "moe_intermediate_size": 24},
    ),
    "gpt_oss": (plain_models.GptOss, "gpt_oss", {"rope_parameters": ROTARY}),
    "llama": (plain_models.Llama3, "llama, llama3 rotary", {}),
}


def compared(name: str, **changed: Any) -> Equivalence:
    plain, family, values = PLAIN[name]
    found = FAMILIES[family]
    model = reference.built(Family(found.stem, {**found.changes, **SMALL, **values}))
    right = plain(model.config, dict(model.state_dict()), **changed).eval()
    pair = reference.pair(reference.Logits(model), right, (reference.tokens() % SMALL["vocab_size"],))
    return equiv(pair.left, pair.right, pair.values)


@of_transformers_5("has other experts and names")
@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(PLAIN, reverse=True))
def test_they_are_one_function(name: str) -> None:
    verdict = compared(name)
    assert verdict.status == "proved", verdict.reason


@pytest.mark.long
def test_other_groups_may_be_filled_with_minus_infinity() -> None:
    verdict = compared("deepseek_v2", fill=-math.inf)
    assert verdict.status == "proved", verdict.reason


@of_transformers_5("has other experts and names")
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("name", "changed", "kind", "line"),
    [
        ("deepseek_v2", {"groups": 2}, "routing", "routed"),
        ("deepseek_v2", {"scale": 1.0}, "missing_scale", "shares"),
        ("deepseek_v2", {"halves": True}, "rotary", "turned"),
        ("deepseek_v2", {"size": 16}, "wrong_constant", "attention"),
        ("gpt_oss", {"sinkless": True}, "", "attention"),
        ("gpt_oss", {"window": 6}, "window", "seen"),
        ("gpt_oss", {"offset": 0}, "", "feed_forward"),
        ("gpt_oss", {"alpha": 1.0}, "missing_scale", "feed_forward"),
        ("llama", {"factor": 4.0}, "rotary", "turns"),
        ("llama", {"reversed": True}, "rotary", "turns"),
        ("llama", {"unpermuted": True}, "rotary_style", "<genexpr>"),
    ],
)
def test_what_is_wrong_is_found(name: str, changed: dict[str, Any], kind: str, line: str) -> None:
    verdict = compared(name, **changed)
    assert verdict.status == "refuted", verdict.reason
    (finding,) = verdict.findings
    assert finding.kind.startswith(kind)
    assert finding.distributed is not None and finding.distributed.function == line
