"""Look-ups in tables that count: what is read at a place is that place."""

from __future__ import annotations

import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.types import TensorType
from rewright.lifting.programs import Lifter
from tests.programs import I64, Builder


def counted(start: int, stride: int) -> Graph:
    """``table[ids]`` for a table of 8 numbers from ``start``, and the same without a table."""
    build = Builder("counted")
    ids = build.tensor("ids", (5,), I64)
    table = build.add(ops.Iota(TensorType((8,), I64), 0))
    if stride < 0:
        table = build.add(ops.Reverse((0,)), table)
    if start:
        table = build.add(ops.Add(), table, build.full(start, table))
    build.output("read", build.add(ops.Gather((), (0,), (), (), (0,), 1, (1,)), table, ids))
    plain = ids if stride > 0 else build.add(ops.Subtract(), build.full(7, ids), ids)
    build.output("plain", build.add(ops.Add(), plain, build.full(start, plain)) if start else plain)
    return build.build()


@pytest.mark.parametrize(("start", "stride"), [(0, 1), (3, 1), (0, -1), (-2, -1)])
def test_the_number_at_a_place_is_the_place(start: int, stride: int) -> None:
    graph = counted(start, stride)
    lifted = Lifter().sequential(graph)
    assert lifted.values[graph.outputs["read"]] == lifted.values[graph.outputs["plain"]]
