"""Heads that share a key, where a rank holds some of the heads of one key and that key whole."""

import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement, RankProgram
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import attention
from rewright.ops.reference import building as rb
from rewright.ops.reference.attention import Masking
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.refine import refine

TOKENS, SIZE = 4, 8


def program(heads: int, keys: int) -> Graph:
    b = SimplifyingBuilder()
    states = [b.input(name, ops.Input(name, TensorType((TOKENS, n * SIZE), DType.F32))) for name, n in
              (("query", heads), ("key", keys))]  # fmt: skip
    query, key = (
        rb.transpose(b, rb.reshape(b, x, (TOKENS, n, SIZE)), (1, 0, 2))
        for x, n in zip(states, (heads, keys), strict=True)
    )
    b.output("output", attention.attention(b, query, key, key, Masking(causal=True), 0.3)[0])
    return b.build()


def shares(count: int, ranks: int, starts: list[int]) -> Placement:
    """A window of ``count`` heads on every rank, from the head in ``starts`` on."""
    runs = [(((0, TOKENS),), ((start * SIZE, count * SIZE),)) for start in starts]
    return Placement(tuple(runs), ("by heads",))


@pytest.mark.parametrize(("heads", "keys", "ranks"), [(12, 2, 2), (12, 2, 4), (8, 2, 4), (12, 3, 6), (12, 2, 6)])
@pytest.mark.parametrize("is_right", [True, False])
def test_ranks_that_share_a_key(heads: int, keys: int, ranks: int, is_right: bool) -> None:
    own, kept = heads // ranks, max(keys // ranks, 1)
    first = [rank * keys // ranks for rank in range(ranks)]
    if not is_right:
        first = [*first[1:], first[0]]  # the key of the next rank
    placements = {
        "query": shares(own, ranks, [rank * own for rank in range(ranks)]),
        "key": shares(kept, ranks, first),
    }
    distributed = RankProgram((program(own, kept),) * ranks, Mesh.of({"tp": ranks}), placements, {})
    verdict = refine(program(heads, keys), distributed)
    assert verdict.status == ("proved" if is_right else "refuted"), verdict.reason
