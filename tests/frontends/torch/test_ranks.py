"""Captures of all ranks: what is read off DTensors, and the ways in which one process could mix its ranks up."""

import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from rewright import ops
from rewright.frontends.torch.capture import capture
from rewright.frontends.torch.ranks import capture_ranks, trace_rank
from rewright.ir.errors import CaptureError
from rewright.ir.placement import Mesh
from tests.zoo.agreement import disagreements


class FeedForward(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.up = nn.Linear(4, width)
        self.down = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.tanh(self.up(x))).square().sum()


X = torch.zeros(5, 4)


def split(mesh: DeviceMesh) -> tuple[nn.Module, tuple[torch.Tensor]]:
    model = FeedForward()
    parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model, (X,)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_split_layer_agrees_with_the_sequential_one(jobs: int) -> None:
    program = capture_ranks(split, {"tp": 3}, backward=True, jobs=jobs)
    assert disagreements(capture(FeedForward(), (X,), backward=True), program) == {}
    assert str(program.inputs["up.weight"]) == "Shard(0)"
    assert str(program.inputs["down.weight"]) == "Shard(1)"
    assert str(program.outputs["grad:down.bias"]) == "Replicate()"
    assert program.notes == ()


def test_every_rank_gets_its_own_coordinate_although_dtensor_caches_decisions() -> None:
    def build(mesh: DeviceMesh) -> tuple[Callable[..., Any], tuple[DTensor]]:
        tokens = distribute_tensor(torch.arange(8), mesh, [Replicate()], src_data_rank=None)
        return lambda tokens: {"mine": tokens.redistribute(placements=[Shard(0)])}, (tokens,)

    program = capture_ranks(build, {"x": 4})
    starts = [[n.op.start for n in graph.nodes if isinstance(n.op, ops.Slice)] for graph in program.graphs]
    assert [found[-1] if found else (0,) for found in starts] == [(0,), (2,), (4,), (6,)]
    assert [runs[0] for runs in program.outputs["mine"].runs] == [((0, 2),), ((2, 2),), ((4, 2),), ((6, 2),)]


def test_the_vocabulary_mask_of_each_rank_has_its_own_bounds() -> None:
    def build(mesh: DeviceMesh) -> tuple[nn.Module, tuple[torch.Tensor]]:
        model = nn.Sequential(nn.Embedding(10, 2))
        parallelize_module(model, mesh, {"0": RowwiseParallel(input_layouts=Replicate())})
        return model, (torch.zeros(3, dtype=torch.long),)

    program = capture_ranks(build, {"tp": 4})
    assert [runs[0] for runs in program.inputs["0.weight"].runs] == [((0, 3),), ((3, 3),), ((6, 3),), ((9, 1),)]
    sequential = capture(nn.Sequential(nn.Embedding(10, 2)), (torch.zeros(3, dtype=torch.long),))
    assert disagreements(sequential, program, vocabulary=10) == {}


