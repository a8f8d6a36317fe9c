"""ATen average and maximum pooling over windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.frontends.aten.context import Context, NotCovered, Table, Value
from rewright.ir.dims import Dim, Shape
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb

TABLE = Table()
FIRST_ONLY = frozenset(f"aten.max_pool{count}d_with_indices.default" for count in (1, 2, 3))
"""Operators that are lowered for their first result; where others are read, they are what PyTorch makes of them."""
Sizes = int | Sequence[int]


def _each(value: Sizes, count: int) -> list[int]:
    """One number for each spatial axis."""
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers * count if len(numbers) == 1 else numbers


def _windows(count: int, kernel_size: Sizes, stride: Sizes, padding: Sizes) -> tuple[list[int], list[int], list[int]]:
    """Widths, steps and padding of windows; without a step they stand side by side."""
    window = _each(kernel_size, count)
    step = _each(stride, count) if stride or isinstance(stride, int) else window
    return window, step, _each(padding, count)


def _pool(c: Context, kind: ReductionKind, x: Value, window: list[int], stride: list[int], padding: list[int]) -> int:
    lead = x.rank - len(window)
    op = ops.ReduceWindow(
        kind,
        (1,) * lead + tuple(window),
        (1,) * lead + tuple(stride),
        ((0, 0),) * lead + tuple((p, p) for p in padding),
    )
    return c.b.add(op, x.position)


@dataclass(frozen=True, slots=True)
class _Averaging:
    """How an average is taken: windows over the last axes, how many of them, and what their sums are divided by."""

    window: tuple[int, ...]
    step: tuple[int, ...]
    padding: tuple[int, ...]
    counts: Shape
    """Positions of the window along each axis; by rounding up one may begin before the end and reach beyond it."""
    includes_padding: bool
    override: int | None

    def ends(self, shape: Shape) -> tuple[Dim, ...]:
        """By how much each axis must be longer at its end."""
        found: list[Dim] = []
        axes = zip(shape[-len(self.window) :], self.window, self.step, self.padding, self.counts, strict=True)
        for size, window, step, low, count in axes:
            more = (count - 1) * step + window - size - low
            found.append(max(more, 0) if isinstance(more, int) else low)
        return tuple(found)

    def total(self, c: Context, x: int) -> int:
        """The sums of all windows."""
        shape = c.b.type(x).shape
        lead = len(shape) - len(self.window)
        pads = (((0, 0),) * lead) + tuple(zip(self.padding, self.ends(shape), strict=True))
        return c.b.add(ops.ReduceWindow("sum", (1,) * lead + self.window, (1,) * lead + self.step, pads), x)

    def divided(self, c: Context, sums: int, shape: Shape) -> int:
        """Sums divided by the numbers of elements that were summed, of a tensor of a shape."""
        if self.override is not None:
            return rb.divide(c.b, sums, rb.splat_like(c.b, self.override, sums))
        dtype, padded = c.b.type(sums).dtype, any(self.padding)
        beyond = any(a != b for a, b in zip(self.ends(shape), self.padding, strict=True)) and self._reaches(shape)
        if not beyond and (self.includes_padding or not padded):
            return rb.divide(c.b, sums, rb.splat_like(c.b, math.prod(self.window), sums))
        ones = rb.splat(c.b, 1, shape, dtype)
        if not self.includes_padding or not padded:
            return rb.divide(c.b, sums, self.total(c, ones))
        lead = [0] * (len(shape) - len(self.window))
        wide = rb.pad(c.b, ones, [*lead, *self.padding], [*lead, *self.padding], 1)
        inner = replace(self, padding=(0,) * len(self.padding))
        return rb.divide(c.b, sums, inner.total(c, wide))

    def _reaches(self, shape: Shape) -> bool:
        """Whether a window reaches beyond the padding."""
        pairs = zip(self.ends(shape), self.padding, strict=True)
        return any(not isinstance(end, int) or end > low for end, low in pairs)


def _averaging(
    counts: Shape,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    count_include_pad: bool,
    divisor_override: int | None,
) -> _Averaging:
    window, step, pad = _windows(len(counts), kernel_size, stride, padding)
    return _Averaging(tuple(window), tuple(step), tuple(pad), counts, count_include_pad, divisor_override)


def _average(count: int) -> Callable[..., int]:
    def lower(
        c: Context,
        x: Value,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> int:
        counts = c.result().shape[-count:]
        how = _averaging(counts, kernel_size, stride, padding, count_include_pad, divisor_override)
        return how.divided(c, how.total(c, x.position), x.shape)

    return lower


def _average_backward(count: int) -> Callable[..., int]:
    def lower(
        c: Context,
        gradient: Value,
        x: Value,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> int:
        """Every element has its share of the windows that it is in: a window over gradients put a step apart."""
        counts = gradient.shape[-count:]
        how = _averaging(counts, kernel_size, stride, padding, count_include_pad, divisor_override)
        spread = how.divided(c, gradient.position, x.shape)
        lead = x.rank - count
        low = [*(0 for _ in range(lead)), *(w - 1 - p for w, p in zip(how.window, how.padding, strict=True))]
        between = [*(0 for _ in range(lead)), *(s - 1 for s in how.step)]
        high: list[Dim] = [0] * lead
        for axis in range(count):
            taken = (counts[axis] - 1) * how.step[axis] + 1 + low[lead + axis]
            high.append(x.shape[lead + axis] + how.window[axis] - 1 - taken)
        kept = [max(end, 0) if isinstance(end, int) else end for end in high]
        filler = rb.splat(c.b, 0, (), gradient.dtype)
        spread = c.b.add(ops.Pad(tuple(low), tuple(kept), tuple(between)), spread, filler)
        for axis in range(lead, x.rank):
            spread = rb.slice_axis(c.b, spread, axis, 0, x.shape[axis] + how.window[axis - lead] - 1)
        ones = (1,) * x.rank
        return c.b.add(ops.ReduceWindow("sum", (1,) * lead + how.window, ones, ((0, 0),) * x.rank), spread)

    return lower


def _maximum(count: int, places: bool) -> Callable[..., int | tuple[int | None, ...]]:
    """Maximum pooling over some axes; the places of the maxima, where they are results, are left out."""

    def lower(
        c: Context,
        x: Value,
        kernel_size: Sizes,
        stride: Sizes = (),
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> int | tuple[int | None, ...]:
        window, step, pad = _windows(count, kernel_size, stride, padding)
        if ceil_mode or any(d != 1 for d in _each(dilation, count)):
            raise NotCovered("maximum pooling with ceil_mode or dilation has no lowering")
        found = _pool(c, "maximum", x, window, step, pad)
        return (found, None) if places else found

    return lower


TABLE.register("aten.avg_pool1d.default")(_average(1))
TABLE.register("aten.avg_pool2d.default")(_average(2))
TABLE.register("aten.avg_pool3d.default")(_average(3))
TABLE.register("aten.avg_pool2d_backward.default")(_average_backward(2))
TABLE.register("aten.avg_pool3d_backward.default")(_average_backward(3))
for _count in (1, 2, 3):
    TABLE.register(f"aten.max_pool{_count}d.default")(_maximum(_count, places=False))
    TABLE.register(f"aten.max_pool{_count}d_with_indices.default")(_maximum(_count, places=True))
