"""Writes by index on ranks: caches, slots of a pipeline, rows that one rank has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rewright import ops
from rewright.ir.types import DType, TensorType
from rewright.ops.scatter import ScatterKind
from rewright.refine.engine import answer
from tests.programs import Builder

Write = Callable[[Builder, int, int, int], int]
ROWS, WIDTH, COUNT = 6, 4, 3


def by_index(axis: int = 0, kind: ScatterKind = "replace") -> Write:
    def write(b: Builder, x: int, index: int, updates: int) -> int:
        op = ops.Scatter(kind, (1 - axis,), (axis,), (), (), (axis,), 1)
        return b.add(op, x, index, updates)

    return write


def program(write: Write, rows: tuple[int, ...] | None, width: int = WIDTH, count: int = COUNT) -> Builder:
    """A tensor of ``ROWS`` rows into which some are written, at numbers or at indices from data."""
    b = Builder("writes")
    x, updates = b.tensor("x", (ROWS, width)), b.tensor("y", (count, width))
    kind = TensorType((count,), DType.I64)
    index = b.tensor("i", (count,), DType.I64) if rows is None else b.add(ops.Constant(kind, rows))
    b.output("z", write(b, x, index, updates))
    return b


def verdict(sequential: Builder, ranks: list[Builder], **placements: str) -> str:
    given = {"x": "Replicate()", "y": "Replicate()", "i": "Replicate()", **placements}
    used = {name: given[name] for name in given if any(name in r.build().inputs for r in ranks)}
    found = answer(sequential.build(), [r.build() for r in ranks], used, audit=True)
    return f"{found.status} {found.evidence.name}" if found.status == "proved" else found.status


@pytest.mark.parametrize("rows", [None, (4, 0, 2), (1, 1, 1), (5, -1, 6)])
def test_a_cache_is_written_head_by_head(rows: tuple[int, ...] | None) -> None:
    """Every rank writes its own columns, wherever the rows are."""
    ranks = [program(by_index(), rows, WIDTH // 2) for _ in range(2)]

    assert verdict(program(by_index(), rows), ranks, x="Shard(1)", y="Shard(1)") == "proved PROVED"


def test_rows_written_in_another_order_are_others() -> None:
    ranks = [program(by_index(), (0, 4, 2), WIDTH // 2) for _ in range(2)]

    assert verdict(program(by_index(), (4, 0, 2)), ranks, x="Shard(1)", y="Shard(1)") == "refuted"


def test_of_a_row_that_is_written_twice_the_last_is_kept() -> None:
    def one(number: int) -> Write:
        def write(b: Builder, x: int, index: int, updates: int) -> int:
            row = b.add(ops.Slice((number, 0), (number + 1, WIDTH), (1, 1)), updates)
            parts = [b.add(ops.Slice((a, 0), (z, WIDTH), (1, 1)), x) for a, z in ((0, 1), (2, ROWS))]
            return b.add(ops.Concatenate(0), parts[0], row, parts[1])

        return write

    twice = program(by_index(), (1, 1), count=2)

    assert verdict(twice, [program(one(1), (1, 1), count=2)]) == "proved PROVED"
    assert verdict(twice, [program(one(0), (1, 1), count=2)]) == "refuted"


@pytest.mark.parametrize(("first", "expected"), [(0, "proved PROVED"), (1, "refuted")])
def test_one_row_is_written_by_the_rank_that_has_it(first: int, expected: str) -> None:
    """The others write nothing: ``where(arange(rows) == i - first, y, x)``."""

    def own(rank: int) -> Builder:
        b = Builder("own")
        x, y, i = b.tensor("x", (ROWS // 2, WIDTH)), b.tensor("y", (1, WIDTH)), b.tensor("i", (1,), DType.I64)
        start = b.add(ops.Constant(b.type(i), (rank * ROWS // 2 + first,)))
        place = b.add(ops.BroadcastInDim((ROWS // 2, WIDTH), (0,)), b.add(ops.Subtract(), i, start))
        here = b.add(ops.Compare("EQ"), b.add(ops.Iota(b.type(place), 0)), place)
        update = b.add(ops.BroadcastInDim((ROWS // 2, WIDTH), (0, 1)), y)
        b.output("z", b.add(ops.Select(), here, update, x))
        return b

    sequential = program(by_index(), None, count=1)
    assert verdict(sequential, [own(0), own(1)], x="Shard(0)", y="Replicate()") == expected


def test_the_last_of_writes_is_not_their_sum() -> None:
    added = program(by_index(kind="sum"), None)

    assert verdict(program(by_index(), None), [added]) == "refuted"


@pytest.mark.parametrize(("rows", "expected"), [((0, 0, 0), "proved PROVED"), ((0, 1, 2), "refuted")])
def test_an_index_counted_along_an_axis_of_one_is_nought(rows: tuple[int, ...], expected: str) -> None:
    """``arange(1)`` along the second axis of the index, whose first is three long, says row 0 three times."""

    def counted(b: Builder, x: int, index: int, updates: int) -> int:
        zeros = b.add(ops.Iota(TensorType((COUNT, 1), DType.I64), 1))
        return b.add(ops.Scatter("replace", (1,), (0,), (), (), (0,), 1), x, zeros, updates)

    assert verdict(program(by_index(), rows), [program(counted, rows)]) == expected
