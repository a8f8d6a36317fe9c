"""One program against the ranks of another implementation: fused weights, sharded by heads, expressed by the map."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewright import ops
from rewright.equiv.engine import equiv
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from tests.programs import Builder


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


def fused() -> Graph:
    """As ``apart``, gate and up in one weight."""
    b = GraphBuilder()
    x = weight(b, "x", 3, 4)
    both = product(b, x, weight(b, "gate_up", 16, 4))
    gate, up = (b.add(ops.Slice((0, n), (3, n + 8), (1, 1)), both) for n in (0, 8))
    inner = b.add(ops.Multiply(), b.add(ops.Multiply(), gate, b.add(ops.Logistic(), gate)), up)
    b.output("y", product(b, inner, weight(b, "down", 4, 8)))
    return b.build()


def test_a_fused_weight_is_split_by_what_is_fused() -> None:
    """A fused weight that is cut into as many pieces as there are ranks gives the first rank gates only."""
    shared = {"down": "Shard(1)", "x": "Replicate()"}
    own = {
        f"gate_up@{r}": f"concat([gate_up[{4 * r}:{4 * r + 4}], gate_up[{4 * r + 8}:{4 * r + 12}]], axis=0)"
        for r in (0, 1)
    }
    assert equiv(fused(), ranks(rank(), rank()), relations={**shared, **own}).status == "proved"
    verdict = equiv(fused(), ranks(rank(), rank()), relations={**shared, "gate_up": "Shard(0)"})
    assert verdict.status == "refuted"


def normed(*, width: int, ranks: int = 1) -> Graph:
    """Keys normed over all heads; ranks hold a head each, several ranks the same one."""
    b = GraphBuilder()
    keys = product(b, weight(b, "x", 3, 4), weight(b, "k", width, 4))
    total = b.add(ops.Reduce("sum", (1,)), b.add(ops.Multiply(), keys, keys))
    if ranks > 1:
        total = b.add(ops.AllReduce("sum", (tuple(range(ranks)),)), total)
    size = b.add(ops.Constant(TensorType((3,), DType.F32), (float(width * ranks),)))
    root = b.add(ops.Rsqrt(), b.add(ops.Divide(), total, size))
    scaled = b.add(ops.Multiply(), keys, b.add(ops.BroadcastInDim((3, width), (0,)), root))
    gains = b.add(ops.BroadcastInDim((3, width), (1,)), weight(b, "gain", width))
    result = b.add(ops.Multiply(), scaled, gains)
    if ranks > 1:
        result = b.add(ops.AllGather(1, ((0, 2), (1, 3))), result)
    b.output("y", result)
    return b.build()


def test_the_gain_of_a_norm_goes_with_the_head_and_not_with_the_rank() -> None:
    """Two heads on four ranks: the gain of a rank is that of its head."""
    four = ranks(*[normed(width=2, ranks=4)] * 4)
    heads = {f"k@{r}": f"k[{r // 2 * 2}:{r // 2 * 2 + 2}]" for r in range(4)} | {"x": "Replicate()"}
    right = {f"gain@{r}": f"gain[{r // 2 * 2}:{r // 2 * 2 + 2}]" for r in range(4)}
    assert equiv(normed(width=4), four, relations={**heads, **right}).status == "proved"
    wrong = {f"gain@{r}": f"gain[{r % 2 * 2}:{r % 2 * 2 + 2}]" for r in range(4)}
    verdict = equiv(normed(width=4), four, relations={**heads, **wrong})
    assert verdict.status == "refuted"
    assert verdict.findings


def test_what_ranks_hold_is_found_by_its_values() -> None:
    source = np.random.default_rng(0)
    gate, up, down = (source.standard_normal(shape) for shape in ((8, 4), (8, 4), (4, 8)))
    held = [{"gate_up": np.concatenate([gate[n : n + 4], up[n : n + 4]]), "down": down[:, n : n + 4]} for n in (0, 4)]
    values = {"gate": gate, "up": up, "down": down}
    verdict = equiv(apart(), ranks(rank(), rank()), (values, held))
    assert verdict.status == "proved", verdict.reason
    assert "right down@1 = down[0:4, 4:8]  (of left)" in verdict.equations
    swapped = [held[0], {**held[1], "down": held[0]["down"]}]
    with pytest.raises(RewrightError, match="partial"):
        equiv(apart(), ranks(rank(), rank()), (values, swapped))
    with pytest.raises(RewrightError, match="give those of each"):
        equiv(apart(), ranks(rank(), rank()), (values, held[:1]))


def masked(*, added: bool, ranks: int = 1, denied: bool = False) -> Graph:
    """The largest of some scores up to one's own place, a row for each rank; the mask is added, or chooses."""
    kind = TensorType((3, 3), DType.F32)
    b = GraphBuilder()
    scores = weight(b, "x", 3, 3)
    places = [b.add(ops.Iota(TensorType((3, 3), DType.I64), axis)) for axis in (0, 1)]
    seen = b.add(ops.Compare("GE"), *(places[::-1] if denied else places))
    infinite = b.add(ops.Constant(kind, (-math.inf,)))
    if added:
        scores = b.add(ops.Add(), scores, b.add(ops.Select(), seen, b.add(ops.Constant(kind, (0.0,))), infinite))
    else:
        scores = b.add(ops.Select(), b.add(ops.Not(), seen), infinite, scores)
    best = b.add(ops.Reduce("maximum", (1,)), scores)
    b.output("y", b.add(ops.AllReduce("maximum", (tuple(range(ranks)),)), best) if ranks > 1 else best)
    return b.build()


@pytest.mark.parametrize(("denied", "status"), [(False, "proved"), (True, "refuted")])
def test_ranks_choose_where_the_other_adds_a_mask(denied: bool, status: str) -> None:
    two = ranks(*[masked(added=False, ranks=2, denied=denied)] * 2)
    verdict = equiv(masked(added=True), two, relations={"x": "Replicate()"})
    assert verdict.status == status, verdict.reason


def test_no_program_at_all() -> None:
    with pytest.raises(RewrightError, match="no right program"):
        equiv(apart(), [])


def test_a_tensor_that_one_rank_alone_reads() -> None:
    """A bias is added on the first rank alone, and numbers are folded in front of the proof."""

    def program(world: int, rank: int) -> Graph:
        build = Builder("rank" if world > 1 else "model")
        x, w = build.tensor("x", (3, 8 // world)), build.tensor("w", (8 // world, 4))
        bias = build.tensor("b", (4,))
        y = build.matmul(x, w)
        half = build.add(ops.Divide(), build.full(1.0, y), build.full(2.0, y))  # a number that is computed, and folded
        y = build.add(ops.Multiply(), y, half)
        y = build.add(ops.Add(), y, build.spread(bias, y, 1)) if rank == 0 else y
        build.output("y", build.all_reduce(y, world) if world > 1 else y)
        return build.build()

    mesh = Mesh.of({"tp": 2})
    held = {"x": place((3, 8), mesh, ["Shard(1)"]), "w": place((8, 4), mesh, ["Shard(0)"])}
    ranks = RankProgram((program(2, 0), program(2, 1)), mesh, held, {})
    verdict = equiv(program(1, 0), ranks, audit=True)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved")
