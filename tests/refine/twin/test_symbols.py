"""Sizes that programs are run at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewright import ops
from rewright.ir.dims import symbol
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.refine.twin.symbols import further_sizes


def window(width: int, assumptions: str = "") -> Graph:
    """Which places are within a window."""
    size = symbol("s")
    kind = TensorType((size,), DType.I64)
    builder = GraphBuilder("window")
    places = builder.add(ops.Iota(kind, 0))
    builder.output("near", builder.add(ops.Compare("LT"), places, builder.add(ops.Constant(kind, (width,)))))
    return replace(builder.build(), metadata={"assumptions": assumptions} if assumptions else {})


@pytest.mark.parametrize(
    ("assumptions", "expected"),
    [
        ("", [11, 1]),
        ("s >= 2", [11]),
        ("s <= 8; s >= 2", []),
        ("s % 2 == 1", [11, 1]),
        ("s % 3 == 0", []),
        ("x is sorted", [11, 1]),
        ("all of s are different", []),
    ],
)
def test_sizes_around_the_constants_that_guards_allow(assumptions: str, expected: list[int]) -> None:
    """A condition that is not understood and names a size allows no other."""
    assert [sizes["s"] for sizes in further_sizes([window(8), window(9, assumptions)])] == expected
