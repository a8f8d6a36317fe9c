"""Row-major positions: which element of one shape is the element of another shape."""

from __future__ import annotations

from rewright.ir.dims import Dim, Shape, divide, product
from rewright.terms.index import Index, quotient, remainder


def reshaped_index(source: Shape, target: Shape, index: tuple[Index, ...]) -> tuple[Index, ...]:
    """The index into ``source`` of the element that has an index in ``target``, both in row-major order.

    The axes of both shapes are grouped into the smallest blocks of equal size, so that an axis which a reshape does
    not touch is read at its own variable.
    """
    found: list[Index] = []
    first, last = 0, 0
    for left, right in blocks(source, target):
        found.extend(_block(source[first:left], target[last:right], index[last:right]))
        first, last = left, right
    return tuple(found)


def blocks(source: Shape, target: Shape) -> list[tuple[int, int]]:
    """Ends of consecutive groups of axes with equal numbers of elements in both shapes.

    Greedy: the side with the smaller product takes the next axis; where sizes are symbols and neither product
    divides the other, the rest is one block.
    """
    if any(size == 0 for size in (*source, *target)):
        return [(len(source), len(target))] if source != target else [(i + 1, i + 1) for i in range(len(source))]
    ends: list[tuple[int, int]] = []
    i = j = 0
    while i < len(source) and j < len(target):
        left, right = source[i], target[j]
        i, j = i + 1, j + 1
        while left != right:
            if divide(right, left) is not None and i < len(source):
                left, i = left * source[i], i + 1
            elif divide(left, right) is not None and j < len(target):
                right, j = right * target[j], j + 1
            else:
                grown = _grow(source, target, i, j)
                left, right, i, j = 1, 1, *grown
        ends.append((i, j))
    return _with_ones(ends, len(source), len(target))


def _grow(source: Shape, target: Shape, i: int, j: int) -> tuple[int, int]:
    """Where neither product divides the other: the next ends at which the products of all axes so far agree."""
    for left in range(i, len(source) + 1):
        for right in range(j, len(target) + 1):
            if product(source[:left]) == product(target[:right]):
                return left, right
    return len(source), len(target)


def _with_ones(ends: list[tuple[int, int]], left: int, right: int) -> list[tuple[int, int]]:
    """Axes of size one at the end belong to the last block."""
    if not ends:
        return [(left, right)]
    return [*ends[:-1], (left, right)]


def _block(source: Shape, target: Shape, index: tuple[Index, ...]) -> list[Index]:
    if source == target:
        return list(index)
    position = Index(0)
    for i, size in zip(index, target, strict=True):
        position = position * size + i
    found: list[Index] = []
    for axis, size in enumerate(source):
        stride: Dim = product(source[axis + 1 :])
        if size == 1:
            found.append(Index(0))
            continue
        digit = quotient(position, stride) if stride != 1 else position
        # The leading digit is below its size already, because the position is inside the block.
        leading = all(earlier == 1 for earlier in source[:axis])
        found.append(digit if leading else remainder(digit, size))
    return found
