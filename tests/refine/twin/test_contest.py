"""What draws may refute: differences of functions, and not that floats are too small for what is computed."""

from __future__ import annotations

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.refine import refine
from rewright.refine.twin.culprits import spoiled_outputs

SHAPE = (8, 16)


def softmax(kind: str, direction: str | None = None) -> Graph:
    """``exp(z - log(sum(exp(z))))`` with ``z = x - m``, where m is the largest or the smallest element of a row.

    Both are the softmax of x. With the smallest one, exponentials of a wide row are too large for floats: the sum is
    infinite, and the result, which is finite again, is zero. Another output says which numbers are on one side of the
    largest that is let through.
    """
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType(SHAPE, DType.F32)))
    limit = b.add(ops.Constant(TensorType(SHAPE, DType.F32), (2000.0,)))
    if direction is not None:
        b.output("beyond", b.add(ops.Compare(direction), x, limit))
    x = b.add(ops.Minimum(), x, limit)  # so that numbers near it are drawn
    row = b.add(ops.BroadcastInDim(SHAPE, (0,)), b.add(ops.Reduce(kind, (1,)), x))
    z = b.add(ops.Subtract(), x, row)
    total = b.add(ops.Log(), b.add(ops.Reduce("sum", (1,)), b.add(ops.Exponential(), z)))
    b.output("y", b.add(ops.Exponential(), b.add(ops.Subtract(), z, b.add(ops.BroadcastInDim(SHAPE, (0,)), total))))
    return b.build()


def test_an_exponential_too_large_for_floats_refutes_nothing() -> None:
    assert refine(softmax("maximum"), [softmax("minimum")]).status != "refuted"


def test_an_output_beside_it_is_refuted_all_the_same() -> None:
    verdict = refine(softmax("maximum", "GT"), [softmax("minimum", "GE")])
    assert verdict.status == "refuted"
    assert "the output beyond differs on inputs at or near the constants" in verdict.reason


def test_another_function_is_refuted() -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType(SHAPE, DType.F32)))
    row = b.add(ops.BroadcastInDim(SHAPE, (0,)), b.add(ops.Reduce("maximum", (1,)), x))
    b.output("y", b.add(ops.Exponential(), b.add(ops.Subtract(), x, row)))
    assert refine(softmax("maximum"), [b.build()]).status == "refuted"


def test_what_an_output_is_made_of_goes_by_way_of_other_ranks() -> None:
    def program(adds: bool) -> Graph:
        b = GraphBuilder()
        x = b.input("x", ops.Input("x", TensorType((2,), DType.F32)))
        large = b.add(ops.Exponential(), x)
        b.output("own", b.add(ops.Negate(), x))
        b.output("sum", b.add(ops.AllReduce("sum", ((0, 1),)), large if adds else x))
        return b.build()

    graphs = program(adds=True), program(adds=False)
    assert spoiled_outputs(graphs, [{1}, set()]) == [{"sum"}, {"sum"}]
    assert spoiled_outputs(graphs, [set(), {1}]) == [set(), set()]
