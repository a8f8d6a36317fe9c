"""Reading and writing one element of every row says what NumPy says, and changing it needs no scatter."""

from collections.abc import Callable

import numpy as np
import pytest

from rewright import ops
from rewright.interp.program import run
from rewright.ir.graph import Graph
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array
from rewright.ops.reference import building as rb
from rewright.ops.reference.advanced import Selection, read, write
from rewright.ops.reference.simplifying import SimplifyingBuilder

Program = Callable[[SimplifyingBuilder, int, int, int, int], int]
"""From the tensor, the row numbers, the column in each row and a value for each row to the tensor afterwards."""
ROWS, COLUMNS = 5, 4


def chosen(rows: int, columns: int) -> Selection:
    return Selection(((0, rows), (1, columns)))


def decreased(b: SimplifyingBuilder, x: int, rows: int, columns: int, value: int) -> int:
    before = read(b, x, chosen(rows, columns))
    return write(b, x, chosen(rows, columns), b.add(ops.Subtract(), before, value), "replace")


def increased(b: SimplifyingBuilder, x: int, rows: int, columns: int, value: int) -> int:
    before = read(b, x, chosen(rows, columns))
    return write(b, x, chosen(rows, columns), rb.add(b, value, before), "replace")


def added(b: SimplifyingBuilder, x: int, rows: int, columns: int, value: int) -> int:
    return write(b, x, chosen(rows, columns), value, "sum")


def replaced(b: SimplifyingBuilder, x: int, rows: int, columns: int, value: int) -> int:
    return write(b, x, chosen(rows, columns), value, "replace")


def subtracted_from(b: SimplifyingBuilder, x: int, rows: int, columns: int, value: int) -> int:
    before = read(b, x, chosen(rows, columns))
    return write(b, x, chosen(rows, columns), b.add(ops.Subtract(), value, before), "replace")


def of_another_tensor(b: SimplifyingBuilder, x: int, rows: int, columns: int, value: int) -> int:
    before = read(b, b.add(ops.Multiply(), x, x), chosen(rows, columns))
    return write(b, x, chosen(rows, columns), b.add(ops.Subtract(), before, value), "replace")


def of_another_column(b: SimplifyingBuilder, x: int, rows: int, columns: int, value: int) -> int:
    other = b.add(ops.Subtract(), rb.splat_like(b, COLUMNS - 1, columns), columns)
    before = read(b, x, chosen(rows, other))
    return write(b, x, chosen(rows, columns), b.add(ops.Subtract(), before, value), "replace")


EXPECTED: dict[Program, Callable[[Array, Array, Array, Array], Array]] = {
    decreased: lambda x, i, j, v: x[i, j] - v,
    increased: lambda x, i, j, v: x[i, j] + v,
    added: lambda x, i, j, v: x[i, j] + v,
    replaced: lambda x, i, j, v: v,
    subtracted_from: lambda x, i, j, v: v - x[i, j],
    of_another_tensor: lambda x, i, j, v: (x * x)[i, j] - v,
    of_another_column: lambda x, i, j, v: x[i, COLUMNS - 1 - j] - v,
}


def graph_of(program: Program) -> Graph:
    b = SimplifyingBuilder()
    x = b.input("x", ops.Input("x", TensorType((ROWS, COLUMNS), DType.F64)))
    columns = b.input("columns", ops.Input("columns", TensorType((ROWS,), DType.I64)))
    value = b.input("value", ops.Input("value", TensorType((ROWS,), DType.F64)))
    rows = rb.iota(b, (ROWS,), 0, DType.I64)
    b.output("y", program(b, x, rows, columns, value))
    return b.build()


@pytest.mark.parametrize("program", EXPECTED)
def test_one_element_of_every_row(program: Program) -> None:
    generator = np.random.default_rng(0)
    x, value = generator.standard_normal((ROWS, COLUMNS)), generator.standard_normal(ROWS)
    columns = np.array([3, 0, 0, 2, 1])
    expected, rows = x.copy(), np.arange(ROWS)
    expected[rows, columns] = EXPECTED[program](x, rows, columns, value)
    found = run(graph_of(program), {"x": x, "columns": columns, "value": value})["y"]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("program", [decreased, increased, added])
def test_a_change_reads_nothing_at_an_index(program: Program) -> None:
    graph = graph_of(program)
    needed, stack = set[int](), list(graph.outputs.values())
    while stack:
        needed.add(position := stack.pop())
        stack += graph.nodes[position].operands
    assert not any(isinstance(graph.nodes[p].op, (ops.Gather, ops.Scatter)) for p in needed)
