"""The simplifying builder gives the same values as the plain one, with fewer nodes."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.interp.program import run
from rewright.ir.dims import product, symbol
from rewright.ir.graph import Graph, GraphBuilder, validate
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import building as rb
from rewright.ops.reference.affine import Affine
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.ops.sorting import sort_along

Step = Callable[[GraphBuilder, int], int]
SHAPE = (4, 2, 6)


def flatten(b: GraphBuilder, x: int) -> int:
    shape = b.type(x).shape
    return rb.reshape(b, x, (product(shape[:2]), *shape[2:])) if len(shape) > 1 else x


def unflatten(b: GraphBuilder, x: int) -> int:
    first, *rest = b.type(x).shape
    assert isinstance(first, int)
    return b.add(ops.Reshape((first // 2, 2, *rest)), x) if first % 2 == 0 else x


def reverse_axes(b: GraphBuilder, x: int) -> int:
    return b.add(ops.Transpose(tuple(reversed(range(b.type(x).rank)))), x)


def drop_first(b: GraphBuilder, x: int) -> int:
    size = b.type(x).shape[0]
    assert isinstance(size, int)
    return rb.slice_axis(b, x, 0, min(1, size - 1), size)


def halves_swapped(b: GraphBuilder, x: int) -> int:
    size = b.type(x).shape[-1]
    assert isinstance(size, int)
    axis = b.type(x).rank - 1
    parts = [rb.slice_axis(b, x, axis, 0, size // 2), rb.slice_axis(b, x, axis, size // 2, size)]
    joined = rb.concatenate(b, parts, axis)
    return rb.concatenate(b, [rb.slice_axis(b, joined, axis, size // 2, size), parts[0]], axis)


def repeat(b: GraphBuilder, x: int) -> int:
    shape = b.type(x).shape
    return b.add(ops.BroadcastInDim((2, *shape), tuple(range(1, len(shape) + 1))), x) if len(shape) < 4 else x


def new_axis(b: GraphBuilder, x: int) -> int:
    return rb.insert_ones(b, x, [1]) if b.type(x).rank < 4 else x


def gram(b: GraphBuilder, x: int) -> int:
    rank = b.type(x).rank
    return rb.dot(b, x, reverse_axes(b, x), ([rank - 1], [0])) if rank < 3 else x


def total(b: GraphBuilder, x: int) -> int:
    return rb.reduce(b, "sum", x, [0], keep=True)


def by_position(b: GraphBuilder, x: int) -> int:
    kind = b.type(x)
    place = rb.shift_by(b, rb.scale_by(b, rb.iota(b, kind.shape, kind.rank - 1), 2), -3)
    early = rb.compare(b, "LE", place, rb.iota(b, kind.shape, 0))
    return rb.select(b, early, rb.scale_by(b, x, 1.0), rb.splat_like(b, 0.0, x))


STEPS: list[Step] = [
    flatten,
    unflatten,
    reverse_axes,
    drop_first,
    halves_swapped,
    repeat,
    new_axis,
    gram,
    total,
    by_position,
]


def program(b: GraphBuilder, steps: list[int]) -> Graph:
    x = b.input("x", ops.Input("x", TensorType(SHAPE, DType.F64)))
    for step in steps:
        x = STEPS[step](b, x)
    b.output("y", x)
    return b.build()


@given(steps=st.lists(st.integers(0, len(STEPS) - 1), max_size=7))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_values_and_types_stay(steps: list[int]) -> None:
    plain, simple = program(GraphBuilder(), steps), program(SimplifyingBuilder(), steps)
    validate(simple)
    x = np.random.default_rng(0).normal(size=SHAPE)
    expected, found = run(plain, {"x": x})["y"], run(simple, {"x": x})["y"]
    assert plain.nodes[plain.outputs["y"]].type == simple.nodes[simple.outputs["y"]].type
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def names(b: GraphBuilder) -> list[str]:
    return [node.op.name for node in b.build().nodes]


def input_of(b: GraphBuilder, *shape: int) -> int:
    return b.input("x", ops.Input("x", TensorType(shape, DType.F32)))


def test_identities_add_nothing() -> None:
    b = SimplifyingBuilder()
    x = input_of(b, 4, 6)
    assert b.add(ops.Reshape((4, 6)), x) == x
    assert b.add(ops.Transpose((0, 1)), x) == x
    assert b.add(ops.Convert(DType.F32), x) == x
    assert b.add(ops.Transpose((1, 0)), b.add(ops.Transpose((1, 0)), x)) == x
    assert b.add(ops.Reshape((4, 6)), b.add(ops.Reshape((24,)), x)) == x
    halves = [rb.slice_axis(b, x, 0, 0, 2), rb.slice_axis(b, x, 0, 2, 4)]
    assert rb.concatenate(b, halves, 0) == x


def test_equal_layout_is_one_node() -> None:
    b = SimplifyingBuilder()
    x = input_of(b, 4, 6)
    assert b.add(ops.Transpose((1, 0)), x) == b.add(ops.Transpose((1, 0)), x)
    assert b.add(ops.Exponential(), x) != b.add(ops.Exponential(), x)


def test_a_slice_reads_only_the_parts_it_needs() -> None:
    b = SimplifyingBuilder()
    x = input_of(b, 4, 6)
    doubled = b.add(ops.Exponential(), x)
    joined = rb.concatenate(b, [x, doubled, x], 0)
    assert rb.slice_axis(b, joined, 0, 4, 8) == doubled


def test_conversions_that_lose_digits_are_kept() -> None:
    b = SimplifyingBuilder()
    x = input_of(b, 4)
    low = b.add(ops.Convert(DType.BF16), x)
    assert b.node(b.add(ops.Convert(DType.F32), low)).op == ops.Convert(DType.F32)


def test_index_arithmetic_is_known_in_closed_form() -> None:
    b = SimplifyingBuilder()
    ramp = rb.iota(b, (3, 8), 1)
    cut = rb.slice_axis(b, rb.shift_by(b, rb.scale_by(b, ramp, 3), 5), 1, 2, 8)
    assert b.affine(cut) == Affine(11, (0, 3))
    assert b.affine(rb.subtract(b, cut, cut)) == Affine(0, (0, 0))
    assert b.affine(rb.compare(b, "LE", cut, rb.shift_by(b, cut, 1))) == Affine(1, (0, 0))
    assert b.affine(rb.compare(b, "LE", cut, rb.iota(b, (3, 6), 0))) is None


def test_neighbouring_ramps_join_to_one() -> None:
    b = SimplifyingBuilder()
    ramp = rb.iota(b, (6,), 0)
    before = rb.shift_by(b, rb.slice_axis(b, ramp, 0, 0, 1), -1)
    assert b.affine(rb.concatenate(b, [before, ramp], 0)) == Affine(-1, (1,))
    assert b.affine(rb.concatenate(b, [ramp, ramp], 0)) is None


def test_numbers_too_large_to_be_positions_are_left_alone() -> None:
    b = SimplifyingBuilder()
    ramp = rb.iota(b, (6,), 0, DType.I32)
    assert b.affine(rb.scale_by(b, ramp, 2**31 - 1)) is None
    assert b.affine(rb.scale_by(b, rb.iota(b, (6,), 0), 2**62)) is None


def test_symbolic_sizes() -> None:
    b = SimplifyingBuilder()
    batch, length = symbol("b"), symbol("s")
    x = b.input("x", ops.Input("x", TensorType((batch, length, 8), DType.F32)))
    w = b.input("w", ops.Input("w", TensorType((8, 3), DType.F32)))
    result = rb.dot(b, rb.reshape(b, x, (batch * length, 8)), w, ([1], [0]))
    assert b.type(result).shape == (batch * length, 3)
    direct = b.node(result).operands[0]
    assert b.type(direct).shape == (batch, length, 3)
    assert b.node(direct).operands[0] == x


def test_memory_that_nobody_wrote_is_no_known_number() -> None:
    builder = SimplifyingBuilder()
    kind = TensorType((2,), DType.I32)
    memory = builder.add(ops.CustomCall(ops.CustomCall.UNINITIALIZED, (), (kind,), 0))

    assert builder.known(memory) is None


@pytest.mark.parametrize(("start", "name"), [(0, "top_k"), (1, "slice")])
def test_the_first_of_a_sort_are_the_largest(start: int, name: str) -> None:
    b = SimplifyingBuilder()
    x = b.input("x", ops.Input("x", TensorType((4, 6), DType.F32)))
    sort = b.add(ops.Sort(1, True, "indices"), x)
    b.output("first", b.add(ops.Slice((0, start), (4, 3), (1, 1)), sort))
    graph = b.build()
    assert graph.nodes[graph.outputs["first"]].op.name == name
    values = np.array([[1.0, 2, 2, 0, np.nan, 2], [0, 0, 0, 0, 0, 0], [3, 1, 2, 5, 4, 0], [-1, -2, -1, 0, np.inf, 1]])
    expected = sort_along(values, 1, True, "indices")[:, start:3]
    assert np.array_equal(run(graph, {"x": values})["first"], expected)
