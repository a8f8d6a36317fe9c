"""Every route to a collective ends in the graph, and computes what torch.distributed says."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed import all_reduce as bound_early
from torch.distributed.device_mesh import DeviceMesh

from rewright import ops
from rewright.frontends.torch.ranks import capture_ranks
from rewright.interp.ranks import run_ranks
from rewright.ir.errors import CaptureError
from rewright.ir.placement import RankProgram

WORLD = 4
Function = Callable[[torch.Tensor], torch.Tensor]
VALUES = [np.arange(8, dtype=np.float64).reshape(4, 2) + 10 * rank for rank in range(WORLD)]
TOTAL = sum(VALUES)


def captured(function: Function, mesh: dict[str, int] | None = None) -> RankProgram:
    def build(_: DeviceMesh) -> tuple[Function, tuple[torch.Tensor]]:
        return function, (torch.zeros(4, 2, dtype=torch.float64),)

    return capture_ranks(build, mesh or {"x": WORLD})


def results(function: Function, mesh: dict[str, int] | None = None) -> list[np.ndarray]:
    """What every rank returns when rank r is given VALUES[r]."""
    program = captured(function, mesh)
    executions = run_ranks(program.graphs, [{"x": value} for value in VALUES[: len(program.graphs)]])
    return [execution.outputs["output"] for execution in executions]


def same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right)


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    dist.all_reduce(y)
    return y


def early(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    bound_early(y, dist.ReduceOp.SUM, None, False)
    return y


def asynchronous(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    work = dist.all_reduce(y, async_op=True)
    assert work is not None
    work.wait()
    return y


def into_a_view(x: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(8, 2, dtype=x.dtype)
    y[:4] = x
    dist.all_reduce(y[:4])
    return y[:4]


def by_functional(x: torch.Tensor) -> torch.Tensor:
    return functional.all_reduce(x, "sum", dist.group.WORLD) * 1


def coalesced(x: torch.Tensor) -> torch.Tensor:
    top, bottom = x[:2].clone(), x[2:].clone()
    dist.all_reduce_coalesced([top, bottom])
    return torch.cat([top, bottom])


@pytest.mark.parametrize("route", [in_place, early, asynchronous, into_a_view, by_functional, coalesced])
def test_every_route_of_all_reduce(route: Function) -> None:
    same(results(route), [TOTAL] * WORLD)


def test_reductions_other_than_the_sum() -> None:
    def reduced(op: dist.ReduceOp.RedOpType) -> Function:
        def function(x: torch.Tensor) -> torch.Tensor:
            y = x.clone()
            dist.all_reduce(y, op=op)
            return y

        return function

    same(results(reduced(dist.ReduceOp.MAX)), [np.maximum.reduce(VALUES)] * WORLD)
    same(results(reduced(dist.ReduceOp.MIN)), [np.minimum.reduce(VALUES)] * WORLD)
    same(results(reduced(dist.ReduceOp.PRODUCT)), [np.multiply.reduce(VALUES)] * WORLD)
    same(results(reduced(dist.ReduceOp.AVG)), [TOTAL / WORLD] * WORLD)


def test_a_sum_with_a_factor() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        dist.all_reduce(y, op=dist._make_nccl_premul_sum(0.5))
        return y

    same(results(function), [TOTAL / 2] * WORLD)


def test_reduce_changes_the_root_only() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        dist.reduce(y, dst=2)
        return y

    same(results(function), [TOTAL if rank == 2 else VALUES[rank] for rank in range(WORLD)])


def test_broadcast_in_a_group_takes_a_global_rank() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        y = x.clone()
        source = 2 + dist.get_rank() % 2
        dist.broadcast(y, source, group=pairs[dist.get_rank() % 2])
        return y

    same(results(function), [VALUES[2], VALUES[3], VALUES[2], VALUES[3]])


def gathered_list(x: torch.Tensor) -> torch.Tensor:
    parts = [torch.empty_like(x) for _ in range(WORLD)]
    dist.all_gather(parts, x)
    return torch.cat(parts)


def gathered_tensor(x: torch.Tensor) -> torch.Tensor:
    whole = x.new_empty(4 * WORLD, 2)
    dist.all_gather_into_tensor(whole, x)
    return whole


def gathered_functionally(x: torch.Tensor) -> torch.Tensor:
    return functional.all_gather_tensor(x, 0, dist.group.WORLD) * 1


def test_a_list_of_all_gather_may_have_several_shapes() -> None:
    """Rank r gives r + 1 of its rows, as NCCL takes them and Muon relies on it."""

    def function(x: torch.Tensor) -> torch.Tensor:
        parts = [x.new_empty(rank + 1, 2) for rank in range(WORLD)]
        dist.all_gather(parts, x[: dist.get_rank() + 1])
        return torch.cat(parts)

    same(results(function), [np.concatenate([VALUES[rank][: rank + 1] for rank in range(WORLD)])] * WORLD)


@pytest.mark.parametrize("route", [gathered_list, gathered_tensor, gathered_functionally])
def test_every_route_of_all_gather(route: Function) -> None:
    same(results(route), [np.concatenate(VALUES)] * WORLD)


def test_gather_and_scatter_have_a_root() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        root = dist.get_rank() == 1
        parts = [torch.empty_like(x) for _ in range(WORLD)] if root else None
        dist.gather(x, parts, dst=1)
        part = torch.empty_like(x)
        dist.scatter(part, [2 * p for p in parts] if parts else None, src=1)
        return part

    same(results(function), [2 * value for value in VALUES])


def scattered_tensor(x: torch.Tensor) -> torch.Tensor:
    part = x.new_empty(1, 2)
    dist.reduce_scatter_tensor(part, x)
    return part


def scattered_list(x: torch.Tensor) -> torch.Tensor:
    part = x.new_empty(1, 2)
    dist.reduce_scatter(part, list(x.chunk(WORLD)))
    return part


@pytest.mark.parametrize("route", [scattered_tensor, scattered_list])
def test_every_route_of_reduce_scatter(route: Function) -> None:
    same(results(route), [TOTAL[rank : rank + 1] for rank in range(WORLD)])


def exchanged_tensor(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    dist.all_to_all_single(y, x)
    return y


def exchanged_list(x: torch.Tensor) -> torch.Tensor:
    parts = [x.new_empty(1, 2) for _ in range(WORLD)]
    dist.all_to_all(parts, list(x.chunk(WORLD)))
    return torch.cat(parts)


@pytest.mark.parametrize("route", [exchanged_tensor, exchanged_list])
def test_every_route_of_all_to_all(route: Function) -> None:
    same(results(route), [np.stack([value[rank] for value in VALUES]) for rank in range(WORLD)])


def test_all_to_all_with_uneven_splits() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        sent = [1, 3] if dist.get_rank() == 0 else [2, 2]
        received = [1, 2] if dist.get_rank() == 0 else [3, 2]
        y = x.new_empty(sum(received), 2)
        dist.all_to_all_single(y, x, received, sent)
        return y

    first, second = VALUES[0], VALUES[1]
    expected = [np.concatenate([first[:1], second[:2]]), np.concatenate([first[1:], second[2:]])]
    same(results(function, {"x": 2}), expected)


def test_point_to_point_around_a_ring() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y, rank = torch.empty_like(x), dist.get_rank()
        sending = dist.P2POp(dist.isend, x, (rank + 1) % WORLD)
        receiving = dist.P2POp(dist.irecv, y, (rank - 1) % WORLD)
        for work in dist.batch_isend_irecv([sending, receiving]):
            work.wait()
        return y + 1

    same(results(function), [VALUES[rank - 1] + 1 for rank in range(WORLD)])


def test_blocking_point_to_point_in_a_group_names_global_ranks() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        group = dist.new_group([1, 3])
        if dist.get_rank() == 1:
            dist.send(x, 3, group=group)
        elif dist.get_rank() == 3:
            x = x.clone()
            dist.recv(x, 1, group=group)
        return x * 1

    same(results(function), [VALUES[0], VALUES[1], VALUES[2], VALUES[1]])


def test_groups_are_lists_of_ranks_whatever_their_names() -> None:
    def build(mesh: DeviceMesh) -> tuple[Function, tuple[torch.Tensor]]:
        group = mesh.get_group("tp")

        def function(x: torch.Tensor) -> torch.Tensor:
            y = x.clone()
            dist.all_reduce(y, group=group)
            return y

        return function, (torch.zeros(2),)

    program = capture_ranks(build, {"dp": 2, "tp": 2})
    groups = [node.op.groups for g in program.graphs for node in g.nodes if isinstance(node.op, ops.AllReduce)]
    assert [tuple(g for g in each if rank in g) for rank, each in enumerate(groups)] == [
        ((0, 1),),
        ((0, 1),),
        ((2, 3),),
        ((2, 3),),
    ]


def test_another_backend_may_be_asked_for() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        dist.all_reduce(y, group=dist.new_group(list(range(WORLD)), backend="gloo"))
        return y

    same(results(function), [TOTAL] * WORLD)


def test_a_collective_outside_of_its_group_is_refused() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        group, y = dist.new_group([1, 2]), x.clone()
        dist.all_reduce(y, group=group)
        return y

    with pytest.raises(CaptureError, match="rank 0") as caught:
        captured(function)
    assert "a group that this rank is not in" in str(caught.value)
    assert "test_process_group.py" in str(caught.value)


def test_receiving_from_anyone_is_refused() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        dist.recv(y)
        return y

    with pytest.raises(CaptureError, match="any source"):
        captured(function)


def test_eager_collectives_while_building_answer_at_once() -> None:
    def build(_: DeviceMesh) -> tuple[Function, tuple[torch.Tensor]]:
        names: list[object] = [None] * WORLD
        dist.all_gather_object(names, "model")
        dist.broadcast(torch.ones(3), 0)
        dist.barrier()
        assert names == ["model"] * WORLD
        return in_place, (torch.zeros(4, 2),)

    assert len(capture_ranks(build, {"x": WORLD}).graphs) == WORLD
