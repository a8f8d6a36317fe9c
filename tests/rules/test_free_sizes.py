"""Equations between sizes: what follows, what is free, and what stays a number."""

from __future__ import annotations

import pytest

from rewright.rules.free_sizes import Places


def test_a_product_and_a_sum() -> None:
    """Heads of two halves: the width follows from heads and halves."""
    places = Places()
    width, heads, head, half = (places.new(n) for n in (32, 4, 8, 4))
    places.vanishes((1, (width,)), (-1, (heads, head)))
    places.vanishes((1, (head,)), (-2, (half,)))
    solution = places.solved()
    assert [str(solution.size(p)) for p in (heads, half, width, head)] == ["n0", "n1", "2*n0*n1", "2*n1"]
    assert solution.example == {"n0": 4, "n1": 4}


def test_one_size_in_two_ways() -> None:
    """A width that is cut into heads in two ways has as many heads in both, and they are as wide."""
    places = Places()
    heads, half, others, head = (places.new(n) for n in (4, 2, 4, 4))
    places.vanishes((2, (heads, half)), (-1, (others, head)))
    solution = places.solved()
    assert [str(solution.size(p)) for p in (heads, half, others, head)] == ["n0", "n1", "n0", "2*n1"]


def test_a_factor_that_must_be_a_number() -> None:
    places = Places()
    factor, half = places.new(2), places.new(4)
    places.vanishes((1, (factor, half)), (-2, (half,)))
    solution = places.solved()
    assert (solution.size(factor), str(solution.size(half))) == (2, "n0")


@pytest.mark.parametrize("value", [0, 1])
def test_nothing_and_one_are_numbers(value: int) -> None:
    places = Places()
    place = places.new(value)
    assert places.solved().size(place) == value


def test_a_fixed_total_leaves_no_freedom() -> None:
    """Two parts of eight elements could be of other sizes, but one would be a difference, which may be nothing."""
    places = Places()
    first, second = places.new(3), places.new(5)
    places.vanishes((1, (places.constant(8),)), (-1, (first,)), (-1, (second,)))
    solution = places.solved()
    assert (solution.size(first), solution.size(second)) == (3, 5)


def test_parts_of_one_whole_in_two_ways() -> None:
    """Queries, keys and values are joined and cut again: the parts are the same, although two have equal sizes."""
    places = Places()
    joined, cut = ([places.new(n) for n in (8, 4, 4)] for _ in range(2))
    places.vanishes(*((1, (p,)) for p in joined), *((-1, (p,)) for p in cut))
    solution = places.solved()
    assert [str(solution.size(p)) for p in (*joined, *cut)] == ["n0", "n1", "n2", "n0", "n1", "n2"]
