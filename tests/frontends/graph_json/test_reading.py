"""Single documents: what they say, what they leave open, and what is refused with one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rewright import ops
from rewright.frontends.graph_json.reading import read_alone, read_ranks
from rewright.interp.program import run
from rewright.ir.dims import symbol
from rewright.ir.errors import RewrightError
from rewright.ir.unknowns import unknowns, unread
from rewright.refine import refine
from tests.frontends.graph_json.captures import BOOL, LONG, Capture, Json


def test_names_shapes_and_places_come_from_the_document() -> None:
    c = Capture()
    x = c.input("x", [2, 3])
    graph = read_alone(c.document([c.call("aten.exp.default", x, shape=[2, 3]), None, x]))
    assert list(graph.inputs) == ["x"]
    assert list(graph.outputs) == ["output.0", "output.2"]
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.Exponential)]
    assert (node.span.file, node.span.line, node.span.module_path) == ("/src/model.py", 1, "L['model']")


def test_symbolic_sizes_lose_the_name_of_the_rank() -> None:
    c = Capture(rank=0)
    x = c.input("x", [{"sym": "2*R0s0"}, 3])
    graph = read_alone(c.document([c.call("aten.neg.default", x, shape=[{"sym": "2*R0s0"}, 3])]))
    assert graph.nodes[graph.outputs["output.0"]].type.shape == (2 * symbol("s0"), 3)


def test_a_vector_that_is_nowhere_zero_has_a_known_number_of_places() -> None:
    c = Capture()
    x = c.input("x", [4, 3])
    everywhere = c.call(
        "aten.eq.Scalar", c.call("aten.zeros.default", [4], shape=[4], dtype=LONG), 0, shape=[4], dtype=BOOL
    )
    places = c.call("aten.nonzero.default", everywhere, shape=[{"sym": "u0"}, 1], dtype=LONG)
    size = c.call("aten.sym_size.int", places, 0)
    rows = c.call("aten.index.Tensor", x, [places], shape=[{"sym": "u0"}, 1, 3])
    flat = c.call("aten.view.default", rows, [size, 3], shape=[{"sym": "u0"}, 3])
    graph = read_alone(c.document([flat]))
    assert graph.outputs["output.0"] == graph.inputs["x"]


def test_memory_that_nothing_reads_is_no_input() -> None:
    c = Capture()
    x = c.input("x", [2])
    c.call("aten.empty.memory_format", [2], shape=[2])
    graph = read_alone(c.document([x]))
    assert list(graph.inputs) == ["x"]
    assert unread(graph) == {"empty"}


def test_constants_and_random_masks_are_inputs_with_a_place() -> None:
    c = Capture()
    x = c.input("x", [2])
    kept = c.part(c.call("aten.native_dropout.default", x, 0.5, True), 0, [2])
    shifted = c.call("aten.add.Tensor", kept, c.constant("float32"), shape=[2])
    graph = read_alone(c.document([shifted]))
    assert unknowns(graph) == {
        "native_dropout": "random:dropout at model.py:1 forward in L['model'] #1",
        "_tensor_constant0": "constant at model.py:3 forward in L['model'] #1",
    }
    values = {"x": np.array([1.0, 3.0]), "native_dropout": np.array([True, False]), "_tensor_constant0": np.array(7.0)}
    assert run(graph, values)["output.0"].tolist() == [9.0, 7.0]


@pytest.mark.unaudited("the checker has no rules for a function without a denotation")
def test_an_unknown_function_of_equal_operands_is_equal() -> None:
    c = Capture()
    x = c.input("x", [2, 2])
    graph = read_alone(c.document([c.call("mine.shuffle.default", x, 3, shape=[2, 2])]))
    verdict = refine(graph, [graph])
    assert verdict.status == "proved"
    assert any("mine.shuffle.default" in line and "function of its operands" in line for line in verdict.assumptions)


def two_ranks(build: Callable[[Capture, int], None]) -> list[Json]:
    captures = [Capture(rank) for rank in range(2)]
    for rank, capture in enumerate(captures):
        build(capture, rank)
    return [capture.document([{"n": len(capture.nodes) - 1}]) for capture in captures]


def test_groups_are_the_ranks_that_name_them() -> None:
    def build(c: Capture, rank: int) -> None:
        x = c.input("x", [2])
        y = c.call("_c10d_functional.all_reduce.default", x, "sum", "both", shape=[2])
        c.call("_c10d_functional.all_reduce.default", y, "sum", f"own {rank}", shape=[2])

    program = read_ranks(two_ranks(build))
    collectives = [node.op for node in program.graphs[0].nodes if isinstance(node.op, ops.Collective)]
    assert collectives == [ops.AllReduce("sum", ((0, 1),))]


def test_a_gather_of_one_number_from_every_rank_is_that_number() -> None:
    def build(c: Capture, rank: int) -> None:
        c.input("x", [2])
        own = c.call("aten.full.default", [2], 3, shape=[2], dtype=LONG)
        c.call("_c10d_functional.all_gather_into_tensor.default", own, 2, "all", shape=[4], dtype=LONG)

    program = read_ranks(two_ranks(build))
    op = program.graphs[0].nodes[program.graphs[0].outputs["output.0"]].op
    assert isinstance(op, ops.Constant)
    assert op.values == (3,)


def simple() -> Json:
    c = Capture()
    x = c.input("x", [2, 3])
    return c.document([c.call("aten.sum.dim_IntList", x, [1], shape=[2])])


def changed(**changes: Any) -> Json:
    return simple() | changes


def with_node(**changes: Any) -> Json:
    document = simple()
    document["nodes"][1] |= changes
    return document


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (changed(rank="zero"), "incomplete or malformed"),
        (changed(rank=3), "rank 3 of 4 or more"),
        (changed(inputs=[0, 1]), "lists 2 inputs and has 1"),
        (changed(outputs=[{"n": 9}]), "no earlier one"),
        (changed(nodes=None), "incomplete or malformed"),
        (with_node(args=[{"n": 1}, [1]]), "no earlier one"),
        (with_node(target="aten.made_up_.default"), "no lowering exists"),
        (with_node(shape=[3]), "the capture has 3xf32 and the lowering gives 2xf32"),
        (with_node(shape=[-2]), "negative size"),
        (with_node(shape=[{"sym": "s0//2"}]), "is no polynomial"),
        (with_node(dtype="complex64"), "dtypes are"),
        (with_node(args=[{"n": 0}, "one"]), "does not cover these operands and attributes"),
        (with_node(args=[{"n": 0}, [1 << 70]]), "more than 64 bits"),
        (with_node(name="x"), "two nodes of the graph have one name"),
        (with_node(op="call_method"), "which is none of"),
    ],
)
def test_a_document_that_is_wrong_is_refused_in_one_line(document: Json, said: str) -> None:
    with pytest.raises(RewrightError, match=said) as caught:
        read_alone(document)
    assert "\n" not in str(caught.value)


def test_ranks_are_numbered_from_zero() -> None:
    with pytest.raises(RewrightError, match=r"ranks \[0, 0\]"):
        read_ranks([simple(), simple()])


def test_a_collective_of_more_ranks_than_there_are_files() -> None:
    def build(c: Capture, rank: int) -> None:
        x = c.input("x", [2])
        c.call("_c10d_functional.all_gather_into_tensor.default", x, 4, "all", shape=[8])

    with pytest.raises(RewrightError, match="on 4 ranks of group 'all', which 2 of the files name"):
        read_ranks(two_ranks(build))
