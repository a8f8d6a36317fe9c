"""What operators say of sizes: which are one, which are parts of which, and which attributes are sizes.

A product says that its contracted axes have one size, a concatenation that a size is the sum of others. Who asks gives
a ``Sizes``: the free sizes of a rule, or axes that are to be made small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

from rewright.ir.dims import Dim

Op = TypeVar("Op")
Size = int
"""Stands for the size of one axis of one tensor."""
Axes = Sequence[Size]
"""Stands for a shape."""
Mark = Any
"""Stands for an attribute that is a size, or a position along an axis; a number means itself."""
Attributes = Mapping[str, Any]
"""By name the attributes that change with sizes: a mark, or a tuple of what an attribute may be."""


class Sizes(Protocol):
    """The sizes of a program, and what its operators say of them."""

    def value(self, size: Size, /) -> Dim:
        """The size in the program as it is."""
        ...

    def same(self, first: Size, second: Size, /) -> None:
        """Two sizes are one."""
        ...

    def fix(self, sizes: Iterable[Size], /) -> None:
        """Nothing is said of these: they stay what they are."""
        ...

    def whole(self, size: Size, /) -> Mark:
        """An attribute that is a size."""
        ...

    def regroup(self, before: Axes, after: Axes, /) -> None:
        """Two shapes have one product, in row-major order."""
        ...

    def slice(self, result: Size, source: Size, low: Dim, high: Dim, step: int, /) -> tuple[Mark, Mark]:
        """An axis keeps what lies between two positions; these, as attributes."""
        ...

    def pad(self, result: Size, source: Size, low: Dim, high: Dim, /) -> tuple[Mark, Mark]:
        """An axis grows at both ends, or shrinks where a number is negative; by how much, as attributes."""
        ...

    def join(self, result: Size, parts: Axes, /) -> None:
        """A size is the sum of others, which lie one after the other."""
        ...

    def divide(self, source: Size, lengths: Sequence[Dim], /) -> tuple[Mark, ...]:
        """An axis falls into parts of these lengths; the lengths, as attributes."""
        ...

    def slide(self, result: Size, source: Size, width: Dim, low: Dim, high: Dim, /) -> tuple[Mark, Mark, Mark]:
        """Windows of a width go along an axis that is padded, one step at a time; width and padding, as attributes."""
        ...

    def part(self, part: Size, source: Size, /) -> None:
        """A size is that of a part of an axis whose place is data."""
        ...

    def chosen(self, count: Size, source: Size, /) -> None:
        """A size is how many elements of an axis are taken, all of them or fewer."""
        ...


def same_shape(sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
    """The result and all operands have one shape."""
    for operand in operands:
        same_each(sizes, operand, result)
    return {}


def same_each(sizes: Sizes, first: Axes, second: Axes) -> None:
    """Two shapes are one."""
    for one, other in zip(first, second, strict=True):
        sizes.same(one, other)


def nothing_said(sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
    """All sizes stay what they are."""
    sizes.fix(chain(*operands, result))
    return {}
