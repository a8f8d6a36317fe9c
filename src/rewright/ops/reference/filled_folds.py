"""Folds of blocks that were filled up to whole tiles, as folds of what was there before.

The largest element of ``x`` with 15 elements, filled up to 16 with minus infinity and laid out in four rows, is the
largest of ``x``. What is computed of each element on the way is computed of what the block is filled with, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rewright import ops
from rewright.ir.dims import Dim, at_most, is_nonnegative
from rewright.ops.base import array_dtype, identity_value
from rewright.ops.elementwise import Elementwise
from rewright.ops.reference import products

if TYPE_CHECKING:
    from rewright.ops.reference.simplifying import SimplifyingBuilder


def unfilled(b: SimplifyingBuilder, op: ops.Reduce, operand: int) -> int | None:
    """The fold of what a block was filled from; None where it was not, or with what is not neutral to the fold."""
    moved = _outside(b, operand)
    node = b.node(moved)
    if isinstance(node.op, ops.Pad):
        axes = {n for n, high in enumerate(node.op.high) if high != 0}
        grows = all(is_nonnegative(high) for high in node.op.high)
        plain = not any(node.op.low) and not any(node.op.interior) and axes <= set(op.dimensions)
        neutral = b.uniform(node.operands[1]) == identity_value(op.kind, node.type.dtype)
        return b.add(op, node.operands[0]) if grows and plain and neutral else None
    if not isinstance(node.op, ops.Reshape):
        return None
    source = node.operands[0]
    groups = products.merged_axes(node.type.shape, b.type(source).shape)
    if groups is None or sum(map(len, groups)) <= len(groups):
        return None
    axes = {n for n, group in enumerate(groups) if group and set(group) <= set(op.dimensions)}
    rest = set(op.dimensions) - {axis for n in axes for axis in groups[n]}
    if any(node.type.shape[axis] != 1 for axis in rest):
        return None
    kind = op.infer([node.type])
    return b.add(ops.Reshape(kind.shape), b.add(ops.Reduce(op.kind, tuple(sorted(axes))), source))


def sorted_filled(b: SimplifyingBuilder, op: ops.Sort, operand: int) -> int | None:
    """Sorted values of what was filled behind its end with what comes last: they are filled behind theirs."""
    node = b.node(operand)
    if not isinstance(node.op, ops.Pad) or op.result != "values" or not node.type.dtype.is_float:
        return None
    others = any(high != 0 for axis, high in enumerate(node.op.high) if axis != op.dimension)
    high = node.op.high[op.dimension]
    last = b.uniform(node.operands[1]) == (-math.inf if op.descending else math.inf)
    if others or any(node.op.low) or any(node.op.interior) or not last or not is_nonnegative(high):
        return None
    return b.add(node.op, b.add(op, node.operands[0]), node.operands[1])


def is_before(op: ops.Slice, pad: ops.Pad, shape: Sequence[Dim]) -> bool:
    """Whether a slice ends before what a tensor of some shape is filled with behind its end."""
    if any(pad.low) or any(pad.interior) or not all(is_nonnegative(high) for high in pad.high):
        return False
    return all(high == 0 or at_most(end, n) is True for end, n, high in zip(op.limit, shape, pad.high, strict=True))


def _outside(b: SimplifyingBuilder, position: int) -> int:
    """A function of a block that was filled or laid out as the function of what was there, filled or laid out."""
    node = b.node(position)
    if not isinstance(node.op, Elementwise):
        return position
    numbers = [b.uniform(p) for p in node.operands]
    places = [n for n, number in enumerate(numbers) if number is None]
    if len(places) != 1:
        return position
    inner = b.node(_outside(b, node.operands[places[0]]))
    if not isinstance(inner.op, ops.Pad | ops.Reshape):
        return position
    source = inner.operands[0]
    shape = b.type(source).shape

    def of(block: int) -> int:
        others = [
            block if number is None else b.add(ops.Constant(b.type(p).with_shape(shape), (number,)))
            for number, p in zip(numbers, node.operands, strict=True)
        ]
        return b.add(node.op, *others)

    if isinstance(inner.op, ops.Reshape):
        return b.add(inner.op, of(source))
    filling = b.uniform(inner.operands[1])
    if filling is None:
        return position
    dtypes = [array_dtype(b.type(p).dtype, np.float64) for p in node.operands]
    given = [np.asarray(filling if n is None else n, d) for n, d in zip(numbers, dtypes, strict=True)]
    with np.errstate(all="ignore"):
        value = node.op.execute(given, np.float64).item()
    filled = b.add(ops.Constant(node.type.with_shape(()), (value,)))
    return b.add(inner.op, of(source), filled)
