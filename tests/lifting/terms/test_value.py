"""Layout operations on views, against numpy: whatever chain of them, the elements are the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rewright.claims.language import Access, Addend, View
from rewright.ir.dims import symbol
from rewright.lifting.moves.layout import broadcast, concatenate, reshape, reverse_axis, slice_axis, tidy, transpose
from rewright.lifting.terms.index import compose, substitute
from rewright.lifting.terms.store import ONE, Terms
from rewright.lifting.terms.value import NotAView, Pieces, Value, coalesce, common_digits
from tests.lifting.evaluate import Meaning

Array = NDArray[np.float64]


@dataclass
class Leaves:
    """Windows of one input, with the arrays that they stand for."""

    terms: Terms = field(default_factory=Terms)
    array: Array = field(default_factory=lambda: np.arange(48, dtype=np.float64).reshape(8, 6))

    def leaf(self) -> Value:
        access: Access = ((0, ((0, 1),)), (0, ((1, 1),)))
        return View(((8,), (6,)), (Addend(ONE, self.terms.input("x", 2), access),))

    def array_of(self, value: Value) -> Array:
        return Meaning(self.terms, {"x": self.array}).value(value)


def factors(random: Random, size: int) -> tuple[int, ...]:
    shape: list[int] = []
    while size > 1 and len(shape) < 4:
        shape.append(random.choice([d for d in range(1, size + 1) if size % d == 0]))
        size //= shape[-1]
    return (*shape, size)


def step(random: Random, value: Value, array: Array) -> tuple[Value, Array]:
    """One random operation on both; NotAView where the value cannot follow."""
    axis = random.randrange(array.ndim) if array.ndim else 0
    kind = random.choice(["reshape", "reshape", "transpose", "slice", "concatenate", "broadcast", "reverse", "tidy"])
    if kind == "reshape":
        shape = factors(random, array.size)
        return reshape(value, shape), array.reshape(shape)
    if kind == "broadcast" and array.size <= 48:
        new = random.randint(0, array.ndim)
        shape = (*array.shape[:new], 2, *array.shape[new:])
        axes = [a for a in range(len(shape)) if a != new]
        return broadcast(value, shape, axes), np.broadcast_to(np.expand_dims(array, new), shape)
    if not array.ndim or kind == "tidy":
        return tidy(value), array
    if kind == "transpose":
        order = random.sample(range(array.ndim), array.ndim)
        return transpose(value, order), array.transpose(order)
    if kind == "slice":
        start, stride = random.randrange(array.shape[axis]), random.choice([1, 1, 2])
        limit = random.randint(start + 1, array.shape[axis])
        cut = tuple(slice(start, limit, stride) if a == axis else slice(None) for a in range(array.ndim))
        return slice_axis(value, axis, start, limit, stride), array[cut]
    if kind == "concatenate":
        at = random.randint(0, array.shape[axis])
        parts = [slice_axis(value, axis, 0, at), slice_axis(value, axis, at, array.shape[axis])]
        arrays = list(np.split(array, [at], axis))
        if random.random() < 0.5:
            parts, arrays = parts[::-1], arrays[::-1]
        return concatenate(parts, axis), np.concatenate(arrays, axis)
    return reverse_axis(value, axis), np.flip(array, axis)


@given(st.integers(0, 10**6))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_chains_of_layout_operations(seed: int) -> None:
    random, leaves = Random(seed), Leaves()
    value, array = leaves.leaf(), leaves.array
    for _ in range(7):
        try:
            value, array = step(random, value, array)
        except NotAView:
            continue
        assert value.shape == array.shape
        np.testing.assert_array_equal(leaves.array_of(value), array)


def test_heads_are_split_and_merged() -> None:
    """(tokens, heads * width) to (heads, tokens, width) and back is the tensor itself."""
    leaf = Leaves().leaf()
    split = transpose(reshape(leaf, (8, 3, 2)), (1, 0, 2))
    assert coalesce(reshape(transpose(split, (1, 0, 2)), (8, 6))) == leaf


def test_a_reshape_through_a_window_is_no_view() -> None:
    with pytest.raises(NotAView):
        reshape(transpose(slice_axis(Leaves().leaf(), 0, 0, 5), (1, 0)), (10, 3))


def test_neighbours_become_one_window_again() -> None:
    leaf = Leaves().leaf()
    parts = [slice_axis(leaf, 0, low, low + 2) for low in (0, 2, 4, 6)]
    assert concatenate(parts, 0) == leaf
    assert isinstance(concatenate(parts[::-1], 0), Pieces)
    assert isinstance(concatenate([parts[0], parts[2]], 0), Pieces)


def test_a_flat_buffer_of_two_tensors_is_gathered_and_cut() -> None:
    """FSDP2: every rank puts its rows of both into a vector; the vectors are gathered, and cut by columns."""
    leaves = Leaves()
    first = leaves.leaf()
    second = View(((4,),), (Addend(ONE, leaves.terms.input("y", 1), ((0, ((0, 1),)),)),))
    rows = [reshape(slice_axis(first, 0, low, low + 4), (24,)) for low in (0, 4)]
    entries = [slice_axis(second, 0, low, low + 2) for low in (0, 2)]
    gathered = concatenate([concatenate(own, 0) for own in zip(rows, entries, strict=True)], 0)
    table = reshape(gathered, (2, 26))
    assert reshape(slice_axis(table, 1, 0, 24), (8, 6)) == first
    assert reshape(slice_axis(table, 1, 24, 26), (4,)) == second
    again = reshape(reshape(reshape(table, (52,)), (1, 52, 1)), (2, 1, 26))
    assert reshape(slice_axis(again, 2, 0, 24), (8, 6)) == first


def test_windows_at_symbolic_places() -> None:
    n, leaves = symbol("n"), Leaves()
    access: Access = ((0, ((0, 1),)),)
    leaf = View(((4 * n,),), (Addend(ONE, leaves.terms.input("y", 1), access),))
    shards = [slice_axis(leaf, 0, n * r, n * r + n) for r in range(4)]
    assert [shard.shape for shard in shards] == [(n,)] * 4
    assert concatenate(shards, 0) == leaf
    assert reshape(shards[1], (n,)) == shards[1]


def test_common_digits() -> None:
    assert common_digits([(12,), (3, 4)]) == (3, 4)
    assert common_digits([(6, 2), (3, 4)]) == (3, 2, 2)
    assert common_digits([(12,), (12,)]) == (12,)
    with pytest.raises(NotAView):
        common_digits([(6, 4), (4, 6)])
    with pytest.raises(NotAView):
        common_digits([(6,), (12,)])


def test_substitution_of_indices() -> None:
    """2i + 3j + 1 at i = k + 4, j = 2k - m; variables below zero stand for data and stay."""
    index = (1, ((0, 2), (1, 3)))
    replaced = substitute(index, [(4, ((0, 1),)), (0, ((0, 2), (1, -1)))])
    assert replaced == (9, ((0, 8), (1, -3)))
    assert substitute((0, ((-1, 2), (0, 1))), [(5, ())]) == (5, ((-1, 2),))
    assert compose(((0, ((0, 1),)),), (index,)) == (index,)
    assert substitute((0, ((0, 1), (1, -1))), [(0, ((0, 1),)), (3, ((0, 1),))]) == (-3, ())
