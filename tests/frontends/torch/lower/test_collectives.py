"""Functional collectives become nodes with explicit rank lists."""

from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from rewright import ops
from rewright.frontends.aten.tables import supported_operators
from rewright.frontends.torch.lower import lower
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import Graph
from tests.frontends.torch.lower.executing import Function, program

RANKS = (1, 3, 5, 7)
c10d: Any = torch.ops._c10d_functional


def gathered(x: torch.Tensor) -> torch.Tensor:
    """The rows of all ranks, waited for."""
    return c10d.wait_tensor(c10d.all_gather_into_tensor(x, 4, "tp"))


def rank_graph(*calls: tuple[Any, ...], shape: tuple[int, ...] = (8, 4)) -> Graph:
    """A program of one input that applies collectives in turn: (operator, arguments after the tensor ..)."""
    graph = torch.fx.Graph()
    mode = torch._subclasses.FakeTensorMode()
    with mode:
        value = torch.empty(shape, dtype=torch.float64)
    node = graph.placeholder("x")
    node.meta["val"] = value
    for operator, *arguments in calls:
        with mode:
            value = operator(value, *arguments)
        node = graph.call_function(operator, (node, *arguments))
        node.meta["val"] = value
    graph.output((node,))
    return lower(program(torch.fx.GraphModule({}, graph), {"tp": RANKS}))


def rank_program(function: Function) -> Graph:
    """A traced function of an (8, 4) tensor, in a group called tp."""
    module = make_fx(function, tracing_mode="fake")(torch.zeros(8, 4, dtype=torch.float64))
    return lower(program(module, {"tp": RANKS}))


CASES: dict[str, tuple[tuple[Any, ...], ops.TensorOperator]] = {
    "all_reduce": ((c10d.all_reduce.default, "sum", "tp"), ops.AllReduce("sum", (RANKS,))),
    "all_reduce max": ((c10d.all_reduce.default, "max", "tp"), ops.AllReduce("maximum", (RANKS,))),
    "all_gather": ((c10d.all_gather_into_tensor.default, 4, "tp"), ops.AllGather(0, (RANKS,))),
    "reduce_scatter": ((c10d.reduce_scatter_tensor.default, "sum", 4, "tp"), ops.ReduceScatter("sum", 0, (RANKS,))),
    "all_to_all": ((c10d.all_to_all_single.default, [2] * 4, [2] * 4, "tp"), ops.AllToAll(0, 0, (RANKS,))),
    "uneven all_to_all": (
        (c10d.all_to_all_single.default, [1, 2, 3, 0], [5, 1, 1, 1], "tp"),
        ops.AllToAll(0, 0, (RANKS,), (5, 1, 1, 1), (1, 2, 3, 0)),
    ),
    "broadcast": ((c10d.broadcast.default, 2, "tp"), ops.CollectiveBroadcast(5, (RANKS,))),
}


@pytest.mark.parametrize(("call", "expected"), CASES.values(), ids=CASES)
def test_collectives(call: tuple[Any, ...], expected: ops.TensorOperator) -> None:
    graph = rank_graph(call, (c10d.wait_tensor.default,))
    assert [node.op for node in graph.nodes[1:]] == [expected]


def test_an_average_is_a_sum_divided_by_the_number_of_ranks() -> None:
    graph = rank_graph((c10d.all_reduce.default, "avg", "tp"), (c10d.wait_tensor.default,))
    assert [node.op.name for node in graph.nodes] == ["input", "all_reduce", "constant", "divide"]
    constant = graph.nodes[2].op
    assert isinstance(constant, ops.Constant)
    assert constant.values == (4.0,)


def test_a_gather_along_another_axis_is_one_gather() -> None:
    """DTensor gathers along axis 0, cuts the result into the ranks' pieces and joins them along the axis it means."""

    def gather(x: torch.Tensor) -> torch.Tensor:
        return torch.cat(gathered(x).chunk(4), dim=1)

    graph = rank_program(gather)
    assert [node.op for node in graph.nodes[1:]] == [ops.AllGather(1, (RANKS,))]


def test_a_reduction_scattered_along_another_axis_is_one_operator() -> None:
    def scatter(x: torch.Tensor) -> torch.Tensor:
        return c10d.wait_tensor(c10d.reduce_scatter_tensor(torch.cat(x.chunk(4, dim=1)), "sum", 4, "tp"))

    graph = rank_program(scatter)
    assert [node.op for node in graph.nodes[1:]] == [ops.ReduceScatter("sum", 1, (RANKS,))]


