"""A convolution by a small kernel as the sum of what each element of the kernel adds."""

from __future__ import annotations

import itertools

from rewright import ops
from rewright.ir.dims import Shape, divide
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import views as rb

MOST_PLACES = 16
"""Kernels of more elements are not written as sums."""


def as_products(b: GraphBuilder, op: ops.Convolution, x: int, kernel: int) -> int | None:
    """A convolution by few elements as the sum of what every one of them adds: products with a shifted input.

    None for larger kernels, for an input whose elements are put apart, for a result without elements, and for sizes
    that are no numbers.
    """
    widths = b.type(kernel).shape[2:]
    pads = [side for both in op.padding for side in both]
    sizes = (*b.type(x).shape, *b.type(kernel).shape, *pads)
    if not all(isinstance(n, int) for n in sizes) or set(op.lhs_dilation) - {1}:
        return None
    places = list(itertools.product(*(range(int(str(n))) for n in widths)))
    if not 0 < len(places) <= MOST_PLACES:
        return None
    shape = op.infer([b.type(x), b.type(kernel)]).shape
    if 0 in shape:
        return None
    padded = x
    for axis in reversed(range(len(widths))):  # the first is outermost, as it is what a program splits
        low, high = ([0] * (2 + len(widths)) for _ in range(2))
        low[2 + axis], high[2 + axis] = (int(str(side)) for side in op.padding[axis])
        padded = rb.pad(b, padded, low, high) if any(low + high) else padded
    total = _place(b, op, shape, padded, kernel, places[0])
    for place in places[1:]:
        total = b.add(ops.Add(), total, _place(b, op, shape, padded, kernel, place))
    return total


def _place(b: GraphBuilder, op: ops.Convolution, shape: Shape, padded: int, kernel: int, place: tuple[int, ...]) -> int:
    """What one element of the kernel adds."""
    (count, channels), (made, inner) = b.type(padded).shape[:2], b.type(kernel).shape[:2]
    starts = tuple(p * d for p, d in zip(place, op.rhs_dilation, strict=True))
    ends = tuple(s + (n - 1) * by + 1 for s, n, by in zip(starts, shape[2:], op.strides, strict=True))
    seen = b.add(ops.Slice((0, 0, *starts), (count, channels, *ends), (1, 1, *op.strides)), padded)
    ones = (1,) * len(place)
    own = b.add(ops.Slice((0, 0, *place), (made, inner, *(p + 1 for p in place)), (1, 1, *ones)), kernel)
    groups = op.feature_groups
    if inner == 1 and made == groups:
        weight = b.add(ops.Reshape((made,)), own)
        return b.add(ops.Multiply(), seen, b.add(ops.BroadcastInDim(shape, (1,)), weight))
    seen = b.add(ops.Reshape((count, groups, inner, *shape[2:])), seen)
    weight = b.add(ops.Reshape((groups, divide(made, groups) or 1, inner)), own)
    product = b.add(ops.DotGeneral((0,), (1,), (2,), (2,)), weight, seen)  # (group, output, sequence, places)
    order = (2, 0, 1, *range(3, 3 + len(place)))
    return b.add(ops.Reshape(shape), b.add(ops.Transpose(order), product))
