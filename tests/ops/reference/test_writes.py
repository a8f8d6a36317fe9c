"""A write by index written without one gives what the operator gives: repeats, places outside and counted rows too."""

from __future__ import annotations

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.types import DType
from rewright.ops.base import Array
from rewright.ops.reference.writes import MOST_PARTS, as_choice, as_parts
from tests.programs import Builder

ROWS = [[4, 0, 2], [1, 1, 1], [2, 3, 4], [-1, 5, 6], [0, 2, 0]]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("axis", [0, 1])
def test_writes_at_numbers_are_parts(rows: list[int], axis: int) -> None:
    b = Builder("parts")
    shape, given = ((5, 4), (len(rows), 4)) if axis == 0 else ((4, 5), (4, len(rows)))
    nodes = b.tensor("x", shape), b.tensor("i", (len(rows),), DType.I64), b.tensor("y", given)
    op = ops.Scatter("replace", (1 - axis,), (axis,), (), (), (axis,), 1)
    b.output("expected", b.add(op, *nodes))
    parts = as_parts(b, op, nodes[0], nodes[2], rows)
    assert parts is not None
    b.output("found", parts)

    found = run(b.build(), {"x": numbers(*shape), "i": np.array(rows), "y": numbers(*given)})

    np.testing.assert_array_equal(found["found"], found["expected"])


def test_the_axes_of_updates_may_be_in_another_order() -> None:
    b = Builder("parts")
    nodes = b.tensor("x", (5, 4)), b.tensor("i", (2,), DType.I64), b.tensor("y", (4, 2))
    op = ops.Scatter("replace", (0,), (0,), (), (), (0,), 1)
    b.output("expected", b.add(op, *nodes))
    parts = as_parts(b, op, nodes[0], nodes[2], [3, 1])
    assert parts is not None
    b.output("found", parts)

    found = run(b.build(), {"x": numbers(5, 4), "i": np.array([3, 1]), "y": numbers(4, 2)})

    np.testing.assert_array_equal(found["found"], found["expected"])


@pytest.mark.parametrize("place", [-1, 0, 3, 300])
@pytest.mark.parametrize("dtype", [DType.I8, DType.I64])
def test_one_write_is_a_choice(place: int, dtype: DType) -> None:
    """Of more places than the dtype of the index has, too."""
    place = place if dtype is DType.I64 else min(place, 127)
    b = Builder("choice")
    nodes = b.tensor("x", (301, 2)), b.tensor("i", (1,), dtype), b.tensor("y", (1, 2))
    op = ops.Scatter("replace", (1,), (0,), (), (), (0,), 1)
    b.output("expected", b.add(op, *nodes))
    choice = as_choice(b, op, *nodes)
    assert choice is not None
    b.output("found", choice)

    given = {
        "x": numbers(301, 2),
        "i": np.array([place], np.int8 if dtype is DType.I8 else np.int64),
        "y": numbers(1, 2),
    }
    found = run(b.build(), given)

    np.testing.assert_array_equal(found["found"], found["expected"])


def test_a_write_in_every_row_is_a_choice_where_the_index_counts_the_rows() -> None:
    """``x[arange(4), i] = y``; what counts fewer rows than there are is no such index."""

    def choice(rows: int) -> tuple[Builder, int | None]:
        b = Builder("choice")
        nodes = b.tensor("x", (4, 3, 2)), b.tensor("i", (rows, 2), DType.I64), b.tensor("y", (rows, 2))
        op = ops.Scatter("replace", (1,), (0, 1), (), (), (0, 1), 1)
        b.output("expected", b.add(op, *nodes))
        return b, as_choice(b, op, *nodes, [(0, 0)])

    builder, made = choice(4)
    assert made is not None and choice(3)[1] is None
    builder.output("found", made)
    index = np.stack([np.arange(4), np.array([2, 0, 5, 1])], 1)
    found = run(builder.build(), {"x": numbers(4, 3, 2), "i": index, "y": numbers(4, 2)})
    np.testing.assert_array_equal(found["found"], found["expected"])


def test_writes_that_may_meet_are_no_choice_and_many_runs_no_parts() -> None:
    b = Builder("neither")
    size = 2 * MOST_PARTS + 2
    nodes = b.tensor("x", (size,)), b.tensor("i", (size // 2,), DType.I64), b.tensor("y", (size // 2,))
    op = ops.Scatter("replace", (), (0,), (), (), (0,), 1)

    assert as_choice(b, op, *nodes) is None
    assert as_parts(b, op, nodes[0], nodes[2], range(0, size, 2)) is None
