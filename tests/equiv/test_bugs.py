"""Known differences between implementations, injected into one of two styles: refuted, and the culprit is named."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
import torch.nn.functional as functional
from torch import nn

import rewright as rw
from rewright.blame.exchanges import Exchange, Search
from rewright.equiv.engine import equiv
from rewright.equiv.lemmas.equations import Prover
from rewright.ops.base import Array
from tests.equiv.decoders import PLAIN, captured

OTHER = {"attention": "sdpa", "norm": "power", "repeat": "interleave"}
"""The right side is another implementation besides its bug."""
CAPPED = {"norm": "power", "repeat": "interleave"}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("left", "style", "bug", "kind", "line"),
    [
        ({"activation": "gelu_tanh"}, OTHER, {"activation": "gelu"}, "activation", "gelu at "),
        ({"softcap": 3.0}, CAPPED, {"softcap": None}, "soft_cap", "softcap"),
        ({"window": 4}, OTHER, {"window": None}, "window", ""),
        ({"window": 4}, OTHER, {"window": 5}, "window_off_by_one", "style.window"),
        ({}, OTHER, {"window": 6}, "window", ""),
        ({"scaling": 4.0}, OTHER, {"scaling": 1.0}, "rotary_frequencies", "style.scaling"),
        ({}, OTHER, {"theta": 1e6}, "rotary_frequencies", "style.scaling"),
        ({"rotary": "none"}, OTHER, {"rotary": "half"}, "rotary", ""),
        ({"rotary": "pairs"}, OTHER, {"rotary": "half"}, "rotary", ""),
        ({"logits_scale": 0.25}, OTHER, {"logits_scale": None}, "missing_scale", "logits_scale"),
        ({"eps": 1e-5}, OTHER, {"eps": 1e-6}, "eps", "s.eps"),
        ({"head": 8, "rotary_width": 4}, OTHER, {"rotary_width": 2}, "rotary", "rest"),
        ({"bias": True}, OTHER, {"bias": False}, "unread_input", ""),
        ({}, OTHER, {"scale_value": 0.25}, "wrong_constant", "scale"),
        ({}, OTHER, {"activation": "relu"}, "activation", ""),
        ({"tied": True}, OTHER, {"activation": "gelu"}, "activation", ""),
    ],
    ids=lambda value: "-".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else str(value),
)
def test_a_bug_is_refuted_and_named(
    left: dict[str, object], style: dict[str, object], bug: dict[str, object], kind: str, line: str
) -> None:
    first = PLAIN.but(**left)
    verdict = equiv(captured(first), captured(first.but(**style).but(**bug)))
    assert verdict.status == "refuted"
    (finding,) = verdict.findings
    assert finding.kind.startswith(kind), finding
    assert finding.sequential is not None
    assert finding.distributed is not None
    assert finding.sequential.file.endswith("decoders.py")
    assert finding.suggestion is not None
    assert "proved equal" in finding.suggestion
    assert finding.counterexample is not None


def test_a_norm_in_another_place_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Exchange] = []
    after = Search._after

    def counted(search: Search, exchange: Exchange) -> tuple[list[dict[int, Array]], set[int]]:
        runs.append(exchange)
        return after(search, exchange)

    monkeypatch.setattr(Search, "_after", counted)
    verdict = equiv(captured(PLAIN), captured(PLAIN.but(post_norm=True)))
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == "norm"
    assert "proved equal" in (verdict.findings[0].suggestion or "")
    assert len(runs) < 500, "most edits are seen not to help without a run of all of the program"


def test_a_residual_that_starts_at_another_tensor() -> None:
    """Two operators after the sum is the next one that is wrong, so that no exchange makes much right at once."""

    class Block(nn.Module):
        def __init__(self, *, normed: bool) -> None:
            super().__init__()
            self.normed = normed
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                y = functional.layer_norm(x, (8,))
                x = (y if self.normed else x) + functional.silu(layer(y))
            return x

    sides = (rw.capture(Block(normed=normed), (torch.zeros(3, 8),)) for normed in (False, True))
    (finding,) = equiv(*sides).findings
    assert finding.kind == "other_operand"
    assert "proved equal" in (finding.suggestion or "")


def test_nothing_is_proved_of_programs_that_compute_other_numbers() -> None:
    """Lemmas take most of the time, and where values differ no lemma helps."""
    relations = {
        f"layers.*.attention.{n}.weight": f"interleaved(layers.*.attention.{n}.weight, heads={heads})"
        for n, heads in (("q", PLAIN.heads), ("k", PLAIN.kv_heads))
    }
    for eps, status in ((PLAIN.eps, "proved"), (1e-3, "refuted")):
        prover = Prover()
        right = captured(PLAIN.but(rotary="interleaved", eps=eps))
        assert equiv(captured(PLAIN), right, relations=relations, prover=prover, explain=False).status == status
        assert bool(prover.attempts) == (status == "proved")


def test_a_window_as_long_as_the_sequence_is_none() -> None:
    """Equal up to the length of the captured sequence is equal for it, and a longer one tells them apart."""
    windowed = PLAIN.but(window=PLAIN.sequence)
    assert equiv(captured(PLAIN), captured(windowed)).status == "proved"
    long = {"sequence": PLAIN.sequence + 4}
    assert equiv(captured(PLAIN.but(**long)), captured(windowed.but(**long))).status == "refuted"
