"""Layouts: in which order the elements of an array lie in memory, where that decides what an instruction means.

A layout lists axes from the one whose neighbours lie next to each other (minor) to the one whose neighbours are
farthest apart; none is row-major. Only a bitcast and the bytes of a literal are read by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TypeVar

from rewright.ir.errors import UnsupportedOperator

TILED = (-1,)
"""Stands for a layout in tiles, which are not taken apart."""
T = TypeVar("T")


def major_first(sizes: Sequence[int], layout: Sequence[int]) -> tuple[int, ...]:
    """The axes in the order of memory, axes of size one left where they are in the row-major order if that is all.

    Raises UnsupportedOperator for a layout in tiles, and for one that does not list every axis once.
    """
    plain = tuple(range(len(sizes)))
    if not layout:
        return plain
    if sorted(layout) != list(plain):
        raise UnsupportedOperator("the layout of an array is in tiles; compile the module without them")
    order = tuple(reversed(layout))
    longer = [axis for axis in order if sizes[axis] != 1]
    return plain if longer == sorted(longer) else order


def row_major(values: Sequence[T], sizes: Sequence[int], layout: Sequence[int]) -> tuple[T, ...]:
    """Elements that lie in memory by a layout, in row-major order."""
    order = major_first(sizes, layout)
    if order == tuple(range(len(sizes))) or len(values) != prod(sizes):
        return tuple(values)
    strides = [0] * len(sizes)
    step = 1
    for axis in reversed(order):
        strides[axis] = step
        step *= sizes[axis]
    places = product(*(range(0, size * stride, stride) for size, stride in zip(sizes, strides, strict=True)))
    return tuple(values[sum(place)] for place in places)
