"""Products of groups of rows are those of a loop over the groups, empty ones and rows behind the last included."""

import numpy as np
import pytest

from rewright.interp.program import run
from rewright.ir.types import DType
from rewright.ops.base import Array
from rewright.ops.reference.grouped import grouped_matrix, grouped_outer
from tests.programs import Builder

ROWS, INNER, OUTER = 6, 2, 3
ENDS = ([2, 4, 6], [0, 0, 6], [1, 1, 4], [6, 6, 6], [0, 0, 0])


def groups(ends: list[int]) -> list[tuple[int, int]]:
    return list(zip([0, *ends[:-1]], ends, strict=True))


@pytest.mark.parametrize("ends", ENDS)
def test_each_row_meets_the_matrix_of_its_group(ends: list[int]) -> None:
    numbers = np.random.default_rng(0)
    x, weight = numbers.standard_normal((ROWS, INNER)), numbers.standard_normal((len(ends), INNER, OUTER))
    expected = np.zeros((ROWS, OUTER))
    for number, (start, end) in enumerate(groups(ends)):
        expected[start:end] = x[start:end] @ weight[number]
    b = Builder("grouped")
    nodes = [b.tensor(n, v.shape) for n, v in (("x", x), ("weight", weight))]
    b.output("y", grouped_matrix(b, *nodes, b.tensor("ends", (len(ends),), DType.I32)))
    np.testing.assert_allclose(found(b, x=x, weight=weight, ends=np.array(ends, np.int32)), expected)


@pytest.mark.parametrize("ends", ENDS)
def test_rows_of_a_group_are_multiplied_with_each_other(ends: list[int]) -> None:
    numbers = np.random.default_rng(1)
    x, y = numbers.standard_normal((ROWS, INNER)), numbers.standard_normal((ROWS, OUTER))
    expected = np.stack([x[start:end].T @ y[start:end] for start, end in groups(ends)])
    b = Builder("grouped")
    nodes = [b.tensor(n, v.shape) for n, v in (("x", x), ("y", y))]
    b.output("y", grouped_outer(b, *nodes, b.tensor("ends", (len(ends),), DType.I32)))
    np.testing.assert_allclose(found(b, x=x, y=y, ends=np.array(ends, np.int32)), expected)


def found(builder: Builder, **inputs: Array) -> Array:
    return run(builder.build(), inputs)["y"]
