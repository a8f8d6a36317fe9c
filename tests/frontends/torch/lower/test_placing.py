"""Reads and writes at known places, written with slices and concatenations, compute the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rewright import ops
from rewright.frontends.torch.lower.placing import PlacingBuilder
from rewright.interp.program import run
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import indexing


def builder(*shapes: tuple[int, ...]) -> tuple[PlacingBuilder, list[int]]:
    build = PlacingBuilder()
    names = [f"x{k}" for k in range(len(shapes))]
    types = [TensorType(shape, DType.F64) for shape in shapes]
    return build, [build.input(n, ops.Input(n, t)) for n, t in zip(names, types, strict=True)]


def integers(build: PlacingBuilder, values: np.ndarray) -> int:
    return build.add(ops.Constant(TensorType(values.shape, DType.I64), tuple(values.reshape(-1).tolist())))


def result(build: PlacingBuilder, position: int, *values: np.ndarray) -> np.ndarray:
    build.output("y", position)
    graph = build.build()
    assert not any(isinstance(node.op, (ops.Gather, ops.Scatter, ops.Sort)) for node in graph.nodes)
    return run(graph, {f"x{k}": value for k, value in enumerate(values)})["y"]


places = st.lists(st.integers(0, 4), min_size=1, max_size=7)


@given(places, st.integers(0, 1))
def test_rows_and_columns_at_known_places(index: list[int], axis: int) -> None:
    x = np.arange(25.0).reshape(5, 5)
    build, (source,) = builder(x.shape)
    found = indexing.take(build, source, integers(build, np.array(index)), axis)
    np.testing.assert_array_equal(result(build, found, x), np.take(x, index, axis))


@given(places)
def test_rows_are_added_where_they_belong(index: list[int]) -> None:
    updates = np.arange(3.0 * len(index)).reshape(len(index), 3)
    build, (given_,) = builder(updates.shape)
    found = indexing.add_rows(build, 5, integers(build, np.array(index)), given_)
    wanted = np.zeros((5, 3))
    np.add.at(wanted, index, updates)
    np.testing.assert_array_equal(result(build, found, updates), wanted)


@given(places)
def test_one_element_of_every_row(index: list[int]) -> None:
    x = np.arange(5.0 * len(index)).reshape(len(index), 5)
    build, (source,) = builder(x.shape)
    found = indexing.pick(build, source, integers(build, np.array(index)), 1)
    np.testing.assert_array_equal(result(build, found, x), x[np.arange(len(index)), index])


def test_what_was_flattened_first_is_read_where_it_came_from() -> None:
    x = np.arange(6.0).reshape(3, 2)
    build, (source,) = builder(x.shape)
    flat = build.add(ops.Reshape((6,)), source)
    found = indexing.take(build, flat, integers(build, np.array([5, 0, 2])), 0)
    np.testing.assert_array_equal(result(build, found, x), [5, 0, 2])


def test_rows_of_nobody_are_nothing() -> None:
    build, (source, weight) = builder((0, 4), (4, 3))
    product = build.add(ops.DotGeneral((), (), (1,), (0,)), source, weight)
    assert build.type(product).shape == (0, 3)
    assert isinstance(build.node(product).op, ops.Constant)
