"""ATen searches in sorted boundaries."""

from __future__ import annotations

from rewright import ops
from rewright.frontends.aten.context import Context, Operand, Table, Value
from rewright.ir.types import DType
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb
from rewright.ops.reference import indexing

TABLE = Table()


@TABLE.register("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(
    c: Context,
    boundaries: Value,
    x: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> int:
    """How many boundaries come before a number: those below it, or not above it."""
    c.assume("the boundaries that are searched ascend")
    b, dtype = c.b, c.promote(boundaries, x)
    rows, sought = (c.position(operand, dtype) for operand in (boundaries, x))
    if sorter is not None:
        rows = indexing.gather_along(b, rows, sorter.position, boundaries.rank - 1)
    shape = b.type(sought).shape
    if boundaries.rank > 1:
        rows = rb.insert_ones(b, rows, [boundaries.rank - 1])
    direction: Direction = "GT" if right or side == "right" else "GE"
    behind = rb.compare(b, direction, rows, rb.insert_ones(b, sought, [len(shape)]))
    before = rb.convert(b, b.add(ops.Not(), behind), DType.I64)  # no number comes before NaN
    return rb.convert(b, rb.reduce(b, "sum", before, [len(shape)]), c.result().dtype)


@TABLE.register("aten.bucketize.Tensor", "aten.bucketize.Scalar")
def bucketize(c: Context, x: Operand, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> int:
    return searchsorted(c, boundaries, x, right=right)
