"""Regions against multisets of points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright.ir.dims import Dim, evaluate, symbol
from rewright.lifting.terms import regions
from rewright.lifting.terms.regions import Box, NotAView, Region

SPAN = range(-12, 13)
quick = settings(max_examples=80, deadline=None, derandomize=True)
ranges = st.tuples(st.integers(-6, 6), st.integers(0, 6)).map(lambda p: (p[0], p[0] + p[1]))


def boxes(rank: int) -> st.SearchStrategy[Box]:
    return st.tuples(*[ranges] * rank)


def pieces(rank: int) -> st.SearchStrategy[list[Region]]:
    return st.lists(st.tuples(boxes(rank), st.integers(1, 2)), max_size=4).map(
        lambda items: [((box, Fraction(c)),) for box, c in items]
    )


ends = st.one_of(st.none(), st.integers(-6, 6))
sets = st.lists(st.tuples(ends, ends).filter(lambda e: e[0] is None or e[1] is None or e[0] < e[1]), max_size=3).map(
    lambda items: regions.union([regions.intervals(low, high) for low, high in items])
)


def points(*found: Region, rank: int) -> Counter[tuple[int, ...]]:
    """How often every point is counted."""
    total: Counter[tuple[int, ...]] = Counter()
    for region in found:
        for box, coefficient in region:
            for point in product(SPAN, repeat=rank):
                if all(int(str(low)) <= x < int(str(high)) for x, (low, high) in zip(point, box, strict=True)):
                    total[point] += int(coefficient)
    return Counter({p: c for p, c in total.items() if c})


def members(region: Region) -> set[int]:
    return {
        x
        for x in SPAN
        if any(
            (low is None or int(str(low)) <= x) and (high is None or x < int(str(high))) for ((low, high),), _ in region
        )
    }


@given(pieces(1))
@quick
def test_sums_count_points(parts: list[Region]) -> None:
    assert points(regions.add(parts), rank=1) == points(*parts, rank=1)


@given(pieces(2))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_sums_of_rectangles_count_points(parts: list[Region]) -> None:
    total = regions.add(parts)
    assert points(total, rank=2) == points(*parts, rank=2)
    cells = [points(((box, Fraction(1)),), rank=2) for box, _ in total]
    assert sum(map(len, cells)) == len(set().union(*cells))


@given(pieces(1), boxes(1))
@quick
def test_cover_means_each_point_once(parts: list[Region], wanted: Box) -> None:
    ((low, high),) = wanted
    if low != high:
        counts = points(*parts, rank=1)
        once = all(counts[(x,)] == 1 for x in range(int(str(low)), int(str(high))))
        assert regions.covers(regions.add(parts), wanted) == once


@given(sets, sets)
@quick
def test_sets_of_integers(left: Region, right: Region) -> None:
    assert members(regions.union([left, right])) == members(left) | members(right)
    assert members(regions.intersect(left, right)) == members(left) & members(right)
    assert members(regions.complement(left)) == set(SPAN) - members(left)
    assert regions.complement(regions.complement(left)) == left


@given(sets, st.integers(-3, 3).filter(bool), st.integers(1, 3), st.integers(-4, 4))
@quick
def test_preimages(wanted: Region, over: int, under: int, constant: int) -> None:
    """All t with t * over / under + constant in a set, integers or not in between."""
    found = regions.preimage(wanted, Fraction(over, under), Fraction(constant))
    assert found is not None
    inside = members_of(wanted)
    for t in range(-5, 6):
        value = Fraction(over * t, under) + constant
        if value.denominator == 1:
            assert (t in members(found)) == inside(int(value))


def members_of(region: Region) -> Callable[[int], bool]:
    def holds(x: int) -> bool:
        return any(
            (low is None or int(str(low)) <= x) and (high is None or x < int(str(high))) for ((low, high),), _ in region
        )

    return holds


def test_tiles_become_the_whole() -> None:
    tiles = [regions.whole(((3 * r, 3 * r + 3), (0, 4))) for r in (2, 0, 3, 1)]
    assert regions.add(tiles) == regions.whole(((0, 12), (0, 4)))
    assert regions.single(regions.add(tiles[:2])) is None


def test_a_gap_and_an_overlap_of_one() -> None:
    gap = regions.add([regions.intervals(0, 5), regions.intervals(6, 12)])
    overlap = regions.add([regions.intervals(0, 7), regions.intervals(6, 12)])
    assert not regions.covers(gap, ((0, 12),))
    assert not regions.covers(overlap, ((0, 12),))
    assert not regions.is_set(overlap)
    assert regions.is_set(regions.union([overlap]))


def test_empty_parts_vanish() -> None:
    parts = [regions.intervals(0, 5), regions.intervals(5, 10), regions.intervals(5, 5), regions.intervals(0, 0)]
    assert regions.add(parts) == regions.intervals(0, 10)
    assert regions.add([regions.intervals(3, 3)]) == regions.NOTHING


def test_symbolic_tiles() -> None:
    n = symbol("n")
    tiles = [regions.intervals(n * r, n * r + n) for r in range(4)]
    assert regions.add(tiles) == regions.intervals(0, 4 * n)
    with pytest.raises(NotAView, match="symbolic"):
        regions.preimage(regions.intervals(0, n), Fraction(1), Fraction(0))


def test_an_order_that_depends_on_sizes_is_not_guessed() -> None:
    n = symbol("n")
    with pytest.raises(NotAView, match="whether"):
        regions.add([regions.intervals(0, n), regions.intervals(3, 3 + n)])


symbolic_ends = st.builds(lambda a, b: a * symbol("n") + b, st.integers(0, 2), st.integers(0, 3))


@given(st.lists(st.tuples(symbolic_ends, st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=4))
@quick
def test_symbolic_sums_hold_for_every_size(parts: list[tuple[Dim, int, int]]) -> None:
    """Whatever is decided with symbols is what the numbers give."""
    n = symbol("n")
    pieces = [regions.intervals(low, low + a * n + b) for low, a, b in parts]
    try:
        total = regions.add(pieces)
    except NotAView:
        return
    for size in (2, 3, 5, 8):
        expected = regions.add([at(piece, size) for piece in pieces])
        assert regions.add([at(total, size)]) == expected


def at(region: Region, size: int) -> Region:
    """The region with its symbol replaced by a number."""

    def end(value: Dim | None) -> Dim | None:
        return None if value is None else evaluate(value, {"n": size})

    return tuple((tuple((end(low), end(high)) for low, high in box), c) for box, c in region)


def test_what_lies_inside_need_not_be_known_to_have_elements() -> None:
    size = symbol("s")
    most = regions.scale(regions.intervals(0, size - 1), Fraction(-1))
    assert regions.add([regions.intervals(0, size), most]) == regions.intervals(size - 1, size)
    with pytest.raises(NotAView):
        regions.add([regions.intervals(0, size - 1), regions.intervals(2, size)])
