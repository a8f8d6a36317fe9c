"""One program against the ranks of another implementation: fused weights, sharded by heads, expressed by the map."""

from __future__ import annotations

import pytest

from rewright import ops
from rewright.equiv.engine import equiv
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram
from rewright.ir.types import DType, TensorType


def weight(b: GraphBuilder, name: str, *shape: int) -> int:
    return b.input(name, ops.Input(name, TensorType(shape, DType.F32)))


def product(b: GraphBuilder, x: int, w: int) -> int:
    return b.add(ops.DotGeneral((), (), (1,), (1,)), x, w)


def apart() -> Graph:
    """``down(silu(gate x) * up x)`` with weights of their own."""
    b = GraphBuilder()
    x = weight(b, "x", 3, 4)
    gate, up = product(b, x, weight(b, "gate", 8, 4)), product(b, x, weight(b, "up", 8, 4))
    inner = b.add(ops.Multiply(), b.add(ops.Multiply(), gate, b.add(ops.Logistic(), gate)), up)
    b.output("y", product(b, inner, weight(b, "down", 4, 8)))
    return b.build()


def rank(*, reduced: bool = True) -> Graph:
    """The same on one of two ranks, gate and up in one weight."""
    b = GraphBuilder()
    x = weight(b, "x", 3, 4)
    both = product(b, x, weight(b, "gate_up", 8, 4))
    gate, up = (b.add(ops.Slice((0, n), (3, n + 4), (1, 1)), both) for n in (0, 4))
    inner = b.add(ops.Multiply(), b.add(ops.Multiply(), gate, b.add(ops.Logistic(), gate)), up)
    part = product(b, inner, weight(b, "down", 4, 4))
    b.output("y", b.add(ops.AllReduce("sum", ((0, 1),)), part) if reduced else part)
    return b.build()


RELATIONS = {
    "gate_up@0": "concat([gate[0:4], up[0:4]], axis=0)",
    "gate_up@1": "concat([gate[4:8], up[4:8]], axis=0)",
    "down": "Shard(1)",
    "x": "Replicate()",
}


def ranks(*graphs: Graph) -> RankProgram:
    return RankProgram(graphs, Mesh.of({"tp": len(graphs)}), {}, {})


def test_two_ranks_with_fused_weights() -> None:
    verdict = equiv(apart(), ranks(rank(), rank()), relations=RELATIONS)
    assert verdict.status == "proved", verdict.reason
    assert verdict.equations[0] == "right gate_up@0 = concat([gate[0:4], up[0:4]], axis=0)  (of left)"


def test_the_halves_of_another_rank_are_told_apart() -> None:
    swapped = {**RELATIONS, "gate_up@1": "concat([up[4:8], gate[4:8]], axis=0)"}
    assert equiv(apart(), ranks(rank(), rank()), relations=swapped).status == "refuted"


def test_a_missing_reduction_is_found() -> None:
    verdict = equiv(apart(), ranks(rank(reduced=False), rank(reduced=False)), relations=RELATIONS)
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == "missing_reduction"


def test_no_program_at_all() -> None:
    with pytest.raises(RewrightError, match="no right program"):
        equiv(apart(), [])
