"""All ranks in one process: collectives against numpy, and whole programs against the sequential ones."""

import numpy as np
import pytest

from rewright import ops
from rewright.interp.ranks import run, run_ranks
from rewright.ir.errors import RewrightError
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from tests.programs import Builder

TRIO = ((0, 1, 2),)


def on_ranks(op: Operator, *tensors: np.ndarray) -> list[np.ndarray]:
    """The result of one collective on every rank, which holds one tensor each."""
    build = Builder("rank")
    x = build.input("x", ops.Input("x", TensorType(tensors[0].shape, DType.F64)))
    build.output("output", build.add(op, x))
    graph = build.build()
    return [e.outputs["output"] for e in run_ranks([graph] * len(tensors), [{"x": t} for t in tensors])]


@pytest.fixture
def tensors() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal((3, 6)) for _ in range(3)]


def test_all_reduce(tensors: list[np.ndarray]) -> None:
    for kind, expected in (("sum", sum(tensors)), ("maximum", np.maximum.reduce(tensors))):
        for result in on_ranks(ops.AllReduce(kind, TRIO), *tensors):
            np.testing.assert_allclose(result, expected)


def test_all_gather_follows_the_order_of_the_group(tensors: list[np.ndarray]) -> None:
    for result in on_ranks(ops.AllGather(1, ((2, 0, 1),)), *tensors):
        np.testing.assert_array_equal(result, np.concatenate([tensors[2], tensors[0], tensors[1]], 1))


def test_reduce_scatter(tensors: list[np.ndarray]) -> None:
    parts = np.split(sum(tensors), 3, 1)
    for result, expected in zip(on_ranks(ops.ReduceScatter("sum", 1, TRIO), *tensors), parts, strict=True):
        np.testing.assert_allclose(result, expected)


def test_all_to_all_transposes_blocks(tensors: list[np.ndarray]) -> None:
    for rank, result in enumerate(on_ranks(ops.AllToAll(1, 0, TRIO), *tensors)):
        np.testing.assert_array_equal(result, np.concatenate([np.split(t, 3, 1)[rank] for t in tensors]))


def test_all_to_all_with_uneven_splits() -> None:
    graphs, inputs = [], []
    for rank, (send, receive) in enumerate([((1, 2), (1, 3)), ((3, 1), (2, 1))]):
        build = Builder("rank")
        x = build.input("x", ops.Input("x", TensorType((sum(send),), DType.F64)))
        build.output("output", build.add(ops.AllToAll(0, 0, ((0, 1),), send, receive), x))
        graphs.append(build.build())
        inputs.append({"x": np.arange(sum(send)) + 10 * rank})
    first, second = (e.outputs["output"].tolist() for e in run_ranks(graphs, inputs))
    assert first == [0, 10, 11, 12]
    assert second == [1, 2, 13]


def test_permute_gives_zeros_to_ranks_that_are_no_target(tensors: list[np.ndarray]) -> None:
    results = on_ranks(ops.CollectivePermute(((0, 1), (1, 2))), *tensors)
    np.testing.assert_array_equal(results[0], np.zeros((3, 6)))
    np.testing.assert_array_equal(results[1], tensors[0])
    np.testing.assert_array_equal(results[2], tensors[1])


def test_broadcast_names_the_source_by_its_rank(tensors: list[np.ndarray]) -> None:
    for result in on_ranks(ops.CollectiveBroadcast(2, ((2, 0, 1),)), *tensors):
        np.testing.assert_array_equal(result, tensors[2])


def test_messages_in_the_order_in_which_they_were_sent() -> None:
    sender, receiver = Builder("sender"), Builder("receiver")
    x = sender.input("x", ops.Input("x", TensorType((2,), DType.F64)))
    sender.add(ops.Send(1, 7), x)
    sender.add(ops.Send(1, 7), sender.add(ops.Negate(), x))
    sender.output("output", x)
    first = receiver.add(ops.Recv(0, 7, TensorType((2,), DType.F64)))
    second = receiver.add(ops.Recv(0, 7, TensorType((2,), DType.F64)))
    receiver.output("first", first)
    receiver.output("second", second)
    results = run_ranks((sender.build(), receiver.build()), ({"x": np.array([1.0, 2.0])}, {}))
    assert results[1].outputs["first"].tolist() == [1, 2]
    assert results[1].outputs["second"].tolist() == [-1, -2]


def test_values_of_chosen_nodes_and_precision() -> None:
    build = Builder("one")
    x = build.input("x", ops.Input("x", TensorType((2,), DType.BF16)))
    root = build.add(ops.Sqrt(), x)
    build.output("output", build.add(ops.Negate(), root))
    execution = run(build.build(), {"x": np.array([4.0, 9.0])}, np.float32, keep=(root,))
    assert execution.values[root].tolist() == [2, 3]
    assert execution.outputs["output"].dtype == np.float32


def test_bad_inputs_are_named() -> None:
    build = Builder("one")
    build.output("output", build.input("x", ops.Input("x", TensorType((2,), DType.F32))))
    with pytest.raises(RewrightError, match=r"^input 'x' has no value; give a tensor of type 2xf32"):
        run(build.build(), {})
    with pytest.raises(RewrightError, match=r"^input 'x' must be a tensor of type 2xf32 and has shape \[3\]"):
        run(build.build(), {"x": np.zeros(3)})


def test_an_index_out_of_range_is_named_with_its_line() -> None:
    build = Builder("rank")
    rows = build.tensor("rows", (1,), DType.I64)
    build.output("output", build.take_rows(build.tensor("table", (3, 2)), rows))
    graph, table = build.build(), np.zeros((3, 2))
    with pytest.raises(RewrightError, match=r"^gather at rank.py:3"):
        run(graph, {"rows": np.array([3]), "table": table})
    with pytest.raises(RewrightError, match=r"^rank 1, gather at rank.py:3"):
        run_ranks([graph, graph], [{"rows": np.array([row]), "table": table} for row in (2, 3)])