def test_a_gather_that_is_also_read_whole_stays() -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        whole = gathered(x)
        return torch.cat(whole.chunk(4), dim=1), whole + 1

    gathers = [node.op for node in rank_program(both).nodes if isinstance(node.op, ops.AllGather)]
    assert gathers == [ops.AllGather(0, (RANKS,)), ops.AllGather(1, (RANKS,))]


def test_pieces_in_another_order_are_moved() -> None:
    def rotated(x: torch.Tensor) -> torch.Tensor:
        first, *rest = gathered(x).chunk(4)
        return torch.cat([*rest, first], dim=1)

    names = [node.op.name for node in rank_program(rotated).nodes]
    assert names == ["input", "all_gather", "slice", "slice", "slice", "slice", "concatenate"]


def test_in_place_collectives_are_seen_by_aliases() -> None:
    def in_place(x: torch.Tensor) -> torch.Tensor:
        whole = x.clone()
        row = whole[0]
        c10d.wait_tensor(c10d.all_reduce_(whole, "sum", "tp"))
        return row

    assert [node.op.name for node in rank_program(in_place).nodes] == ["input", "all_reduce", "slice", "reshape"]


def test_coalesced_collectives_in_place() -> None:
    def in_place(x: torch.Tensor) -> torch.Tensor:
        first, second = x.clone(), x * 2
        for tensor in c10d.all_reduce_coalesced_([first, second], "sum", "tp"):
            c10d.wait_tensor(tensor)
        return first + second

    names = [node.op.name for node in rank_program(in_place).nodes]
    assert names.count("all_reduce") == 2
    assert names[-1] == "add"


def test_collectives_into_a_given_tensor() -> None:
    def into(x: torch.Tensor) -> torch.Tensor:
        whole = x.new_empty((32, 4))
        c10d.wait_tensor(c10d.all_gather_into_tensor_out(x, 4, "tp", out=whole))
        return whole

    assert [node.op.name for node in rank_program(into).nodes] == ["input", "all_gather"]


READ_EARLY: dict[str, Function] = {
    "returned": lambda x: c10d.all_reduce(x, "sum", "tp"),
    "read": lambda x: c10d.all_gather_into_tensor(x, 4, "tp") * 2,
    "in place": lambda x: c10d.all_reduce_(x.clone(), "sum", "tp") * 2,
    "before the wait": lambda x: _read_first(c10d.all_reduce(x, "sum", "tp")),
}


def _read_first(begun: torch.Tensor) -> torch.Tensor:
    early = begun * 2
    c10d.wait_tensor(begun)
    return early


@pytest.mark.parametrize("function", READ_EARLY.values(), ids=READ_EARLY)
def test_what_is_read_before_anybody_waits_is_in_flight(function: Function) -> None:
    targets = [node.op.target for node in rank_program(function).nodes if isinstance(node.op, ops.CustomCall)]
    assert targets == [ops.CustomCall.IN_FLIGHT]


def test_what_was_waited_for_is_read_under_any_name() -> None:
    def waited(x: torch.Tensor) -> torch.Tensor:
        begun = c10d.all_reduce(x, "sum", "tp")
        row = begun[0]
        c10d.wait_tensor(begun)
        return row * 2 + begun[1]

    assert not any(isinstance(node.op, ops.CustomCall) for node in rank_program(waited).nodes)


def test_an_unused_collective_stays_in_the_program() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    with torch._subclasses.FakeTensorMode():
        x.meta["val"] = torch.empty(4)
    reduced = graph.call_function(c10d.all_reduce.default, (x, "sum", "tp"))
    reduced.meta["val"] = x.meta["val"]
    graph.output((x,))
    found = lower(program(torch.fx.GraphModule({}, graph), {"tp": RANKS}))
    assert [node.op.name for node in found.nodes] == ["input", "all_reduce"]


def test_an_unknown_group_is_named() -> None:
    with pytest.raises(UnsupportedOperator, match=r"all_reduce.default at model.py:7: the process group 'dp' was not"):
        rank_graph((c10d.all_reduce.default, "sum", "dp"))


def test_every_collective_of_the_functional_library_is_known_by_its_variants() -> None:
    names = supported_operators()["collectives"]
    assert "_c10d_functional.all_reduce_coalesced.default" in names
    assert "_dtensor.shard_dim_alltoall.default" in names
