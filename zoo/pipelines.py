"""Pipelines: the layers of a model over ranks, the batch in micro-batches, the gradients added up over these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

Program = tuple[Any, tuple[Any, ...], dict[str, Any]]

SCHEDULES = {
    "gpipe": "ScheduleGPipe",
    "1f1b": "Schedule1F1B",
    "interleaved": "ScheduleInterleaved1F1B",
    "looped": "ScheduleLoopedBFS",
    "zero bubble": "ScheduleInterleavedZeroBubble",
    "zero bubble, v": "ScheduleZBVZeroBubble",
    "dual pipe, v": "ScheduleDualPipeV",
}
"""Plans by the schedule of ``torch.distributed.pipelining`` that they use; ``sends`` is written by hand."""

_SINGLE = ("gpipe", "1f1b", "sends")
"""Plans with one stage for each rank; others have two, and those of a ``v`` go down the ranks and up again."""

WIDTH, ROWS = 4, 2

_torch: Any = torch


class Stack(nn.Module):
    """Layers by number, so that a stage's parameters have the names of the whole model."""

    def __init__(self, layers: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleDict(dict(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """All layers one after the other."""
        for layer in self.layers.values():
            x = layer(x)
        return x

    def part(self, start: int, stop: int) -> Stack:
        """Some of the layers, shared with this stack."""
        return Stack({str(number): self.layers[str(number)] for number in range(start, stop)})


def stack(count: int) -> Stack:
    """A model of ``count`` layers with the same parameters wherever it is made."""
    _torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(count)]
    return Stack({str(number): layer for number, layer in enumerate(layers)})


def batch(micro_batches: int) -> dict[str, torch.Tensor]:
    """Inputs and targets of all micro-batches."""
    _torch.manual_seed(1)
    return {name: torch.randn(ROWS * micro_batches, WIDTH) for name in ("x", "target")}


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean square."""
    return (output - target).pow(2).mean()


def whole_step(model: Stack, x: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
    """The training step on one device, all micro-batches at once."""
    loss: Any = loss_of(model(x), target)
    loss.backward()
    return {"loss": loss}


def sequential(degree: int) -> Program:
    """The model on one device."""
    return whole_step, (stack(2 * degree),), batch(2 * degree)


def parallel(plan: str, degree: int) -> Callable[[DeviceMesh], Program]:
    """What to build on each rank: a stage, or two, for twice as many micro-batches as ranks."""

    def build(mesh: DeviceMesh) -> Program:
        group, rank = mesh.get_group(), mesh.get_rank()
        size = 2 if plan in _SINGLE else 1
        model = stack(2 * degree)
        second = 2 * degree - 1 - rank if plan.endswith("v") else rank + degree
        mine = [rank] if plan in _SINGLE else [rank, second]
        parts = [model.part(number * size, (number + 1) * size) for number in mine]
        held = Stack({name: layer for part in parts for name, layer in part.layers.items()})
        ends = {"x"} if rank == 0 else set[str]()
        ends |= {"target"} if mine[-1] == (2 * degree) // size - 1 else set[str]()
        given = {name: value for name, value in batch(2 * degree).items() if name in ends}
        if plan == "sends":
            return _by_hand(group, 2 * degree), (held,), given
        return _scheduled(plan, parts, mine, group, 2 * degree), (held,), given

    return build


def _scheduled(
    plan: str, parts: Sequence[nn.Module], numbers: Sequence[int], group: Any, micro_batches: int
) -> Callable[..., dict[str, torch.Tensor]]:
    import torch.distributed.pipelining as pipelining

    library: Any = pipelining
    total = len(parts) * dist.get_world_size(group)
    cpu = torch.device("cpu")
    stages = [library.PipelineStage(p, n, total, cpu, group=group) for p, n in zip(parts, numbers, strict=True)]
    kind = getattr(library, SCHEDULES[plan])
    schedule = kind(stages if len(stages) > 1 else stages[0], n_microbatches=micro_batches, loss_fn=loss_of)

    def step(model: Stack, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        losses: list[torch.Tensor] | None = [] if "target" in given else None
        schedule.step(*([given["x"]] if "x" in given else []), target=given.get("target"), losses=losses)
        return {"loss": torch.stack(losses).mean()} if losses else {}

    return step


def _by_hand(group: Any, micro_batches: int) -> Callable[..., dict[str, torch.Tensor]]:
    """All forwards, then all backwards, with a message for every activation and every gradient."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)

    def received(source: int) -> torch.Tensor:
        buffer = torch.empty(ROWS, WIDTH)
        dist.recv(buffer, source, group)
        return buffer

    def step(model: Stack, **given: torch.Tensor) -> dict[str, torch.Tensor]:
        entered: list[torch.Tensor] = []
        left: list[torch.Tensor] = []
        for number in range(micro_batches):
            rows = slice(number * ROWS, (number + 1) * ROWS)
            entered.append(given["x"][rows] if rank == 0 else received(rank - 1).requires_grad_())
            output = model(entered[-1])
            if rank < size - 1:
                dist.send(output.detach(), rank + 1, group)
                left.append(output)
            else:
                left.append(loss_of(output, given["target"][rows]) / micro_batches)
        for start, end in zip(entered, left, strict=True):
            torch.autograd.backward(end, None if rank == size - 1 else received(rank + 1))
            if rank > 0:
                assert start.grad is not None
                dist.send(start.grad, rank - 1, group)
        return {"loss": torch.stack(left).sum()} if rank == size - 1 else {}

    return step
