"""A token mixer with the sequence split over one mesh axis and the batch over another, by hand.

Features and sequence trade places in an all-to-all before the tokens are mixed and after it; parameters are
replicated, and their gradients are summed over both axes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends.torch import capture, capture_ranks
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram, place
from rewright.zoo.megatron import Sum, apply

dist: Any = torch.distributed
SEQUENCE, BATCH, WIDTH = 8, 4, 12
MESH = {"dp": 2, "cp": 2}


class Exchange(torch.autograd.Function):
    """Features for sequence (``forwards``) or the other way round; the gradient takes the way back."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any, forwards: bool) -> torch.Tensor:
        """(sequence, batch, features), one of sequence and features split."""
        ctx.group, ctx.forwards = group, forwards
        return exchange(x, group, forwards)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """The exchange back."""
        return exchange(gradients[0], ctx.group, not ctx.forwards), None, None


def exchange(x: torch.Tensor, group: Any, forwards: bool) -> torch.Tensor:
    """Every rank gets its features of the whole sequence, or its part of the sequence with all features."""
    sent = torch.stack(x.chunk(dist.get_world_size(group), dim=2 if forwards else 0))
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    return torch.cat(received.unbind(), dim=0 if forwards else 2)


class Mixer(nn.Module):
    """Mixes tokens, then features, with a residual connection; and the mean squared error of its result."""

    def __init__(self, mesh: DeviceMesh | None = None) -> None:
        super().__init__()
        self.mesh = mesh
        self.tokens = nn.Parameter(torch.empty(SEQUENCE, SEQUENCE))
        self.features = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
        """(sequence, batch, width); ``output`` of the same shape, and ``loss``."""
        own = self.swap(x, True)
        mixed = (self.tokens @ own.flatten(1)).view(own.shape)
        result = x + self.features(F.silu(self.swap(mixed, False)))
        loss = (result - target).pow(2).sum() / (SEQUENCE * BATCH * WIDTH)
        for name in MESH if self.mesh is not None else ():
            assert self.mesh is not None
            loss = apply(Sum, loss, self.mesh.get_group(name))
        return {"loss": loss, "output": result}

    def swap(self, x: torch.Tensor, forwards: bool) -> torch.Tensor:
        """Features for sequence, where there is more than one rank."""
        return x if self.mesh is None else apply(Exchange, x, self.mesh.get_group("cp"), forwards)


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
