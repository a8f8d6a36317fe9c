"""What is drawn for integers that index nothing."""

from __future__ import annotations

import pytest

from rewright import ops
from rewright.equiv import equiv
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.types import DType, TensorType
from rewright.refine.twin.drawing import plan_draws

ROW = TensorType((16,), DType.I64)


def program(op: ops.Operator, number: int) -> Graph:
    """One integer tensor and one number."""
    builder = GraphBuilder("integers")
    x = builder.input("x", ops.Input("x", ROW))
    builder.output("output", builder.add(op, x, builder.add(ops.Constant(ROW, (number,)))))
    return builder.build()


@pytest.mark.parametrize(
    ("op", "number", "high"),
    [(ops.Divide(), 4, 8), (ops.Remainder(), 3, 8), (ops.Multiply(), 4, 2), (ops.Compare("EQ"), 0, 2)],
)
def test_what_is_divided_is_no_flag(op: ops.Operator, number: int, high: int) -> None:
    """A mask of noughts and ones is what integers are that are multiplied, or compared with nought."""
    graph = program(op, number)

    assert plan_draws(graph, RankProgram((graph,), Mesh.of({"rank": 1}), {}, {})).integers["x"].high == high


def test_quotients_by_other_numbers_are_told_apart() -> None:
    assert equiv(program(ops.Divide(), 4), program(ops.Divide(), 8)).status == "refuted"
