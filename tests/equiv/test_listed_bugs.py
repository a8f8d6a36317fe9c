"""Root causes of public bug reports: the right pair is proved, the wrong one refuted, and the operator is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

from rewright.equiv.engine import equiv
from rewright.ir.graph import Graph
from tests.equiv import decoders
from tests.equiv.decoders import PLAIN, Style, captured

OTHER: dict[str, Any] = {"attention": "sdpa", "norm": "power", "repeat": "interleave"}
SAME: dict[str, Any] = {"norm": "power"}
LINES = Path(decoders.__file__).read_text().splitlines()


@dataclass(frozen=True)
class Bug:
    """A model, how the second implementation is written, what is wrong in it, and what is to be named."""

    model: dict[str, Any]
    wrong: dict[str, Any]
    kind: str
    text: str
    """A part of the source line of one of the two operators that are named."""
    module: str = "layers.0"
    other: dict[str, Any] = field(default_factory=lambda: OTHER)


BUGS = {
    "a layer without a window gets the global one": Bug(
        {"windows": (4, None)}, {"windows": (4, 8)}, "window", "style.window", "layers.1"
    ),
    "global layers inherit the window": Bug({"windows": (4, None)}, {"windows": (4, 4)}, "window", "seen", "layers.1"),
    "a window too long by one": Bug({"window": 4}, {"window": 5}, "window_off_by_one", "style.window", ""),
    "rotary on a layer that has none": Bug(
        {"rotary_layers": (True, False)}, {"rotary_layers": None}, "rotary", "x[..., : width // 2]", "layers.1"
    ),
    "a wrong factor on cosine and sine": Bug(
        {"rotary_factor": 1.19}, {"rotary_factor": 1.24}, "rotary_scale", "style.rotary_factor"
    ),
    "the norm of queries across heads": Bug(
        {"query_norm": "plain"}, {"query_norm": "plain_all"}, "norm_axes", "x.square().mean"
    ),
    "tied embeddings ignored": Bug({"tied": True}, {"tied": False}, "other_input", "self.embed.weight.T", ""),
    "attention scaled twice": Bug(
        {"scale": "query"}, {"scale": "twice"}, "extra_scale", "scores = scores * scale", other=SAME
    ),
    "erf for tanh": Bug({"activation": "gelu_tanh"}, {"activation": "gelu"}, "activation", "F.gelu(x"),
    "a softmax after the choice for one before": Bug(
        {"experts": 4, "router": "softmax", "layers": 1},
        {"router": "chosen_only"},
        "softmax_axes",
        "torch.softmax",
        other=SAME,
    ),
    "negative scores lose against nought": Bug(
        {"experts": 4, "layers": 1}, {"router": "zeroed"}, "", "torch.", other=SAME
    ),
}


@cache
def program(style: Style) -> Graph:
    return captured(style)


SLOW = {"a softmax after the choice for one before"}
CASES = [
    pytest.param(name, dtype, marks=pytest.mark.slow if name in SLOW or dtype is torch.bfloat16 else ())
    for name in BUGS
    for dtype in (torch.float32, torch.bfloat16)
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_the_right_pair_is_proved_and_the_wrong_one_refuted(name: str, dtype: torch.dtype) -> None:
    bug = BUGS[name]
    left = PLAIN.but(dtype=dtype, **bug.model)
    right = left.but(**bug.other)
    assert equiv(program(left), program(right)).status == "proved"
    verdict = equiv(program(left), program(right.but(**bug.wrong)))
    assert verdict.status == "refuted"
    (finding,) = verdict.findings
    assert finding.kind.startswith(bug.kind), finding
    places = [span for span in (finding.sequential, finding.distributed) if span is not None]
    assert any(bug.text in LINES[span.line - 1] for span in places), finding
    assert any(bug.module in span.module_path for span in places), finding


CORRECTED = {"experts": 4, "layers": 1, "router_bias": "choice"}


@pytest.mark.parametrize(("wrong", "kind"), [("none", "unread_input"), ("both", "routing")])
def test_a_correction_of_scores_chooses_and_does_not_weigh(wrong: str, kind: str) -> None:
    left = PLAIN.but(**CORRECTED)
    verdict = equiv(program(left), program(left.but(norm="power", router_bias=wrong)))
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == kind
    assert "topk" in LINES[getattr(verdict.findings[0].distributed, "line", 1) - 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_corrected_router_is_proved(dtype: torch.dtype) -> None:
    left = PLAIN.but(dtype=dtype, **CORRECTED)
    assert equiv(program(left), program(left.but(norm="power"))).status == "proved"
