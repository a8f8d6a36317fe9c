"""Gradients are clipped by the norm of all of them: of shards, of replicas, by torch and by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import rewright as rw
from rewright.refine.verdict import Verdict

BATCH = 8
Step = Callable[[nn.Module, torch.Tensor], dict[str, torch.Tensor]]


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


def clipped(model: nn.Module, x: torch.Tensor, order: float = 2.0) -> dict[str, torch.Tensor]:
    """As torch does it; the gradients are outputs as well."""
    model(x).square().mean().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type=order)
    return {"norm": norm.full_tensor() if isinstance(norm, DTensor) else norm}


def by_hand(
    model: nn.Module, x: torch.Tensor, total: Callable[[torch.Tensor], torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Gradients scaled by the norm that ``total`` makes of the sum of squares of a rank."""
    model(x).square().mean().backward()
    gradients = [p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad for p in model.parameters()]
    squares: Any = sum(g.square().sum() for g in gradients if g is not None)
    norm = total(squares)
    for gradient in gradients:
        assert gradient is not None
        gradient.mul_((0.5 / (norm + 1e-6)).clamp(max=1.0))
    return {"norm": norm}


def reduced(x: torch.Tensor, op: Any = dist.ReduceOp.SUM) -> torch.Tensor:
    if dist.is_initialized():
        dist.all_reduce(x, op)
    return x


def sharded(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    return fully_shard(model, mesh=mesh)


def split(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Tensor parallelism; every rank holds the bias of the second layer."""
    return parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})


def verdict(step: Step, parallel: Callable[[nn.Module, DeviceMesh], nn.Module], world: int, parts: int) -> Verdict:
    def build(mesh: DeviceMesh) -> tuple[Step, tuple[nn.Module, torch.Tensor]]:
        return step, (parallel(FeedForward(), mesh), torch.zeros(BATCH // parts, 4))

    sequential = rw.capture(step, (FeedForward(), torch.zeros(BATCH, 4)))
    program = rw.capture_ranks(build, {"ranks": world})
    return rw.refine(sequential, program, relations={"x": "Shard(0)" if parts > 1 else "Replicate()"})


@pytest.mark.sample(3)
@pytest.mark.parametrize(("world", "order"), [(2, 2.0), (4, 2.0), (2, 1.0)])
def test_torch_clips_sharded_gradients(world: int, order: float) -> None:
    found = verdict(partial(clipped, order=order), sharded, world, world)
    assert found.status == "proved", found.reason
    assert found.relation["norm"].placement == "Replicate()"


def test_torch_divides_the_norm_of_replicas_by_a_rounded_root() -> None:
    found = verdict(clipped, split, 2, 1)
    assert found.status == "proved", found.reason
    assert any("1.4142135623730951 for the root of 2" in text for text in found.assumptions), found.assumptions


HANDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the root of the sum": lambda squares: reduced(squares).sqrt(),
    "norms squared again": lambda squares: reduced(squares.sqrt() ** 2).sqrt(),
}
WRONG: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "no reduction": lambda squares: squares.sqrt(),
    "a sum of norms": lambda squares: reduced(squares.sqrt()),
    "the largest norm": lambda squares: reduced(squares, dist.ReduceOp.MAX).sqrt(),
    "a mean": lambda squares: reduced(squares, dist.ReduceOp.AVG).sqrt(),
    "no root": lambda squares: reduced(squares),
}


@pytest.mark.parametrize("name", HANDS)
def test_norms_by_hand(name: str) -> None:
    found = verdict(partial(by_hand, total=HANDS[name]), sharded, 2, 2)
    assert found.status == "proved", found.reason


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", WRONG)
def test_other_norms_are_refuted(name: str) -> None:
    right = rw.capture(partial(by_hand, total=HANDS["the root of the sum"]), (FeedForward(), torch.zeros(BATCH, 4)))

    def build(mesh: DeviceMesh) -> tuple[Step, tuple[nn.Module, torch.Tensor]]:
        return partial(by_hand, total=WRONG[name]), (sharded(FeedForward(), mesh), torch.zeros(BATCH // 2, 4))

    program = rw.capture_ranks(build, {"ranks": 2})
    assert rw.refine(right, program, relations={"x": "Shard(0)"}).status == "refuted"


def test_replicas_that_are_counted_twice_are_refuted() -> None:
    """Under tensor parallelism the sum over ranks has the squares of a replica once for each rank."""
    assert verdict(partial(by_hand, total=HANDS["the root of the sum"]), split, 2, 1).status == "refuted"
