"""Ranks that are traced once: their programs are those of ranks that are traced one by one."""

import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

import zoo
from bench.programs import PAIRS
from rewright.frontends import fitting
from rewright.frontends.torch.alike.lowering import lower_alike
from rewright.frontends.torch.alike.numbers import Differ
from rewright.frontends.torch.alike.tracing import trace_alike
from rewright.frontends.torch.lower import lower
from rewright.frontends.torch.one_rank import Build, trace_rank
from rewright.frontends.torch.ranks import capture_ranks
from rewright.ir.errors import CaptureError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh

RANKS = Mesh.of({"tp": 4})


def alike(build: Build, *, backward: bool = False) -> dict[int, Graph]:
    """The graphs of ranks that one trace and one lowering give."""
    with trace_alike(build, RANKS, backward=backward) as found, found.at(1):
        return lower_alike({rank: found.program(rank) for rank in range(4)}, found.arguments, 1)


def apart(build: Build, rank: int, *, backward: bool = False) -> Graph:
    return lower(trace_rank(build, RANKS, rank, backward=backward).trace.program)


def assert_same(build: Build, *, backward: bool = False, together: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    graphs = alike(build, backward=backward)
    assert tuple(sorted(graphs)) == together
    for rank, graph in graphs.items():
        assert fitting.same(graph, apart(build, rank, backward=backward)), rank


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 8)
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(self.norm(self.table(ids))))).square().mean()


def split(mesh: DeviceMesh) -> tuple[nn.Module, tuple[torch.Tensor]]:
    with torch.device("meta"):
        net = Net()
    plan = {
        "table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Replicate()),
    }
    parallelize_module(net, mesh, plan)
    return net, (torch.zeros(2, 8, dtype=torch.int64),)


@pytest.mark.parametrize("backward", [False, True])
def test_a_split_vocabulary_and_a_split_sequence(backward: bool) -> None:
    assert_same(split, backward=backward)


@pytest.mark.parametrize(("name", "plan"), [("decoder", "megatron_sp"), ("llama", "dtensor_sp_loss")])
def test_programs_of_the_zoo(name: str, plan: str) -> None:
    assert_same(zoo.parallel(name, plan, "tiny", degree=4, backward=True), backward=True)


@pytest.mark.long
@pytest.mark.parametrize(("name", "plan"), [pair for pair in PAIRS if pair[1] != "tp_plan"])  # that asks for texts
def test_the_zoo(name: str, plan: str) -> None:
    assert_same(zoo.parallel(name, plan, "tiny", degree=4, backward=True), backward=True)


def own_rows(_: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor, ...]]:
    """Numbers of the rank in operators, and in one that adds a node less on one of the ranks: there it adds nought."""
    start = dist.get_rank() * 4

    def run(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        mine = ids - start
        mine[(ids < start) | (ids >= start + 4)] = 0
        return table[mine]

    return run, (torch.zeros(8, dtype=torch.int64), torch.zeros(4, 3))


def test_numbers_of_the_rank_in_operators_that_write() -> None:
    assert_same(own_rows, together=(1, 2, 3))


def test_equal_numbers_are_one_constant_where_a_rank_has_them() -> None:
    def build(_: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        rank = dist.get_rank()
        return lambda x: (x + rank, torch.full_like(x, 2.0) * x, (x * 2).where(x > rank, 3.0)), (torch.zeros(5),)

    assert_same(build, together=(1, 2, 3))


BRANCHES: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    "a branch": lambda rank, x: x * 2 if rank == 0 else x,
    "a branch that is caught": lambda rank, x: _caught(lambda: x * 2 if rank == 0 else x, x),
    "a text": lambda rank, x: x * len(f"{rank:03}"),
    "a list": lambda rank, x: x * [1.0, 2.0, 3.0, 4.0][rank],
    "a table": lambda rank, x: x * {0: 1.0, 1: 2.0}.get(rank, 3.0),
    "a size": lambda rank, x: x[: rank + 1].sum(),
    "a part": lambda rank, x: x[rank * 2 : rank * 2 + 2],
    "a float": lambda rank, x: x * (rank / 4),
    "a tensor": lambda rank, x: x * torch.tensor(rank),
}


def _caught(run: Callable[[], torch.Tensor], otherwise: torch.Tensor) -> torch.Tensor:
    try:
        return run()
    except Exception:  # as programs do
        return otherwise


@pytest.mark.parametrize("name", BRANCHES)
def test_a_program_that_looks_at_its_rank_is_traced_rank_by_rank(name: str) -> None:
    def build(_: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        rank = dist.get_rank()
        return lambda x: BRANCHES[name](rank, x), (torch.zeros(8),)

    with pytest.raises((Differ, CaptureError, TypeError)):
        alike(build)
    program = capture_ranks(build, {"tp": 4})
    assert [fitting.same(graph, apart(build, rank)) for rank, graph in enumerate(program.graphs)] == [True] * 4


def test_a_rank_in_the_values_of_the_model_is_traced_rank_by_rank() -> None:
    def build(mesh: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        scale = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)], src_data_rank=None).to_local()
        return lambda x: x * scale, (torch.zeros(8),)

    with pytest.raises(CaptureError, match="a tensor with values is split"):
        alike(build)
    program = capture_ranks(build, {"tp": 4})
    assert [fitting.same(graph, apart(build, rank)) for rank, graph in enumerate(program.graphs)] == [True] * 4


