"""Scales keep order and add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewright.refine.shrink.units import IDENTITY, Scale, scales


def first(positions: set[int], long: bool = False) -> Scale:
    return next(iter(scales(positions, long)))


@pytest.mark.parametrize(
    ("positions", "small"),
    [
        ({16032 * i for i in range(1, 9)}, [2, 4, 6, 8, 10, 12, 14, 16]),
        ({1366, 2732, 4096}, [3, 6, 7]),
        ({64, 128}, [3, 6]),
        ({8191, 8192}, [4, 5]),
        ({4096, 14336, 18432}, [4, 14, 18]),
        ({3}, [3]),
    ],
    ids=["vocabulary shards", "uneven shards", "half a head", "all but one", "two lengths", "short already"],
)
def test_what_becomes_of_positions(positions: set[int], small: list[int]) -> None:
    scale = first(positions)
    assert [scale(position) for position in sorted(positions)] == small


def test_a_bound_that_is_off_by_one_stays_off_by_one() -> None:
    scale = first({16032, 16033, 32064, 128256})
    assert scale(16033) == scale(16032) + 1 < scale(32064)


def test_positions_without_a_common_unit_stay() -> None:
    assert first({100, 137, 251, 389, 517}) == IDENTITY


def test_long_axes_have_a_dozen_elements() -> None:
    assert first({8192}, long=True)(8192) == 12


@given(st.sets(st.integers(1, 200_000), min_size=1, max_size=12), st.booleans())
def test_different_positions_stay_different_and_in_order(positions: set[int], long: bool) -> None:
    for scale in scales(positions, long):
        assert scale(0) == 0
        found = [scale(position) for position in sorted(positions)]
        assert found == sorted(set(found))
        assert all(0 < low <= high for low, high in zip(found, sorted(positions), strict=True))


@given(st.integers(3, 5000), st.integers(2, 64), st.integers(0, 10), st.integers(0, 10), st.integers(-3, 3))
def test_lengths_add_up(unit: int, small: int, left: int, right: int, offset: int) -> None:
    scale = Scale(4 * unit, small)
    one, other = 4 * unit * left + offset, 4 * unit * right
    assert scale(one + other) == scale(one) + scale(other)


@given(st.integers(20, 5000), st.integers(2, 10), st.integers(0, 100))
def test_every_small_position_comes_from_one_large_position(unit: int, small: int, position: int) -> None:
    scale = Scale(unit, small)
    assert scale(scale.source(position)) == position
