"""Wrong ports of one line: what the finding says of them, as a person would."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
from torch.nn.functional import layer_norm, silu

import rewright as rw
from rewright.equiv.engine import equiv

Layer = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def gated(x: torch.Tensor, up: torch.Tensor, gate: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return silu(x @ gate.T + b) * (x @ up.T)


def scaled(x: torch.Tensor, up: torch.Tensor, gate: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ((x @ up.T) @ (x @ gate.T).T * 8**-0.5).softmax(-1)


def normed(x: torch.Tensor, up: torch.Tensor, gate: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return layer_norm(x @ up.T, (8,), b, None, 1e-5) + x @ gate.T


def turned(base: float, start: int = 0) -> Layer:
    """A product of rotated queries and keys, of which the keys may be at other places."""

    def rotated(y: torch.Tensor, first: int) -> torch.Tensor:
        angles = torch.outer(torch.arange(6.0) + first, 1 / base ** (torch.arange(0, 8, 2) / 8))
        cos, sin = (torch.cat([f(angles), f(angles)], -1) for f in (torch.cos, torch.sin))
        return y * cos + torch.cat([-y[:, 4:], y[:, :4]], -1) * sin

    return lambda x, up, gate, b: rotated(x @ up.T, 0) @ rotated(x @ gate.T, start).T + b[:6]


def windowed(size: int) -> Layer:
    """Attention to the last keys alone, which are cut off."""

    def attended(x: torch.Tensor, up: torch.Tensor, gate: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        keys, values = (x @ gate.T)[-size:], x[-size:]
        return (x @ up.T @ keys.T).softmax(-1) @ values + b

    return attended


@pytest.mark.parametrize(
    ("left", "right", "kind", "text"),
    [
        (
            gated,
            lambda x, up, gate, b: silu((x @ gate.T + b).clamp(max=2.0)) * (x @ up.T),
            "extra_bound",
            "the right program bounds values by 2, and the left one does not",
        ),
        (
            gated,
            lambda x, up, gate, b: silu(x @ gate.T + b) * (x @ up.T + 1e-4),
            "extra_number",
            "the right program adds 0.0001, and the left one does not",
        ),
        (
            gated,
            lambda x, up, gate, b: silu(x @ gate.T + b) * (1 + x @ up.T),
            "extra_number",
            "the right program adds 1, and the left one does not",
        ),
        (
            gated,
            lambda x, up, gate, b: silu(1.702 * (x @ gate.T + b)) * (x @ up.T),
            "extra_scale",
            "the right program scales by 1.702, and the left one does not",
        ),
        (
            gated,
            lambda x, up, gate, b: silu(x @ gate.T) * (x @ up.T + b),
            "missing_bias",
            "the left program adds b here, and the right one does not",
        ),
        (
            scaled,
            lambda x, up, gate, b: ((x @ up.T) @ (x @ gate.T).T * 0.3536).softmax(-1),
            "wrong_constant",
            "the number 0.3536 is used where the left has 0.353553",
        ),
        (
            normed,
            lambda x, up, gate, b: torch.rms_norm(x @ up.T, (8,), b, 1e-5) + x @ gate.T,
            "norm",
            "the left program subtracts a mean here, and the right one does not",
        ),
        (windowed(4), windowed(5), "window_off_by_one", "reduced over 5 and 5 where the left reduces over 4 and 4"),
        (windowed(4), windowed(6), "window", "reduced over 6 and 6 where the left reduces over 4 and 4"),
        (turned(1e4), turned(1e4, 1), "rotary_positions", "positions are counted otherwise"),
        (turned(1e4), turned(10001.0), "rotary_frequencies", "the angles are made with other numbers"),
    ],
)
def test_a_finding_says_what_is_wrong(left: Layer, right: Layer, kind: str, text: str) -> None:
    args = torch.zeros(6, 8), torch.zeros(8, 8), torch.zeros(8, 8), torch.zeros(8)
    verdict = equiv(rw.capture(left, args), rw.capture(right, args))
    assert verdict.status == "refuted"
    assert text in verdict.findings[0].message
    assert verdict.findings[0].kind == kind
    assert "proved equal" in str(verdict.findings[0].suggestion)