def test_what_a_rank_knows_otherwise_shows_in_the_last_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that is in no process group, as in a variable that a launcher sets before each build."""
    ranks = iter([0, 3, 0, 1, 2, 3])
    parent = os.getpid()

    def build(_: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        scale = 0.0 if os.getpid() != parent else float(next(ranks))
        return lambda x: x + scale, (torch.zeros(8),)

    assert next(ranks) == 0  # what the copy of this process has
    program = capture_ranks(build, {"tp": 4})
    constants = [[str(n.op) for n in graph.nodes if n.op.name == "constant"] for graph in program.graphs]
    assert len({tuple(found) for found in constants}) == 4


def test_a_daemon_which_has_no_children_traces_rank_by_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)  # as a worker of a pool is one
    assert len(capture_ranks(split, {"tp": 4}).graphs) == 4


def test_groups_of_some_ranks_are_traced_rank_by_rank() -> None:
    def build(_: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        halves = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])]
        mine = halves[0] if dist.get_rank() < 2 else halves[1]

        def run(x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            dist.all_reduce(y, group=mine)
            return y

        return run, (torch.zeros(8),)

    with pytest.raises(CaptureError, match="a process group has not all ranks"):
        alike(build)
    groups = [str(node.op) for graph in capture_ranks(build, {"tp": 4}).graphs for node in graph.nodes[1:]]
    assert any("(0, 1)" in text for text in groups)
    assert any("(2, 3)" in text for text in groups)


def test_a_group_of_one_rank_is_each_ranks_own() -> None:
    def build(_: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
        mesh = init_device_mesh("cpu", (1, 4), mesh_dim_names=("alone", "all"))

        def run(x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            dist.all_reduce(y, group=mesh.get_group("alone"))
            dist.all_reduce(y, group=mesh.get_group("all"))
            return y

        return run, (torch.zeros(8),)

    assert_same(build)


def groups_for_ends(_: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
    ends = [dist.new_group([rank]) for rank in (0, 3)]
    mine = sum(group is not dist.GroupMember.NON_GROUP_MEMBER for group in ends)
    return lambda x: x * (1 + mine), (torch.zeros(8),)


def meshes_for_ends(_: DeviceMesh) -> tuple[Callable[..., Any], tuple[torch.Tensor]]:
    ends = [DeviceMesh("cpu", [rank], mesh_dim_names=("one",)) for rank in (0, 3)]
    mine = sum(mesh.get_coordinate() is not None for mesh in ends)
    return lambda x: x * (1 + mine), (torch.zeros(8),)


@pytest.mark.parametrize("build", [groups_for_ends, meshes_for_ends])
def test_groups_that_the_first_and_the_last_rank_have_are_no_other_ranks(build: Build) -> None:
    with pytest.raises(CaptureError, match=r"a group of its own for some ranks only|has not all ranks"):
        alike(build)
    program = capture_ranks(build, {"tp": 4})
    assert [fitting.same(graph, apart(build, rank)) for rank, graph in enumerate(program.graphs)] == [True] * 4
    assert not fitting.same(program.graphs[0], program.graphs[1])
