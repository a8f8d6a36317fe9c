"""Lanes that nobody sees: a crop is moved in front of what is computed row by row, where it takes a filling away."""

from __future__ import annotations

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import building as rb
from rewright.ops.reference.simplifying import SimplifyingBuilder

INFINITY = float("-inf")


def tensor(b: GraphBuilder, name: str, shape: tuple[int, ...]) -> int:
    return b.input(name, ops.Input(name, TensorType(shape, DType.F32)))


def filled(b: GraphBuilder, position: int, *more: int) -> int:
    fill = b.add(ops.Constant(TensorType((), DType.F32), (INFINITY,)))
    none = (0,) * len(more)
    return b.add(ops.Pad(none, more, none), position, fill)


def cropped(b: GraphBuilder, position: int, *less: int) -> int:
    return filled(b, position, *(-n for n in less))


def kinds(b: SimplifyingBuilder, output: int) -> set[str]:
    b.output("y", output)
    graph = b.build()
    return {graph.nodes[p].op.name for p in graph.live()}


def test_what_is_subtracted_of_filled_blocks_is_that_of_the_rows() -> None:
    b = SimplifyingBuilder()
    x, y = (tensor(b, name, (3, 5)) for name in "xy")
    difference = b.add(ops.Subtract(), filled(b, x, 0, 3), filled(b, y, 0, 3))
    assert kinds(b, cropped(b, difference, 0, 3)) == {"input", "subtract"}


def test_rows_of_products_and_sums_are_cropped_before_them() -> None:
    b = SimplifyingBuilder()
    x, w = (tensor(b, name, shape) for name, shape in (("x", (3, 5)), ("w", (5, 4))))
    product = b.add(ops.DotGeneral((), (), (1,), (0,)), filled(b, x, 5, 0), w)
    total = b.add(ops.Reduce("maximum", (1,)), product)
    assert kinds(b, cropped(b, total, 5)) == {"input", "dot_general", "reduce"}


def test_tiles_are_read_as_the_row_that_they_are_of() -> None:
    b = SimplifyingBuilder()
    x = tensor(b, "x", (20,))
    tiles = b.add(ops.Reshape((3, 8)), filled(b, x, 4))
    place = rb.shift_by(b, rb.iota(b, (3, 8), 1), 0)
    place = rb.add(b, place, rb.scale_by(b, rb.iota(b, (3, 8), 0), 8))
    inside = rb.compare(b, "LT", place, rb.splat(b, 20, (3, 8), DType.I64))
    masked = b.add(ops.Select(), inside, b.add(ops.Exponential(), tiles), rb.splat(b, 0.0, (3, 8), DType.F32))
    assert kinds(b, cropped(b, b.add(ops.Reshape((24,)), masked), 4)) == {"input", "exponential"}


def program(b: GraphBuilder, random: np.random.Generator, rows: int) -> Graph:
    """Blocks of two tensors, computed with at random, of which the first rows are kept."""
    more = int(random.integers(1, 4))
    x, y = (filled(b, tensor(b, name, (rows, 6)), more, 2) for name in "xy")
    values = [x, y]
    for _ in range(8):
        one, other = (values[int(k)] for k in random.integers(len(values), size=2))
        match int(random.integers(5)):
            case 0:
                values.append(rb.subtract(b, one, other))
            case 1:
                row = b.add(ops.Reduce("maximum", (1,)), one)
                values.append(b.add(ops.BroadcastInDim(b.type(one).shape, (0,)), row))
            case 2:
                inner = b.add(ops.DotGeneral((), (), (1,), (1,)), one, other)
                values.append(b.add(ops.DotGeneral((), (), (1,), (0,)), inner, other))
            case 3:
                later = rb.compare(b, "LE", rb.iota(b, b.type(one).shape, 0), rb.iota(b, b.type(one).shape, 1))
                values.append(rb.select(b, later, one, other))
            case _:
                turned = b.add(ops.Transpose((1, 0)), b.add(ops.Exponential(), one))
                values.append(b.add(ops.Transpose((1, 0)), turned))
    b.output("y", cropped(b, values[-1], more, int(random.integers(3))))
    return b.build()


@pytest.mark.parametrize("seed", range(30))
def test_a_crop_in_front_changes_no_value(seed: int) -> None:
    rows = 1 + seed % 4
    plain, moved = (
        program(b, np.random.default_rng(seed), rows) for b in (GraphBuilder("plain"), SimplifyingBuilder())
    )
    random = np.random.default_rng(seed)
    inputs = {name: random.normal(size=(rows, 6)) for name in "xy"}
    with np.errstate(all="ignore"):
        assert np.allclose(run(plain, inputs)["y"], run(moved, inputs)["y"], equal_nan=True)


def row_of_tiles(b: GraphBuilder, random: np.random.Generator) -> Graph:
    """A row in tiles, of which a mask keeps the first places, read as a row again."""
    tiles, width = (int(n) for n in random.integers(1, 5, size=2))
    length = int(random.integers(1, tiles * width + 1))
    x = tensor(b, "x", (2, length))
    rows = b.add(ops.Reshape((2, tiles, width)), filled(b, x, 0, tiles * width - length))
    place = rb.scale_by(b, rb.iota(b, (tiles, width), 0), width)
    place = rb.add(b, place, rb.iota(b, (tiles, width), 1))
    last = rb.splat(b, int(random.integers(-1, tiles * width + 2)), (tiles, width), DType.I64)
    direction = ("GE", "GT", "LE", "LT")[int(random.integers(4))]
    sides = (last, place) if direction.startswith("G") else (place, last)
    keeps = b.add(ops.BroadcastInDim((2, tiles, width), (1, 2)), b.add(ops.Compare(direction), *sides))
    other = rb.splat(b, float(random.integers(-3, 3)), (2, tiles, width), DType.F32)
    chosen = b.add(ops.Select(), keeps, b.add(ops.Exponential(), rows), other)
    b.output("y", b.add(ops.Reshape((2, tiles * width)), chosen))
    return b.build()


@pytest.mark.parametrize("seed", range(40))
def test_a_mask_that_ends_a_row_is_its_end(seed: int) -> None:
    plain, moved = (row_of_tiles(b, np.random.default_rng(seed)) for b in (GraphBuilder("plain"), SimplifyingBuilder()))
    shape = plain.nodes[plain.inputs["x"]].type.shape
    inputs = {"x": np.random.default_rng(seed).normal(size=[int(str(n)) for n in shape])}
    assert np.allclose(run(plain, inputs)["y"], run(moved, inputs)["y"])


def test_tables_of_integers_are_computed_with() -> None:
    b = SimplifyingBuilder(computes_tables=True)
    ends = b.add(ops.Constant(TensorType((3,), DType.I32), (2, 3, 6)))
    starts = b.add(ops.Pad((1,), (-1,), (0,)), ends, b.add(ops.Constant(TensorType((), DType.I32), (0,))))
    counts = rb.subtract(b, ends, starts)
    wraps = rb.multiply(b, counts, rb.splat(b, 1 << 30, (3,), DType.I32))
    assert b.node(counts).op == ops.Constant(TensorType((3,), DType.I32), (2, 1, 3))
    assert b.node(wraps).op == ops.Constant(TensorType((3,), DType.I32), (-(1 << 31), 1 << 30, -(1 << 30)))
    wide = b.add(ops.BroadcastInDim((3, 4), (0,)), counts)
    assert b.node(rb.compare(b, "LT", rb.convert(b, rb.iota(b, (3, 4), 1), DType.I32), wide)).op.name == "constant"
