"""Sizes as numbers that a program computes with."""

from __future__ import annotations

from rewright.ir.dims import Dim, symbol
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType
from rewright.ops.reference.building import add, reduce, splat


def size_value(builder: GraphBuilder, size: Dim, dtype: DType) -> int:
    """A size as a scalar; a symbolic one is written as sums of ones, which it is for every value of its symbols."""
    if isinstance(size, int):
        return splat(builder, size, (), dtype)
    total = splat(builder, 0, (), dtype)
    for names, coefficient in size.terms:
        ones = splat(builder, coefficient, tuple(symbol(name) for name in names), dtype)
        total = add(builder, total, reduce(builder, "sum", ones, range(len(names))))
    return total
