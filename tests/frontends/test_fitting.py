"""Programs of all ranks from those of some: numbers that count along mesh axes are fitted, anything else is refused."""

from __future__ import annotations

from typing import Any

import pytest

from rewright import ops
from rewright.frontends import fitting
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh
from rewright.ir.types import DType, TensorType

MESH = Mesh.of({"dp": 6, "tp": 4})


def own_slice(place: tuple[int, ...]) -> Graph:
    """A rank's rows, scaled, and added up over its row of the mesh."""
    row, column = place
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((64, 3), DType.F32)))
    start = 8 * row + 2 * column
    part = b.add(ops.Slice((start, 0), (start + 2, 3), (1, 1)), x)
    group = tuple(4 * row + k for k in range(4))
    b.output("y", b.add(ops.AllReduce("sum", (group,)), part))
    return b.build()


def fitted(program: Any) -> Any:
    return fitting.fit({place: program(place) for place in fitting.first_ranks(MESH)}, MESH)


def test_slices_and_groups_of_every_rank() -> None:
    build = fitted(own_slice)
    for rank in range(MESH.size):
        place = MESH.coordinates(rank)
        assert fitting.same(build(place), own_slice(place))


def test_ranks_that_a_fit_is_made_from_and_compared_with() -> None:
    assert fitting.first_ranks(MESH) == [(0, 0), (1, 0), (0, 1)]
    assert fitting.other_ranks(MESH) == [(5, 0), (0, 3), (5, 3), (3, 2)]
    assert [MESH.rank(place) for place in fitting.other_ranks(MESH)] == [20, 3, 23, 14]


def test_one_number_that_does_not_count_up_is_seen() -> None:
    def wrong(place: tuple[int, ...]) -> Graph:
        return own_slice((place[0], place[1] % 3))

    build = fitted(wrong)
    assert not all(fitting.same(build(place), wrong(place)) for place in fitting.other_ranks(MESH))


def two_steps(place: tuple[int, ...]) -> Graph:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((64, 3), DType.F32)))
    b.output("y", b.add(ops.Negate() if place[0] else ops.Exponential(), x))
    return b.build()


def uneven(place: tuple[int, ...]) -> Graph:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", TensorType((64, 3), DType.F32)))
    b.output("y", b.add(ops.Slice((0, 0), (8 + place[1], 3), (1, 1)), x))
    return b.build()


@pytest.mark.parametrize("program", [two_steps, uneven])
def test_another_operator_or_another_shape_is_no_number(program: Any) -> None:
    with pytest.raises(fitting.NotAffine):
        fitted(program)


def test_constants_count_up_exactly() -> None:
    build = fitting.fit({(0, 0): (0.1, "a"), (1, 0): (0.1, "a"), (0, 1): (0.6, "a")}, MESH)
    assert build((5, 2)) == (pytest.approx(1.1), "a")
