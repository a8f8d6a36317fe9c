"""ATen average and maximum pooling over windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rewright import ops
from rewright.frontends.aten.context import Context, NotCovered, Table, Value
from rewright.ir.errors import UnsupportedOperator
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
        window, step, pad = _windows(count, kernel_size, stride, padding)
        if ceil_mode:
            raise UnsupportedOperator("average pooling with ceil_mode has no lowering; use the default")
        total = _pool(c, "sum", x, window, step, pad)
        if divisor_override is None and not count_include_pad and any(pad):
            ones = rb.splat_like(c.b, 1, x.position)
            return rb.divide(c.b, total, _pool(c, "sum", Value(ones, x.type), window, step, pad))
        size = math.prod(window) if divisor_override is None else divisor_override
        return rb.divide(c.b, total, rb.splat_like(c.b, size, total))

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
for _count in (1, 2, 3):
    TABLE.register(f"aten.max_pool{_count}d.default")(_maximum(_count, places=False))
    TABLE.register(f"aten.max_pool{_count}d_with_indices.default")(_maximum(_count, places=True))
