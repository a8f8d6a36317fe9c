"""Optimizers of which every rank has some rows: what is made of all rows is reduced over the ranks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo.patterns.pattern import dist

ROWS, WIDTH, RANKS = 8, 6, 2
Tensor = torch.Tensor
Kind = Callable[[Tensor], Tensor]


def total(x: Tensor) -> Tensor:
    """A sum over all ranks; on one device, what is given."""
    if dist.is_initialized():
        x = x.clone()
        dist.all_reduce(x)
    return x


def largest(x: Tensor) -> Tensor:
    """A maximum over all ranks."""
    if dist.is_initialized():
        x = x.clone()
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x


def lamb(w: Tensor, g: Tensor, m: Tensor, over: Kind) -> Tensor:
    """A step as long as the weights are, by the norms of both."""
    step = 0.9 * m + 0.1 * g + 0.01 * w
    long, far = over(w.square().sum()).sqrt(), total(step.square().sum()).sqrt()
    return w - 0.001 * torch.where((long > 0) & (far > 0), long / far, torch.ones_like(far)) * step


def adafactor(w: Tensor, g: Tensor, m: Tensor, over: Kind) -> Tensor:
    """Second moments of rows and of columns, and a step whose size is bounded."""
    square = g.square() + 1e-30
    rows, columns = square.mean(-1), over(square.sum(0)) / ROWS
    step = g / (rows[:, None] * columns[None] / (total(rows.sum()) / ROWS)).sqrt()
    size = (total(step.square().sum()) / (ROWS * WIDTH)).sqrt()
    return w - 0.01 * step / size.clamp(min=1.0)


def muon(w: Tensor, g: Tensor, m: Tensor, over: Kind) -> Tensor:
    """Two steps of Newton and Schulz towards the nearest orthogonal matrix, by products over all rows."""
    x = 0.95 * m + g
    x = x / (total(x.square().sum()).sqrt() + 1e-7)
    for _ in range(2):
        a = over(x.T @ x)
        x = 3.4445 * x + x @ (2.0315 * a @ a - 4.775 * a)
    return w - 0.02 * x


def clipped(w: Tensor, g: Tensor, m: Tensor, over: Kind) -> Tensor:
    """By the largest element of all gradients."""
    top = g.abs().max()
    top = top if over is not total else largest(top)
    return w - 0.1 * g * (1.0 / (top + 1e-6)).clamp(max=1.0)


def scaled(w: Tensor, g: Tensor, m: Tensor, over: Kind) -> Tensor:
    """Skipped where a gradient is not finite, on all ranks or on none; the loss was multiplied before."""
    found = largest((~torch.isfinite(g)).any().float())
    return torch.where(found > 0, w, w - 0.1 * over(g / 1024.0))


Step = Callable[[Tensor, Tensor, Tensor, Kind], Tensor]


def refined(step: Step, over: Kind) -> Verdict:
    def whole(w: Tensor, g: Tensor, m: Tensor) -> Tensor:
        return step(w, g, m, lambda x: x)

    def rank(w: Tensor, g: Tensor, m: Tensor) -> Tensor:
        return step(w, g, m, over)

    def given(rows: int) -> tuple[Tensor, ...]:
        return tuple(torch.zeros(rows, WIDTH) for _ in range(3))

    def build(mesh: DeviceMesh) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
        return rank, given(ROWS // RANKS)

    shares = dict.fromkeys("wgm", "Shard(0)")
    return rw.refine(rw.capture(whole, given(ROWS)), rw.capture_ranks(build, {"dp": RANKS}), shares, audit=True)


@pytest.mark.parametrize("step", [lamb, adafactor, muon, clipped])
def test_what_is_made_of_all_rows(step: Step) -> None:
    verdict = refined(step, total)
    assert verdict.status == "proved", verdict.reason
    assert refined(step, lambda x: x).status == "refuted"


def test_a_step_that_is_skipped_on_all_ranks() -> None:
    verdict = refined(scaled, lambda x: x)
    assert verdict.status == "proved", verdict.reason
    assert refined(scaled, total).status == "refuted"
