"""Steps of quantisation in another order: absolute values below maxima, and rounding before or after a clamp."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.interp.program import run
from tests.equiv.rewriting import alone, law

Step = Callable[[torch.Tensor], torch.Tensor]


def status(left: Step, right: Step) -> str:
    return equiv(*(rw.capture(step, (torch.zeros(4, 8),)) for step in (left, right)), explain=False).status


def largest(x: torch.Tensor) -> torch.Tensor:
    return x.abs().amax(-1, keepdim=True)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (lambda x: torch.maximum(x.amax(-1, keepdim=True), -x.amin(-1, keepdim=True)), "proved"),
        (lambda x: torch.maximum((-x).amax(-1), x.amax(-1))[:, None], "proved"),
        (lambda x: torch.maximum(x.amin(-1, keepdim=True).abs(), x.amax(-1, keepdim=True).abs()), "proved"),
        (lambda x: torch.maximum(x.amax(-1, keepdim=True), x.amin(-1, keepdim=True)), "refuted"),
        (lambda x: torch.maximum(-x.amax(-1, keepdim=True).abs(), x.amin(-1, keepdim=True).abs()), "refuted"),
        (lambda x: torch.maximum(-x.amax(-1, keepdim=True), -x.amin(-1, keepdim=True)), "refuted"),
        (lambda x: torch.maximum(x.amax(-1, keepdim=True), -x[:, :7].amin(-1, keepdim=True)), "refuted"),
    ],
)
def test_the_largest_absolute_value(other: Step, expected: str) -> None:
    assert status(largest, other) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(-128, 127, "proved"), (-128, 126.6, "refuted"), (-2.4, 2, "refuted")]
)
def test_rounding_before_or_after_a_clamp(low: float, high: float, expected: str) -> None:
    """A clamp to numbers that are not whole is another one in front of the rounding."""
    assert (
        status(lambda x: (100 * x).round().clamp(low, high), lambda x: (100 * x).clamp(low, high).round()) == expected
    )


def test_steps_compute_what_they_computed() -> None:
    def steps(x: torch.Tensor) -> torch.Tensor:
        one = x.clamp(-2, 3).floor() + x.clamp(max=1.5).ceil() + x.clamp(min=-1).round() + x.clamp(3, 1).round()
        return one + torch.maximum(-x.amin(-1), x.amax(-1)).clamp(1, 2).round()[:, None] - x.amax(-1).neg()[:, None]

    graph = rw.capture(steps, (torch.zeros(4, 8),))
    values = {"x": torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).numpy() * 3}
    assert (run(graph, values)["output"] == run(alone(law("orders"), graph), values)["output"]).all()
