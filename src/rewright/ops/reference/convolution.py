"""Convolutions and their gradients, in PyTorch's axis order (N, C, spatial ..).

A convolution whose windows tile the input (the patch embedding of a vision transformer) is a reshape and a matrix
product, and so are its gradients.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.dims import Dim, Shape, divide
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.graph import GraphBuilder
from rewright.ops.reference import building as rb


@dataclass(frozen=True, slots=True)
class Window:
    """How the kernel moves, with one entry per spatial axis, and the number of channel groups."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @staticmethod
    def of(
        spatial: int, strides: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
    ) -> Window:
        """Attributes given once stand for every spatial axis."""

        def full(values: Sequence[int]) -> tuple[int, ...]:
            return tuple(values) if len(values) == spatial else tuple(values) * spatial

        return Window(full(strides), full(padding), full(dilation), groups)

    def tiles(self, kernel: Shape, image: Shape) -> bool:
        """Whether the windows cut the input into blocks without overlap, gap or rest."""
        plain = self.groups == 1 and not any(self.padding) and all(d == 1 for d in self.dilation)
        return (
            plain
            and self.strides == kernel[2:]
            and all(divide(size, step) is not None for size, step in zip(image[2:], self.strides, strict=True))
        )


def convolution(b: GraphBuilder, x: int, kernel: int, window: Window) -> int:
    """Correlation of (N, C, ..) with (O, C / groups, ..) to (N, O, ..)."""
    with rb.scope(b, "convolution"):
        shape = b.type(kernel).shape
        if window.tiles(shape, b.type(x).shape):
            return _tile(b, x, kernel)
        padding = tuple((p, p) for p in window.padding)
        ones = (1,) * len(padding)
        return b.add(ops.Convolution(window.strides, padding, ones, window.dilation, window.groups), x, kernel)


def _blocks(b: GraphBuilder, x: int, steps: Shape) -> int:
    """(N, C, ..) as (N, C, blocks, within, blocks, within, ..)."""
    shape = b.type(x).shape
    pairs: list[Dim] = []
    for size, step in zip(shape[2:], steps, strict=True):
        count = divide(size, step)
        assert count is not None
        pairs += [count, step]
    return rb.reshape(b, x, (*shape[:2], *pairs))


def _within(spatial: int) -> tuple[int, ...]:
    return tuple(3 + 2 * axis for axis in range(spatial))


def _tile(b: GraphBuilder, x: int, kernel: int) -> int:
    shape = b.type(kernel).shape
    spatial = len(shape) - 2
    blocks = _blocks(b, x, shape[2:])
    product = b.add(ops.DotGeneral((), (), (1, *_within(spatial)), tuple(range(1, spatial + 2))), blocks, kernel)
    return rb.transpose(b, product, (0, spatial + 1, *range(1, spatial + 1)))


def input_gradient(b: GraphBuilder, gradient: int, shape: Shape, kernel: int, window: Window) -> int:
    """The gradient of the input, of the given shape."""
    with rb.scope(b, "convolution"):
        sizes = b.type(kernel).shape
        spatial = len(sizes) - 2
        if window.tiles(sizes, shape):
            product = rb.dot(b, gradient, kernel, ([1], [0]))
            order = [0, spatial + 1]
            for axis in range(spatial):
                order += [1 + axis, spatial + 2 + axis]
            return rb.reshape(b, rb.transpose(b, product, order), shape)
        return _transpose(b, gradient, shape, kernel, window)


def _transpose(b: GraphBuilder, gradient: int, shape: Shape, kernel: int, window: Window) -> int:
    """A convolution of the gradient, its elements put ``strides`` apart, with the kernel reversed."""
    sizes = b.type(kernel).shape
    spatial = len(sizes) - 2
    reversed_ = b.add(ops.Reverse(tuple(range(2, len(sizes)))), kernel)
    outputs = divide(sizes[0], window.groups)
    assert outputs is not None
    grouped = rb.reshape(b, reversed_, (window.groups, outputs, *sizes[1:]))
    swapped = rb.reshape(b, rb.swap(b, grouped, 1, 2), (shape[1], outputs, *sizes[2:]))
    padding: list[tuple[Dim, Dim]] = []
    for axis in range(spatial):
        reach = (sizes[2 + axis] - 1) * window.dilation[axis]
        low = reach - window.padding[axis]
        spread = (b.type(gradient).shape[2 + axis] - 1) * window.strides[axis] + 1
        padding.append((low, shape[2 + axis] - spread - low + reach))
    wide = tuple((_at_least_none(low), _at_least_none(high)) for low, high in padding)
    op = ops.Convolution((1,) * spatial, wide, window.strides, window.dilation, window.groups)
    found = b.add(op, gradient, swapped)
    for axis, ((low, _), (used, _)) in enumerate(zip(padding, wide, strict=True), start=2):
        found = rb.slice_axis(b, found, axis, used - low, used - low + shape[axis])  # where elements are left out
    return found


def _at_least_none(padding: Dim) -> Dim:
    return max(padding, 0) if isinstance(padding, int) else padding


def kernel_gradient(b: GraphBuilder, gradient: int, x: int, shape: Shape, window: Window) -> int:
    """The gradient of the kernel, of the given shape."""
    with rb.scope(b, "convolution"):
        spatial = len(shape) - 2
        outer = (0, *range(2, spatial + 2))
        if window.tiles(shape, b.type(x).shape):
            blocks = _blocks(b, x, shape[2:])
            places = (0, *(2 + 2 * axis for axis in range(spatial)))
            return b.add(ops.DotGeneral((), (), outer, places), gradient, blocks)
        return _by_taps(b, gradient, x, shape, window)


def _by_taps(b: GraphBuilder, gradient: int, x: int, shape: Shape, window: Window) -> int:
    """For every element of the kernel the product of the gradient with the input that it met."""
    taps = [range(_number(size)) for size in shape[2:]]
    low = (0, 0, *window.padding)
    padded = rb.pad(b, x, low, low)
    found = [_tap(b, gradient, padded, shape, window, tap) for tap in itertools.product(*taps)]
    flat = [rb.insert_ones(b, part, [2]) for part in found]
    return rb.reshape(b, rb.concatenate(b, flat, 2), shape)


def _tap(b: GraphBuilder, gradient: int, padded: int, shape: Shape, window: Window, tap: tuple[int, ...]) -> int:
    counts = b.type(gradient).shape
    for axis, place in enumerate(tap):
        start = place * window.dilation[axis]
        limit = start + (counts[2 + axis] - 1) * window.strides[axis] + 1
        padded = rb.slice_axis(b, padded, 2 + axis, start, limit, window.strides[axis])
    groups = window.groups
    outputs, inputs = divide(counts[1], groups), shape[1]
    assert outputs is not None
    left = rb.reshape(b, gradient, (counts[0], groups, outputs, *counts[2:]))
    right = rb.reshape(b, padded, (counts[0], groups, inputs, *counts[2:]))
    places = (0, *range(3, len(counts) + 1))
    product = b.add(ops.DotGeneral((1,), (1,), places, places), left, right)
    return rb.reshape(b, product, shape[:2])


def _number(size: Dim) -> int:
    if not isinstance(size, int):
        raise UnsupportedOperator(f"the gradient of a kernel of symbolic size {size}; give it a number")
    return size
