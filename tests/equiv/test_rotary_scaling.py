"""Rotary scaling that differs on one side: on sequences longer than the original context length, and in bf16."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", reason="needs the extra rewright[models]")

import torch
from torch import nn

import rewright as rw
from rewright.equiv.engine import Equivalence, equiv
from tests.equiv.transformers_models import built
from tests.versions import of_transformers_5

CONTEXT, LONG = 8, 12
BASE = {"rope_theta": 1e4, "factor": 4.0}
OLD = {"original_max_position_embeddings": CONTEXT}
pytestmark = of_transformers_5("has other names for the parameters of rotary embeddings")
SCALED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "linear": ({}, {"factor": 2.0}),
    "llama3": ({**OLD, "low_freq_factor": 1.0, "high_freq_factor": 4.0}, {"high_freq_factor": 3.0}),
    "yarn": ({**OLD}, {"factor": 2.0}),
    "dynamic": ({}, {"factor": 2.0}),
    "longrope": (
        {**OLD, "short_factor": [1.0] * 4, "long_factor": [1.0, 2.0, 3.0, 4.0]},
        {"long_factor": [1.0, 2.0, 3.0, 5.0]},
    ),
}


class Logits(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids).logits


def model(kind: str, attention: str, *, dtype: torch.dtype = torch.float32, **changed: Any) -> Logits:
    rotary = {"rope_type": kind, **BASE, **SCALED[kind][0], **changed}
    most = CONTEXT if kind == "dynamic" else 4 * CONTEXT
    made = built("Llama", attention, rope_parameters=rotary, max_position_embeddings=most, num_hidden_layers=1)
    return Logits(made.to(dtype))


def compared(kind: str, length: int, dtype: torch.dtype = torch.float32, **changed: Any) -> Equivalence:
    sides = model(kind, "eager", dtype=dtype), model(kind, "sdpa", dtype=dtype, **changed)
    values = dict(sides[0].named_buffers()), dict(sides[1].named_buffers())
    # One of them looks at the length that it has seen, so that it has to run.
    graphs = [rw.capture(side, (torch.zeros(2, length, dtype=torch.long),), run=kind == "dynamic") for side in sides]
    return equiv(*graphs, values, explain=False)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", SCALED)
def test_past_the_original_context_length(kind: str) -> None:
    assert compared(kind, LONG).status == "proved"
    assert compared(kind, LONG, **SCALED[kind][1]).status == "refuted"


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_within_it_nothing_differs(kind: str) -> None:
    """Programs of sequences that are this short are one function: they are never refuted, nor the long ones proved."""
    assert compared(kind, CONTEXT - 2, **SCALED[kind][1]).status != "refuted"


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["llama3", "yarn", "longrope"])
def test_in_bf16(kind: str) -> None:
    assert compared(kind, LONG, torch.bfloat16).status == "proved"
    assert compared(kind, LONG, torch.bfloat16, **SCALED[kind][1]).status == "refuted"


def test_frequencies_of_one_name_are_not_taken_for_one_tensor() -> None:
    """No state dict has them; nothing was said of their values."""
    sides = model("llama3", "eager"), model("llama3", "sdpa", high_freq_factor=3.0)
    graphs = [rw.capture(side, (torch.zeros(2, LONG, dtype=torch.long),)) for side in sides]
    verdict = equiv(*graphs, explain=False)
    assert verdict.status == "unknown"
    assert "inv_freq" in verdict.reason and "held other values" in verdict.reason
    same = {name: name for name in graphs[0].inputs if name.endswith("rotary_emb.inv_freq")}
    assert equiv(*graphs, relations=same, explain=False).status == "proved"
    alike = [rw.capture(model("llama3", kind), (torch.zeros(2, LONG, dtype=torch.long),)) for kind in ("eager", "sdpa")]
    assert equiv(*alike, explain=False).status == "proved"
