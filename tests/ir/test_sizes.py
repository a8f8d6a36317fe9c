"""Giving numbers to size symbols."""

import pytest

from rewright import ops
from rewright.ir.dims import Dim, symbol
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.sizes import size_symbols, solve_sizes, with_sizes
from rewright.ir.types import DType, TensorType

B, S = symbol("b"), symbol("s")


def flatten() -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", TensorType((B, S, 4), DType.F32)))
    y = builder.add(ops.Reshape((B * S, 4)), x)
    builder.output("y", builder.add(ops.Slice((0, 0), (B * S, 2), (1, 1)), y))
    return builder.build()


def test_symbols_of_a_graph() -> None:
    assert size_symbols(flatten()) == ("b", "s")


def test_sizes_in_types_and_attributes() -> None:
    graph = with_sizes(flatten(), {"b": 2, "s": 3})
    assert size_symbols(graph) == ()
    assert graph.nodes[1].op == ops.Reshape((6, 4))
    assert graph.nodes[2].op == ops.Slice((0, 0), (6, 2), (1, 1))
    assert graph.nodes[graph.outputs["y"]].type == TensorType((6, 2), DType.F32)


def test_some_sizes_only() -> None:
    graph = with_sizes(flatten(), {"b": 2})
    assert graph.nodes[1].type.shape == (2 * S, 4)


def test_operators_without_sizes_are_kept() -> None:
    graph = flatten()
    assert with_sizes(graph, {"other": 5}).nodes[1].op is graph.nodes[1].op


def test_sizes_below_one() -> None:
    with pytest.raises(RewrightError, match="size symbol 'b' cannot be 0"):
        with_sizes(flatten(), {"b": 0})


def test_sizes_that_make_an_operator_invalid() -> None:
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", TensorType((8,), DType.F32)))
    builder.output("y", builder.add(ops.Slice((0,), (S,), (1,)), x))
    assert with_sizes(builder.build(), {"s": 8}).nodes[1].type.shape == (8,)
    with pytest.raises(TypeMismatch, match="slice needs the limit within the axis, but 9 > 8"):
        with_sizes(builder.build(), {"s": 9})


def solved(*axes: tuple[Dim, int]) -> dict[str, int]:
    return solve_sizes((f"x{i}", TensorType((size,), DType.F32), (n,)) for i, (size, n) in enumerate(axes))


def test_solving_in_any_order() -> None:
    assert solved((B * S, 12), (2 * B + 1, 7)) == {"b": 3, "s": 4}


def test_contradiction() -> None:
    with pytest.raises(RewrightError, match="'x1' has an axis of 4 where size b is 3 by other axes"):
        solved((B, 3), (B, 4))


def test_no_solution() -> None:
    with pytest.raises(RewrightError, match=r"no size 'b' of at least 1 makes 2\*b equal to 5"):
        solved((2 * B, 5))