def test_partial_results_name_their_axis_and_reduction() -> None:
    def build(mesh: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        def function(x: torch.Tensor) -> DTensor:
            return DTensor.from_local(x, mesh, [Replicate(), Partial("max")], run_check=False)

        return function, (X,)

    placement = capture_ranks(build, {"dp": 2, "tp": 2}).outputs["output"]
    assert placement.printed == ("Replicate()", 'Partial("max")')
    assert (placement.partial, placement.reduction) == (("tp",), "max")


def test_arguments_may_be_dtensors() -> None:
    def build(mesh: DeviceMesh) -> tuple[Callable[..., Any], tuple[DTensor]]:
        return torch.tanh, (distribute_tensor(torch.zeros(7, 2), mesh, [Shard(0)], src_data_rank=None),)

    program = capture_ranks(build, {"x": 2})
    (placement,) = program.inputs.values()
    assert [placement.local_shape(rank) for rank in (0, 1)] == [(4, 2), (3, 2)]
    assert str(program.outputs["output"]) == "Shard(0)"


def test_a_submesh_is_replicated_over_the_other_axes() -> None:
    def build(mesh: DeviceMesh) -> tuple[nn.Module, tuple[torch.Tensor]]:
        return split(mesh["tp"])

    program = capture_ranks(build, {"dp": 2, "tp": 2})
    placement = program.inputs["up.weight"]
    assert placement.printed == ("Replicate()", "Shard(0)")
    assert [runs[0] for runs in placement.runs] == [((0, 3),), ((3, 3),)] * 2


def test_plain_tensors_have_no_placement() -> None:
    def build(mesh: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        def function(x: torch.Tensor) -> torch.Tensor:
            y = x.clone()
            dist.all_reduce(y)
            return y

        return function, (X,)

    program = capture_ranks(build, {"x": 2})
    assert (program.inputs, program.outputs) == ({}, {})


def test_a_program_without_collectives_is_noted() -> None:
    program = capture_ranks(lambda mesh: (FeedForward(), (X,)), {"dp": 2}, backward=True)
    assert "no rank of 2 calls a collective" in program.notes[0]
    assert capture_ranks(lambda mesh: (FeedForward(), (X,)), {"dp": 1}).notes == ()


def test_results_that_only_some_ranks_return_are_noted() -> None:
    def build(mesh: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        first = mesh.get_rank() == 0
        return lambda x: {"y": x + 1} | ({"loss": x.sum()} if first else {}), (X,)

    assert capture_ranks(build, {"pp": 2}).notes[-1] == "only some ranks return loss"


def test_nothing_is_left_behind() -> None:
    capture_ranks(split, {"tp": 2})
    assert not dist.is_initialized()
    before, hook = dist.new_group, sys.excepthook
    with pytest.raises(CaptureError):
        capture_ranks(lambda mesh: 1 / 0, {"tp": 2})
    assert not dist.is_initialized()
    assert dist.new_group is before
    assert sys.excepthook is hook


def test_an_own_process_group_is_refused() -> None:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    try:
        with pytest.raises(CaptureError, match="destroy_process_group"):
            capture_ranks(split, {"tp": 2})
    finally:
        dist.destroy_process_group()


def test_failures_while_building_are_one_line_with_their_place() -> None:
    def build(mesh: DeviceMesh) -> tuple[nn.Module, tuple[torch.Tensor]]:
        raise ValueError("heads do not divide\nmany\nmore lines")

    for jobs in (1, 2):
        with pytest.raises(CaptureError) as caught:
            capture_ranks(build, {"tp": 2}, jobs=jobs)
        text = str(caught.value)
        assert "building the model of rank 0" in text
        assert "test_ranks.py" in text
        assert text.endswith("ValueError: heads do not divide; correct the program")


def test_prefixes_of_ranks_and_rules_of_dashes_are_no_message() -> None:
    def build(mesh: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        def function(x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("=====\n[rank0]: [rank0]: the reason\n  more")

        return function, (X,)

    with pytest.raises(CaptureError, match=r"RuntimeError: the reason; correct the program$"):
        capture_ranks(build, {"tp": 2})


def test_a_build_that_returns_something_else_is_refused() -> None:
    with pytest.raises(CaptureError, match="returned FeedForward"):
        capture_ranks(lambda mesh: FeedForward(), {"tp": 2})


def test_a_model_that_wants_to_download_is_refused() -> None:
    def build(mesh: DeviceMesh) -> tuple[nn.Module, tuple[torch.Tensor]]:
        try:
            socket.create_connection(("weights.example", 443))
        except Exception as error:
            raise OSError("We could not connect.\nCheck your internet connection.") from error
        return FeedForward(), (X,)

    with pytest.raises(CaptureError, match=r"wants to download from weights\.example") as caught:
        capture_ranks(build, {"tp": 2})
    assert "\n" not in str(caught.value)


def test_an_empty_mesh_is_refused() -> None:
    with pytest.raises(CaptureError, match="no ranks"):
        capture_ranks(split, {"tp": 0})


def test_rank_traces_keep_the_names_of_the_groups() -> None:
    traced = trace_rank(split, Mesh.of({"tp": 2}), 1)
    assert {group.ranks for group in traced.trace.program.groups.values()} == {(0, 1)}
    assert traced.collectives == 1


def test_a_program_may_ask_its_mesh_for_a_part_of_it() -> None:
    def build(mesh: DeviceMesh) -> Any:
        def step(x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            dist.all_reduce(y, group=mesh["tp"].get_group())
            return y

        return step, (X,)

    program = capture_ranks(build, {"dp": 2, "tp": 2})
    assert all(any(isinstance(node.op, ops.AllReduce) for node in graph.nodes) for graph in program.graphs)
