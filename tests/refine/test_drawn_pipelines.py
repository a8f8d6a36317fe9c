"""PyTorch's pipelines with dropout in every stage: parts of a batch in turn, and each stage with a seed of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

import rewright as rw
from rewright.ir.placement import RankProgram

X = torch.ones(4, 4)
HELD = {"x": "Replicate()", "labels": "Replicate()"}


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.drop = nn.Linear(4, 4, bias=False), nn.Dropout(0.25)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.tanh(self.inner(x)))


class Net(nn.Module):
    def __init__(self, layers: str = "01") -> None:
        super().__init__()
        self.layers = nn.ModuleDict({name: Layer() for name in layers})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers.values():
            x = layer(x)
        return x


def mean_square(y: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return (y - labels).square().mean()


def whole(model: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    loss = mean_square(model(x), labels)
    loss.backward()
    return {"loss": loss.detach()}


def stages(schedule: Any, seed: Callable[[int], int]) -> RankProgram:
    def build(mesh: Any) -> Any:
        rank = mesh.get_local_rank()
        model = Net(str(rank))
        torch.manual_seed(seed(rank))
        stage = PipelineStage(model, rank, 2, torch.device("cpu"), group=mesh.get_group())
        run = schedule(stage, 2, loss_fn=mean_square)

        def step(_: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            losses: list[torch.Tensor] = []
            if rank == 0:
                run.step(x)
                return {"unused": x.sum() * 0}
            run.step(target=labels, losses=losses)
            return {"loss": torch.stack(losses).mean()}

        return step, (model, torch.ones(4, 4), torch.ones(4, 4))

    return rw.capture_ranks(build, mesh={"pp": 2}, ranks="threads")


@pytest.mark.parametrize("schedule", [ScheduleGPipe, Schedule1F1B])
def test_stages_draw_for_their_layers_from_seeds_of_their_own(schedule: Any) -> None:
    sequential = rw.capture(whole, (Net(), X, X))
    assert rw.refine(sequential, stages(schedule, lambda rank: rank), HELD).status == "proved"
    verdict = rw.refine(sequential, stages(schedule, lambda _: 7), HELD)
    assert (verdict.status, verdict.findings[0].kind) == ("refuted", "random_numbers")
