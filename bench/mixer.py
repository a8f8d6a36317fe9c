"""A token mixer with the sequence split over one mesh axis and the batch over another, by hand.

Features and sequence trade places in an all-to-all before the tokens are mixed and after it; parameters are
replicated, and their gradients are summed over both axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram, place
from zoo.megatron import Exchange, Operation, apply, keep, reduce

dist: Any = torch.distributed
SEQUENCE, BATCH, WIDTH = 8, 4, 12
MESH = {"dp": 2, "cp": 2}


def to_features(x: torch.Tensor, group: Any) -> torch.Tensor:
    """(part of the sequence, batch, features) to (sequence, batch, this rank's features)."""
    return torch.cat(exchange(x.chunk(dist.get_world_size(group), dim=2), group), dim=0)


def to_sequence(x: torch.Tensor, group: Any) -> torch.Tensor:
    """The way back."""
    return torch.cat(exchange(x.chunk(dist.get_world_size(group), dim=0), group), dim=2)


def exchange(parts: Sequence[torch.Tensor], group: Any) -> Sequence[torch.Tensor]:
    """One part for each rank, and one from each."""
    sent = torch.stack(tuple(parts))
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    return received.unbind()


class Mixer(nn.Module):
    """Mixes tokens, then features, with a residual connection; and the mean squared error of its result."""

    def __init__(self, mesh: DeviceMesh | None = None) -> None:
        super().__init__()
        self.mesh = mesh
        self.tokens = nn.Parameter(torch.empty(SEQUENCE, SEQUENCE))
        self.features = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        """(sequence, batch, width); ``output`` of the same shape, and ``loss``."""
        own = self.swap(x, to_features, to_sequence)
        mixed = (self.tokens @ own.flatten(1)).view(own.shape)
        result = x + self.features(F.silu(self.swap(mixed, to_sequence, to_features)))
        loss = (result - target).pow(2).sum() / (SEQUENCE * BATCH * WIDTH)
        for name in MESH if self.mesh is not None else ():
            assert self.mesh is not None
            loss = apply(Exchange, loss, self.mesh.get_group(name), reduce, keep)
        return {"loss": loss, "output": result}

    def swap(self, x: torch.Tensor, there: Operation, back: Operation) -> torch.Tensor:
        """An exchange within the group that splits the sequence, where there is one; gradients go back."""
        return x if self.mesh is None else apply(Exchange, x, self.mesh.get_group("cp"), there, back)


def step(model: Mixer, x: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
    """Forward, backward, and the sums of gradients over both axes."""
    results = model(x, target)
    results["loss"].backward()
    for parameter in model.parameters():
        for name in MESH:
            assert model.mesh is not None
            dist.all_reduce(parameter.grad, group=model.mesh.get_group(name))
    return results


def mixer() -> tuple[Graph, RankProgram]:
    """The sequential program, and that of four ranks."""

    def inputs(parts: int) -> dict[str, torch.Tensor]:
        shape = SEQUENCE // parts, BATCH // parts, WIDTH
        return {"x": torch.zeros(shape, device="meta"), "target": torch.zeros(shape, device="meta")}

    def build(mesh: DeviceMesh | None) -> Mixer:
        with torch.device("meta"):
            return Mixer(mesh)

    sequential = capture(build(None), (), inputs(1), backward=True)
    program = capture_ranks(lambda mesh: (step, (build(mesh),), inputs(2)), MESH, backward=True)
    cut = place((SEQUENCE, BATCH, WIDTH), program.mesh, ["Shard(1)", "Shard(0)"])
    return sequential, replace(
        program, inputs={**program.inputs, "x": cut, "target": cut}, outputs={**program.outputs, "output": cut}
    )
