"""Convolutions as sums of products, and rows that are counted in types that round."""

from __future__ import annotations

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import UNKNOWN
from rewright.proof.rewriting.laws import LAWS, remake
from rewright.proof.rewriting.laws.numbering import is_never_twice


def convolution(size: int, padding: tuple[int, int], stride: int, dilation: int, groups: int) -> Graph:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((2, 2 * groups, size), DType.F64)))
    kernel = b.input("kernel", ops.Input("kernel", TensorType((2 * groups, 2, 3), DType.F64)))
    b.output("y", b.add(ops.Convolution((stride,), (padding,), (1,), (dilation,), groups), x, kernel))
    return b.build()


@pytest.mark.parametrize("padding", [(0, 0), (2, 0), (1, 3)])
@pytest.mark.parametrize(("stride", "dilation", "groups"), [(1, 1, 1), (2, 1, 2), (1, 2, 3), (3, 2, 1)])
def test_a_short_convolution_is_a_sum_of_products(
    padding: tuple[int, int], stride: int, dilation: int, groups: int
) -> None:
    graph = convolution(7, padding, stride, dilation, groups)
    made = remake(graph, LAWS["convolutions"](graph, ()))
    assert made is not None and not any(isinstance(node.op, ops.Convolution) for node in made.nodes)
    draws = np.random.default_rng(0)
    given = {name: draws.normal(size=graph.nodes[p].type.shape) for name, p in graph.inputs.items()}
    np.testing.assert_allclose(run(graph, given)["y"], run(made, given)["y"], rtol=1e-12, atol=1e-12)


def test_a_convolution_without_elements_stays() -> None:
    graph = convolution(2, (0, 0), 1, 1, 1)
    assert remake(graph, LAWS["convolutions"](graph, ())) is None


@pytest.mark.parametrize(
    ("dtype", "size", "differ"),
    [
        (DType.F16, 2048, True),
        (DType.F16, 2050, False),
        (DType.BF16, 256, True),
        (DType.BF16, 300, False),
        (DType.U8, 300, False),
        (DType.I64, 300, True),
    ],
)
def test_rows_that_are_counted_differ_as_far_as_their_type_counts(dtype: DType, size: int, differ: bool) -> None:
    b = GraphBuilder()
    rows = b.add(ops.Convert(DType.I64), b.add(ops.Iota(TensorType((size, 1), dtype), 0)))
    b.output("rows", rows)
    graph = b.build()
    op = ops.Scatter("replace", (), (0,), (), (), (0,), 1)
    assert is_never_twice(graph, [UNKNOWN] * len(graph.nodes), op, rows) is differ
