"""Parameters that say of themselves how they are split, as Megatron-LM's do, in a gated layer written by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.frontends.torch.marks import Mark, mark_of, read_mark
from rewright.ir.placement import Mesh

INNER = 8


class Gated(nn.Module):
    """Gate and projection in one weight, the gate first."""

    def __init__(self, ranks: int) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.zeros(2 * INNER // ranks, 4))
        self.down = nn.Parameter(torch.zeros(4, INNER // ranks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = F.linear(x, self.up).chunk(2, -1)
        return F.linear(F.silu(gate) * value, self.down)


def marked(weight: nn.Parameter, axis: int, stride: int = 1) -> None:
    attributes = {"tensor_model_parallel": True, "partition_dim": axis, "partition_stride": stride}
    for name, value in attributes.items():
        setattr(weight, name, value)


def step(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The ranks' outputs are addends, and so is the loss, which is linear in them."""
    loss = model(x).sum()
    loss.backward()
    total = loss.detach().clone()
    if dist.is_initialized():
        dist.all_reduce(total)
    return {"loss": total}


def ranks(stride: int, mesh: dict[str, int]) -> Any:
    def build(device_mesh: DeviceMesh) -> Any:
        model = Gated(mesh["tp"])
        marked(model.up, 0, stride)
        marked(model.down, 1)
        return step, (model, torch.zeros(3, 4))

    return rw.capture_ranks(build, mesh=mesh)


SEQUENTIAL = rw.capture(step, (Gated(1), torch.zeros(3, 4)))


def test_a_fused_weight_is_read_as_blocks_that_are_split_each() -> None:
    program = ranks(2, {"tp": 2})
    assert str(program.inputs["up"]) == "StridedShard(0, 2)"
    assert program.inputs["up"].runs[1] == (((4, 4), (12, 4)), ((0, 4),))
    verdict = rw.refine(SEQUENTIAL, program)
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["grad:down"].equation == "grad:down = concat([grad:down@0, grad:down@1], axis=1)"
    assert verdict.relation["grad:up"].placement == "StridedShard(0, 2)"


def test_ranks_that_hold_a_fused_weight_in_one_piece_mix_gate_and_value() -> None:
    assert rw.refine(SEQUENTIAL, ranks(1, {"tp": 2})).status == "refuted"


def test_what_the_caller_says_counts_more() -> None:
    verdict = rw.refine(SEQUENTIAL, ranks(2, {"tp": 2}), relations={"up": "Shard(0)"}, expect={"grad:up": "Shard(0)"})
    assert verdict.status == "refuted"


def test_on_a_mesh_of_two_axes_nobody_knows_which_one_is_meant() -> None:
    assert not ranks(2, {"dp": 2, "tp": 2}).inputs


@pytest.mark.parametrize("attributes", [{}, {"partition_dim": 2}, {"partition_dim": 0, "partition_stride": 3}])
def test_a_mark_that_does_not_fit_is_none(attributes: dict[str, int]) -> None:
    weight = nn.Parameter(torch.zeros(4, 2))
    for name, value in {"tensor_model_parallel": True, **attributes}.items():
        setattr(weight, name, value)
    assert mark_of(weight) is None


@pytest.mark.parametrize(("parts", "stride"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_the_parts_are_those_that_megatron_deals_out(parts: int, stride: int) -> None:
    """Its initialization on a CPU cuts the whole into ``parts * stride`` pieces; rank ``r`` takes ``[r::parts]``."""
    pieces = torch.arange(parts * stride * 2).split(2)
    mesh = Mesh.of({"tp": parts})
    for rank in range(parts):
        placement = read_mark(Mark(0, stride, (2 * stride,)), mesh, rank)
        assert placement is not None
        (runs,) = placement.runs
        held = torch.cat([torch.arange(int(start), int(start) + int(size)) for start, size in runs])
        assert torch.equal(held, torch.cat(pieces[rank::parts]))
