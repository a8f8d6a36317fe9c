"""Pieces along the rows of an axis, as the rotated halves of every head are."""

from __future__ import annotations

import numpy as np
import pytest

from rewright.claims.language import Addend, View
from rewright.lifting.moves.layout import concatenate, lengthwise, reshape, slice_axis, slice_rows, transpose
from rewright.lifting.terms.store import ONE, Terms
from rewright.lifting.terms.value import NotAView, Pieces, Value
from tests.lifting.evaluate import Meaning

TERMS = Terms()
ARRAY = np.arange(24.0).reshape(2, 3, 4)


def leaf() -> Value:
    """A tensor of 2 tokens, 3 heads and a width of 4."""
    access = tuple((0, ((axis, 1),)) for axis in range(3))
    return View(((2,), (3,), (4,)), (Addend(ONE, TERMS.input("x", 3), access),))


def array_of(value: Value) -> np.ndarray:
    return Meaning(TERMS, {"x": ARRAY}).value(value)


def rotated() -> Pieces:
    """The halves of every head in the other order."""
    found = concatenate([slice_axis(leaf(), 2, 2, 4), slice_axis(leaf(), 2, 0, 2)], 2)
    assert isinstance(found, Pieces)
    return found


SWAPPED = np.concatenate([ARRAY[..., 2:], ARRAY[..., :2]], axis=2)


def test_heads_and_width_become_one_axis_with_the_halves_within_each_head() -> None:
    merged = reshape(rotated(), (2, 12))
    assert isinstance(merged, Pieces)
    assert (merged.axis, merged.outer, [part.shape for part in merged.parts]) == (1, 3, [(2, 6), (2, 6)])
    assert [(start, length) for _, start, length in lengthwise(merged)] == [(0, 2), (2, 2)]
    np.testing.assert_array_equal(array_of(merged), SWAPPED.reshape(2, 12))


def test_the_heads_come_back() -> None:
    merged = reshape(rotated(), (2, 12))
    assert reshape(merged, (2, 3, 4)) == rotated()
    turned = transpose(reshape(merged, (2, 3, 4)), (1, 0, 2))
    np.testing.assert_array_equal(array_of(turned), SWAPPED.transpose(1, 0, 2))


def test_one_head_is_cut_out_of_the_rows() -> None:
    merged = reshape(rotated(), (2, 12))
    np.testing.assert_array_equal(array_of(slice_axis(merged, 1, 4, 8)), SWAPPED[:, 1])
    np.testing.assert_array_equal(array_of(slice_axis(merged, 1, 4, 12)), SWAPPED[:, 1:].reshape(2, 8))
    with pytest.raises(NotAView):
        slice_axis(merged, 1, 3, 7)


def test_the_other_factor_of_a_contraction_is_cut_in_the_same_rows() -> None:
    merged = reshape(rotated(), (2, 12))
    assert isinstance(merged, Pieces)
    second = slice_rows(reshape(leaf(), (2, 12)), merged, 1, 2, 4)
    np.testing.assert_array_equal(array_of(second), ARRAY[..., 2:].reshape(2, 6))


def test_halves_in_their_order_are_no_pieces() -> None:
    parts = [slice_axis(leaf(), 2, 0, 2), slice_axis(leaf(), 2, 2, 4)]
    assert concatenate(parts, 2) == leaf()
