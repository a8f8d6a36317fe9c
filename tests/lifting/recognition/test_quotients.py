"""The block that a place is in, and the place in its block: a causal mask over blocks of a sequence."""

from __future__ import annotations

import pytest

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import TensorType
from rewright.refine import refine
from rewright.refine.verdict import Verdict
from tests.programs import I64, Builder

LENGTH, KEYS = 12, 12


def masked(build: Builder, rows: int, query: int) -> None:
    """Scores of rows that see keys up to their own place."""
    x = build.tensor("x", (rows, KEYS))
    key = build.add(ops.Iota(build.type(query), 1))
    seen = build.add(ops.Compare("GE"), query, key)
    build.output("y", build.add(ops.Select(), seen, x, build.full(0.0, x)))


def sequential() -> Graph:
    build = Builder("whole")
    masked(build, LENGTH, build.add(ops.Iota(queries(LENGTH), 0)))
    return build.build()


def queries(rows: int) -> TensorType:
    return TensorType((rows, KEYS), I64)


def rank(own: int, block: int, *, first: int, ahead: int = 0, modulus: int | None = None) -> Graph:
    """Queries of a rank, by blocks: with ``j = i + ahead`` these are ``(j // block + first) * block + j % block``."""
    build = Builder("rank")
    own_place = build.add(ops.Iota(queries(own), 0))
    shifted = build.add(ops.Add(), own_place, build.full(ahead, own_place))
    length = build.full(block, own_place)
    quotient = build.add(ops.Add(), build.add(ops.Divide(), shifted, length), build.full(first, own_place))
    rest = build.add(ops.Remainder(), shifted, build.full(modulus or block, own_place))
    query = build.add(ops.Add(), build.add(ops.Multiply(), quotient, length), rest)
    masked(build, own, build.add(ops.Subtract(), query, build.full(ahead, own_place)))
    return build.build()


def verdict(*ranks: Graph) -> Verdict:
    mesh = Mesh((("cp", len(ranks)),))
    split = place((LENGTH, KEYS), mesh, ["Shard(0)"])
    return refine(sequential(), RankProgram(ranks, mesh, {"x": split}, {"y": split}))


@pytest.mark.parametrize("block", [1, 2, 3, 6])
def test_places_counted_by_blocks(block: int) -> None:
    found = verdict(*(rank(6, block, first=r * (6 // block)) for r in range(2)))
    assert found.status == "proved", found.reason


def test_a_block_that_is_longer_than_a_rank() -> None:
    """No place reaches the next block."""
    assert verdict(rank(6, 6, first=0), rank(6, 6, first=1)).status == "proved"
    assert verdict(rank(12, 24, first=0)).status == "proved"


WRONG = {
    "another first block": lambda r: rank(6, 3, first=r),
    "a place in another block": lambda r: rank(6, 3, first=2 * r, modulus=4),
    "blocks that do not divide": lambda r: rank(6, 4, first=r),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_places(name: str) -> None:
    assert verdict(*(WRONG[name](r) for r in range(2))).status == "refuted"


def test_places_below_zero_are_no_digits() -> None:
    """A quotient of integers is cut off towards zero, so that places -3 to 2 have two blocks around zero."""
    found = verdict(*(rank(6, 3, first=2 * r, ahead=-3) for r in range(2)))
    assert found.status != "proved"
