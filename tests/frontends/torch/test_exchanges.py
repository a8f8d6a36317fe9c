"""Heads take the place of tokens between two all-to-alls of torch: forward, backward and both kinds of collectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.placement import place
from rewright.refine import refine
from rewright.refine.verdict import Verdict
from zoo.megatron import Exchange, apply, keep, reduce

TOKENS, BATCH, HEADS, HEAD = 8, 2, 4, 4
WIDTH = HEADS * HEAD
Collective = Callable[[torch.Tensor, Any], torch.Tensor]


def in_place(sent: torch.Tensor, group: Any) -> torch.Tensor:
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    return received


def returned(sent: torch.Tensor, group: Any) -> torch.Tensor:
    return functional.wait_tensor(functional.all_to_all_single(sent, None, None, group))


class Attention(nn.Module):
    """Self-attention with a residual connection; parts are put together along ``tokens_along`` and ``heads_along``."""

    def __init__(
        self,
        group: Any = None,
        collective: Collective = in_place,
        tokens_along: int = 0,
        heads_along: int = 2,
    ) -> None:
        super().__init__()
        self.group, self.collective = group, collective
        self.tokens_along, self.heads_along = tokens_along, heads_along
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """(tokens, batch, width); ``output`` of the same shape, and ``loss``."""
        split = [project(x).view(*x.shape[:2], HEADS, HEAD) for project in (self.query, self.key, self.value)]
        q, k, v = (self.swap(y, self.to_heads, self.to_tokens) for y in split)
        scores = torch.einsum("sbhd,tbhd->bhst", q, k) * HEAD**-0.5
        mixed = torch.einsum("bhst,tbhd->sbhd", scores.softmax(-1), v)
        result = x + self.output(self.swap(mixed, self.to_tokens, self.to_heads).reshape(x.shape))
        loss = result.square().sum()
        return {
            "loss": loss if self.group is None else apply(Exchange, loss, self.group, reduce, keep),
            "output": result,
        }

    def swap(self, x: torch.Tensor, there: Collective, back: Collective) -> torch.Tensor:
        """An exchange where there is more than one rank."""
        return x if self.group is None else apply(Exchange, x, self.group, there, back)

    def to_heads(self, x: torch.Tensor, group: Any) -> torch.Tensor:
        """(part of the tokens, batch, heads, head) to (tokens, batch, this rank's heads, head)."""
        size = dist.get_world_size(group)
        sent = x.view(*x.shape[:2], size, x.shape[2] // size, HEAD).permute(2, 0, 1, 3, 4).contiguous()
        return torch.cat(self.collective(sent, group).unbind(), dim=self.tokens_along)

    def to_tokens(self, x: torch.Tensor, group: Any) -> torch.Tensor:
        """The way back."""
        size = dist.get_world_size(group)
        sent = x.view(size, x.shape[0] // size, *x.shape[1:]).contiguous()
        return torch.cat(self.collective(sent, group).unbind(), dim=self.heads_along)


def step(model: Attention, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Forward, backward, and the sums of the gradients over the ranks."""
    results = model(x)
    results["loss"].backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=model.group)
    return results


def verdict(world: int, **options: Any) -> Verdict:
    def x(parts: int) -> torch.Tensor:
        return torch.zeros(TOKENS // parts, BATCH, WIDTH)

    def build(mesh: DeviceMesh) -> tuple[object, tuple[object, ...]]:
        return step, (Attention(mesh.get_group(0), **options), x(world))

    program = capture_ranks(build, {"sp": world}, backward=True)
    cut = place((TOKENS, BATCH, WIDTH), program.mesh, ["Shard(0)"])
    program = replace(program, inputs=program.inputs | {"x": cut}, outputs=program.outputs | {"output": cut})
    return refine(capture(Attention(), (x(1),), backward=True), program)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("world", "collective"), [(2, in_place), (2, returned), (4, in_place)])
def test_output_loss_and_gradients_are_those_of_one_device(world: int, collective: Collective) -> None:
    found = verdict(world, collective=collective)
    assert found.status == "proved", found.reason
