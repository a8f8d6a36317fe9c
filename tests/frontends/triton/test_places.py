"""Offsets become places along axes, and places become digits; what holds of them is proved for all sizes."""

from __future__ import annotations

import pytest

from rewright.frontends.triton.meaning.addresses.places import Digit, Place, by_axis, digits_of
from rewright.frontends.triton.meaning.addresses.safety import Ranges
from rewright.ir.dims import Dim, ceil_quotient, symbol
from rewright.terms.index import Index, quotient, remainder, variable

M, N = symbol("m"), symbol("n")
TILE, LANE, ROW = variable("tile"), variable("lane0"), variable("row")


@pytest.mark.parametrize(
    ("offset", "sizes", "strides", "places"),
    [
        (ROW * N + LANE, (M, N), (N, 1), (ROW, LANE)),
        (ROW * (N * 32) + LANE * N + TILE + 3, (M, N), (N, 1), (ROW * 32 + LANE, TILE + 3)),
        (ROW * 70 + TILE * 16 + LANE, (100, 70), (70, 1), (ROW, TILE * 16 + LANE)),
        (LANE * M + ROW, (M, N), (1, M), (ROW, LANE)),
        (ROW * N, (M, 1, N), (N, 5, 1), (ROW, Index(0), Index(0))),
    ],
)
def test_an_offset_along_the_axes_of_a_tensor(
    offset: Index, sizes: tuple[Dim, ...], strides: tuple[Dim, ...], places: tuple[Index, ...]
) -> None:
    assert by_axis(offset, sizes, strides) == list(places)


def test_an_offset_that_no_axis_has() -> None:
    assert by_axis(LANE, (M, N), (N * 2, 2)) is None


def test_digits_of_a_place() -> None:
    sizes: dict[str, Dim] = {"tile": ceil_quotient(N, 32), "lane0": 32}

    assert digits_of(TILE * 32 + LANE + 5, sizes) == Place(
        5, (Digit("tile", ceil_quotient(N, 32), 32), Digit("lane0", 32, 1))
    )
    assert digits_of(TILE * 64 + LANE, sizes) is not None, "there may be gaps between tiles"


@pytest.mark.parametrize("place", [TILE * 16 + LANE, TILE * -32 + LANE, quotient(LANE, 3), TILE * N + LANE])
def test_what_has_no_digits(place: Index) -> None:
    assert digits_of(place, {"tile": 4, "lane0": 32}) is None


def test_places_are_proved_to_be_inside_for_all_sizes() -> None:
    ranges = Ranges()
    sizes: dict[str, Dim] = {"tile": ceil_quotient(N, 32), "lane0": 32, "row": M}
    place = TILE * 32 + LANE
    mask = Index(N - 1) - place

    assert ranges.implies(sizes, (mask,), Index(M * N - 1) - ROW * N - place)
    assert not ranges.implies(sizes, (), mask)
    assert not ranges.implies(sizes, (mask + 1,), mask), "one more than there are"
    assert ranges.implies(sizes, (), Index(ceil_quotient(N, 32) * 32 - 1) - place)
    assert ranges.implies(sizes, (mask,), ROW - quotient(ROW * N + remainder(place, 32), N) + LANE) is True
