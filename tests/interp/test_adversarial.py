"""What programs are run on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rewright import ops
from rewright.equiv import equiv
from rewright.interp.adversarial import Draws, Kind, plan_draws
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.base import integer_limits

ROW = TensorType((16,), DType.I64)


def program(op: Operator, number: int) -> Graph:
    """One integer tensor and one number."""
    builder = GraphBuilder("integers")
    x = builder.input("x", ops.Input("x", ROW))
    builder.output("output", builder.add(op, x, builder.add(ops.Constant(ROW, (number,)))))
    return builder.build()


@pytest.mark.parametrize(
    ("op", "number", "high"),
    [(ops.Divide(), 4, 8), (ops.Remainder(), 3, 8), (ops.Multiply(), 4, 2), (ops.Compare("EQ"), 0, 2)],
)
def test_what_is_divided_is_no_flag(op: Operator, number: int, high: int) -> None:
    """A mask of zeros and ones is what integers are that are multiplied, or compared with zero."""
    graph = program(op, number)

    assert plan_draws(graph).integers["x"].high == high


@pytest.mark.parametrize("op", [ops.Abs(), ops.Negate(), ops.Reverse((0,)), ops.AllReduce("maximum", ((0, 1),))])
def test_what_an_operator_passes_on_counts_the_same(op: Operator) -> None:
    builder = GraphBuilder("lookup")
    x = builder.input("x", ops.Input("x", ROW))
    table = builder.input("table", ops.Input("table", TensorType((50, 2), DType.F32)))
    rows = builder.add(ops.Reshape((16, 1)), builder.add(op, x))
    builder.output("output", builder.add(ops.Gather((1,), (0,), (), (), (0,), 1, (1, 2)), table, rows))

    assert plan_draws(builder.build()).integers["x"].high == 50


def test_quotients_by_other_numbers_are_told_apart() -> None:
    assert equiv(program(ops.Divide(), 4), program(ops.Divide(), 8)).status == "refuted"


# --- kinds of draws


def draws_of(*graphs: Graph) -> Draws:
    return plan_draws(graphs[0], graphs[1:])


def with_constant(tensor: TensorType, op: Operator, number: float) -> Graph:
    builder = GraphBuilder("constants")
    x = builder.input("x", ops.Input("x", tensor))
    builder.output("output", builder.add(op, x, builder.add(ops.Constant(tensor, (number,)))))
    return builder.build()


def test_constants_of_both_programs_are_drawn_with_their_neighbours() -> None:
    wide = TensorType((64, 8), DType.F32)
    draws = draws_of(with_constant(wide, ops.Maximum(), 20.0), with_constant(wide, ops.Maximum(), 100.0))

    drawn = set(draws.draw(0, 0, kind=Kind.CONSTANTS)["x"].ravel())

    assert {20.0, 19.0, 21.0, 19.5, -20.0, 100.0, 101.0, -100.0} <= drawn
    assert any(20 < value < 20.001 for value in drawn)


def test_a_constant_of_either_program_is_among_ids_of_a_table() -> None:
    """Before, only constants of the second program were, and a rare token of the first was never met."""
    builder = GraphBuilder("rows")
    ids = builder.input("ids", ops.Input("ids", TensorType((4,), DType.I64)))
    table = builder.input("table", ops.Input("table", TensorType((90000, 2), DType.F32)))
    rare = builder.add(ops.Compare("EQ"), ids, builder.add(ops.Constant(TensorType((4,), DType.I64), (77777,))))
    builder.output("rare", rare)
    builder.output("rows", builder.add(ops.Gather((1,), (0,), (), (), (0,), 1, (1, 2)), table, ids))
    graph = builder.build()

    assert {0, 77776, 77777, 77778, 89999} <= set(plan_draws(graph).integers["ids"].special)


def test_halves_and_ties() -> None:
    draws = draws_of(with_constant(TensorType((64,), DType.F32), ops.Add(), 1.0))

    drawn = draws.draw(0, 0, kind=Kind.TIES)["x"]

    assert set(2 * drawn) == set(range(-5, 6))


def test_a_row_of_a_mask_is_empty() -> None:
    builder = GraphBuilder("mask")
    mask = builder.input("mask", ops.Input("mask", TensorType((4, 6), DType.BOOL)))
    builder.output("output", builder.add(ops.Not(), mask))
    draws = plan_draws(builder.build())

    several = [draws.draw(0, trial, kind=Kind.ROWS)["mask"] for trial in range(8)]

    assert any((~value).all(-1).any() and value.any() for value in several), "a whole row"
    assert any((~value[:, 0] & value[:, -1]).any() for value in several), "the start of one"
    assert draws.draw(0, 0, kind=Kind.TIES)["mask"].all()
    assert not draws.draw(0, 0, kind=Kind.ZEROS)["mask"].any()


@pytest.mark.parametrize("dtype", [DType.I8, DType.U8, DType.I32, DType.U32, DType.I64])
def test_integers_use_all_digits_of_their_type(dtype: DType) -> None:
    """Unless an index bounds them: what is divided, or whose digits are taken, may be any."""
    draws = draws_of(with_constant(TensorType((512,), dtype), ops.And(), 15))

    drawn = draws.draw(0, 0, kind=Kind.LARGE)["x"]

    low, high = integer_limits(dtype)
    assert drawn.max() >= min(high, 1 << 40) // 2
    assert (drawn.min() < min(-100, -(min(-low, 1 << 39)) // 2)) == (low < 0)


def test_labels_of_half_of_the_rows_are_ignored() -> None:
    builder = GraphBuilder("labels")
    kind = TensorType((8,), DType.I64)
    labels = builder.input("labels", ops.Input("labels", kind))
    ignored = builder.add(ops.Constant(kind, (-100,)))
    safe = builder.add(ops.Select(), builder.add(ops.Compare("NE"), labels, ignored), labels, ignored)
    table = builder.input("table", ops.Input("table", TensorType((5,), DType.F32)))
    builder.output("rows", builder.add(ops.Gather((), (0,), (), (), (0,), 1, (1,)), table, safe))
    draws = plan_draws(builder.build())

    several = [draws.draw(0, trial, kind=Kind.ROWS)["labels"] for trial in range(8)]

    assert any((value[:4] == -100).all() and (value[4:] != -100).any() for value in several)


def test_draws_are_the_same_every_time() -> None:
    draws = draws_of(with_constant(ROW, ops.Remainder(), 3))

    for kind in Kind:
        assert (draws.draw(3, 1, kind=kind)["x"] == draws.draw(3, 1, kind=kind)["x"]).all()


def test_values_that_are_given_are_taken() -> None:
    draws = replace(draws_of(program(ops.Divide(), 4)), given={"x": np.arange(16), "other": np.zeros(1)})

    assert (draws.draw(0, 0)["x"] == np.arange(16)).all()
    assert draws.draw(0, 0).keys() == {"x"}
