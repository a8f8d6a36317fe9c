"""ATen average and maximum pooling over windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rewright import ops
from rewright.frontends.aten.context import Context, Table, Value
from rewright.ir.errors import UnsupportedOperator
from rewright.ops.base import ReductionKind
from rewright.ops.reference import building as rb

TABLE = Table()
Sizes = int | Sequence[int]


def _each(value: Sizes, count: int) -> list[int]:
    """One number for each spatial axis."""
    numbers = [value] if isinstance(value, int) else list(value)
    return numbers * count if len(numbers) == 1 else numbers


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
        window, pad = _each(kernel_size, count), _each(padding, count)
        step = _each(stride, count) if stride or isinstance(stride, int) else window
        if ceil_mode or (not count_include_pad and any(pad)):
            raise UnsupportedOperator(
                "pooling with ceil_mode, or without counting padding, has no lowering; use the default"
            )
        total = _pool(c, "sum", x, window, step, pad)
        size = divisor_override
        if size is None:
            size = 1
            for width in window:
                size *= width
        return rb.divide(c.b, total, rb.splat_like(c.b, size, total))

    return lower


TABLE.register("aten.avg_pool1d.default")(_average(1))
TABLE.register("aten.avg_pool2d.default")(_average(2))
TABLE.register("aten.avg_pool3d.default")(_average(3))
