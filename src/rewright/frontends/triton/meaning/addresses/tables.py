"""Tables of integers that are known: what is read of them is an index again, and no data.

Where ``starts = [0, 8, 16]`` are the first rows of sequences, what an instance ``b`` reads is ``8 * b``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from operator import mul

from rewright import ops
from rewright.ops.reference.simplifying import SimplifyingBuilder
from rewright.terms.index import Index

_MOST = 1 << 16


def affine_of(b: SimplifyingBuilder, position: int) -> tuple[int, tuple[int, ...]] | None:
    """The first integer of a tensor, and by how much they grow along each axis; None where they do not do so evenly."""
    shape, dtype = b.type(position).shape, b.type(position).dtype
    if not dtype.is_integer or any(size == 0 for size in shape):
        return None
    uniform = b.uniform(position)
    if uniform is not None:
        return int(uniform), (0,) * len(shape)
    op = b.node(position).op
    if isinstance(op, ops.Iota):
        return 0, tuple(int(axis == op.dimension) for axis in range(len(shape)))
    if not isinstance(op, ops.Constant) or len(op.values) < 2 or len(op.values) > _MOST:
        return None
    return _evenly([int(value) for value in op.values], [int(size) for size in shape if isinstance(size, int)])


def _evenly(values: Sequence[int], sizes: Sequence[int]) -> tuple[int, tuple[int, ...]] | None:
    strides = [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    steps = tuple(values[s] - values[0] if size > 1 else 0 for size, s in zip(sizes, strides, strict=True))
    places = product(*map(range, sizes))
    expected = [values[0] + sum(map(mul, steps, place)) for place in places]
    return (values[0], steps) if list(values) == expected else None


def index_at(first: int, steps: Sequence[int], places: Sequence[Index]) -> Index:
    """What such a table holds at places along its axes."""
    total = Index(first)
    for step, place in zip(steps, places, strict=True):
        total = total + place * step
    return total
