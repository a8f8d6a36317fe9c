"""Ranks that hold one head each, and whose programs have no axis of heads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.refine import refine
from tests.programs import Builder

TOKENS, WIDTH = 5, 4


def attention(build: Builder, heads: int) -> int:
    """Scores of every head with itself, weighted rows, and the projection that sums over heads."""
    x = build.tensor("x", (TOKENS, WIDTH))
    weights = {name: build.tensor(name, (WIDTH, heads * WIDTH)) for name in ("query", "key", "value")}
    out = build.tensor("out", (heads * WIDTH, WIDTH))
    split = {name: build.matmul(x, weight) for name, weight in weights.items()}
    if heads > 1:
        shape = (TOKENS, heads, WIDTH)
        split = {name: build.add(ops.Reshape(shape), y) for name, y in split.items()}
        scores = build.add(ops.DotGeneral((1,), (1,), (2,), (2,)), split["query"], split["key"])
        rows = build.add(ops.DotGeneral((0,), (1,), (2,), (0,)), build.add(ops.Tanh(), scores), split["value"])
        merged = build.add(ops.Reshape((TOKENS, heads * WIDTH)), build.add(ops.Transpose((1, 0, 2)), rows))
    else:
        scores = build.add(ops.DotGeneral((), (), (1,), (1,)), split["query"], split["key"])
        merged = build.add(ops.DotGeneral((), (), (1,), (0,)), build.add(ops.Tanh(), scores), split["value"])
    return build.matmul(merged, out)


def sequential(heads: int) -> Graph:
    build = Builder("attention")
    build.output("y", attention(build, heads))
    return build.build()


def parallel(heads: int, *, reduced: bool = True, shifted: bool = False) -> RankProgram:
    mesh = Mesh.of({"tp": heads})
    build = Builder("rank")
    y = attention(build, 1)
    build.output("y", build.all_reduce(y, heads) if reduced else y)
    columns = place((WIDTH, heads * WIDTH), mesh, ("Shard(1)",))
    placements = dict.fromkeys(("query", "key", "value"), columns)
    placements |= {"x": place((TOKENS, WIDTH), mesh, ("Replicate()",))}
    placements |= {"out": place((heads * WIDTH, WIDTH), mesh, ("Shard(0)",))}
    if shifted:  # every rank has the key of its neighbour
        placements["key"] = replace(columns, runs=(*columns.runs[1:], columns.runs[0]))
    return RankProgram((build.build(),) * heads, mesh, placements, {})


@pytest.mark.parametrize("heads", [2, 3, 4])
def test_a_rank_without_an_axis_of_heads(heads: int) -> None:
    verdict = refine(sequential(heads), parallel(heads))
    assert verdict.status == "proved", verdict.reason


def test_the_key_of_another_head() -> None:
    assert refine(sequential(3), parallel(3, shifted=True)).status == "refuted"


def test_heads_that_are_never_summed() -> None:
    assert refine(sequential(3), parallel(3, reduced=False)).status == "refuted"
