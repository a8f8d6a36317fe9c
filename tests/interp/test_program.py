"""Execution of one program: known answers, sizes read off the inputs, and messages for bad input."""

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run, run_nodes
from rewright.ir.dims import Dim, symbol
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, SourceSpan, TensorType


def linear_relu(batch: Dim = 2) -> Graph:
    """``maximum(x @ w, 0)`` for x of type batch x 3."""
    builder = GraphBuilder("linear_relu")
    x = builder.input("x", ops.Input("x", TensorType((batch, 3), DType.F32)))
    w = builder.input("w", ops.Input("w", TensorType((3, 4), DType.F32)))
    product = builder.add(ops.DotGeneral((), (), (1,), (0,)), x, w)
    zero = builder.add(ops.Constant(TensorType((batch, 4), DType.F32), (0.0,)))
    builder.output("y", builder.add(ops.Maximum(), product, zero))
    return builder.build()


X = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]])
W = np.arange(12.0).reshape(3, 4) - 5


def test_a_linear_layer_with_relu() -> None:
    assert np.array_equal(run(linear_relu(), {"x": X, "w": W})["y"], np.maximum(X @ W, 0))


def test_precision_is_that_of_every_float_tensor() -> None:
    assert run(linear_relu(), {"x": X, "w": W}, np.float32)["y"].dtype == np.float32
    assert run(linear_relu(), {"x": X, "w": W}, np.float64)["y"].dtype == np.float64


def test_size_symbols_are_read_off_the_inputs() -> None:
    graph = linear_relu(symbol("b") + 1)
    assert run(graph, {"x": X, "w": W})["y"].shape == (2, 4)
    assert run(graph, {"x": np.ones((5, 3)), "w": W})["y"].shape == (5, 4)


def test_a_symbol_that_no_number_satisfies() -> None:
    with pytest.raises(RewrightError, match=r"no size 'b' of at least 1 makes b\+1 equal to 1"):
        run(linear_relu(symbol("b") + 1), {"x": X[:1], "w": W})


def test_sizes_that_the_inputs_do_not_determine() -> None:
    graph = linear_relu(symbol("b") * symbol("s"))
    with pytest.raises(RewrightError, match=r"do not determine size b\*s of 'x'"):
        run(graph, {"x": X, "w": W})


def test_values_of_all_nodes() -> None:
    values = run_nodes(linear_relu(), {"x": X, "w": W})
    assert list(values) == [0, 1, 2, 3, 4]
    assert np.array_equal(values[2], X @ W)


def test_values_of_chosen_nodes() -> None:
    assert list(run_nodes(linear_relu(), {"x": X, "w": W}, {2})) == [2]


def test_missing_input() -> None:
    with pytest.raises(RewrightError, match="input 'w' has no value; give a tensor of type 3x4xf32"):
        run(linear_relu(), {"x": X})


def test_unknown_input() -> None:
    with pytest.raises(RewrightError, match="no input 'v'; its inputs are x, w"):
        run(linear_relu(), {"x": X, "w": W, "v": W})


def test_input_of_another_shape() -> None:
    with pytest.raises(RewrightError, match=r"'x' must be a tensor of type 2x3xf32 and has shape \[3, 2\]"):
        run(linear_relu(), {"x": X.T, "w": W})


def test_an_index_out_of_range_names_the_source_line() -> None:
    builder = GraphBuilder()
    table = builder.input("table", ops.Input("table", TensorType((4, 2), DType.F32)))
    token = builder.input("token", ops.Input("token", TensorType((3,), DType.I64)))
    gather = ops.Gather((1,), (0,), (), (), (0,), 1, (1, 2))
    builder.output("rows", builder.add(gather, table, token, span=SourceSpan("model.py", 12)))
    with pytest.raises(RewrightError, match=r"gather at model.py:12: gather reads index 1 to 4 of axis 0 of size 4"):
        run(builder.build(), {"table": np.ones((4, 2)), "token": np.array([1, 4, 2])})
