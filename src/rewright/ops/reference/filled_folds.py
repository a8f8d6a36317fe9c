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
from rewright.ops.reference.groups import merged_axes

if TYPE_CHECKING:
    from rewright.ops.reference.simplifying import SimplifyingBuilder


def unfilled(b: SimplifyingBuilder, op: ops.Reduce, operand: int) -> int | None:
    """The fold of what a block was filled from; None where it was not, or with what is not neutral to the fold."""
    if not _is_filled(b, operand, _DEEPEST, {}):
        return None
    node = b.node(_outside(b, operand, {}))
    if isinstance(node.op, ops.Pad):
        grows = all(is_nonnegative(high) for high in node.op.high)
        neutral = identity_value(op.kind, node.type.dtype)
        if not grows or any(node.op.low) or any(node.op.interior) or b.uniform(node.operands[1]) != neutral:
            return None
        found = b.add(op, node.operands[0])
        kept = tuple(high for axis, high in enumerate(node.op.high) if axis not in op.dimensions)
        none = (0,) * len(kept)  # what is filled is folded to what it is filled with
        return b.add(ops.Pad(none, kept, none), found, node.operands[1]) if any(high != 0 for high in kept) else found
    if not isinstance(node.op, ops.Reshape):
        return None
    source = node.operands[0]
    groups = merged_axes(node.type.shape, b.type(source).shape)
    if groups is None or sum(map(len, groups)) <= len(groups):
        return None
    axes = {n for n, group in enumerate(groups) if group and set(group) <= set(op.dimensions)}
    rest = set(op.dimensions) - {axis for n in axes for axis in groups[n]}
    if any(node.type.shape[axis] != 1 for axis in rest):
        return None
    kind = op.infer([node.type])
    return b.add(ops.Reshape(kind.shape), b.add(ops.Reduce(op.kind, tuple(sorted(axes))), source))


def sorted_filled(b: SimplifyingBuilder, op: ops.Sort, operand: int) -> int | None:
    """Sorted values of what was filled behind its end with what comes last: they are filled behind theirs.

    In rising order that is so of numbers: what is none comes behind infinity.
    """
    node = b.node(operand)
    if not isinstance(node.op, ops.Pad) or op.result != "values" or not node.type.dtype.is_float:
        return None
    others = any(high != 0 for axis, high in enumerate(node.op.high) if axis != op.dimension)
    high = node.op.high[op.dimension]
    last = b.uniform(node.operands[1]) == (-math.inf if op.descending else math.inf)
    if others or any(node.op.low) or any(node.op.interior) or not last or not is_nonnegative(high):
        return None
    return b.add(node.op, b.add(op, node.operands[0]), node.operands[1])


def top_of_filled(b: SimplifyingBuilder, op: ops.TopK, operand: int) -> int | None:
    """The largest elements of rows that were filled behind their end with minus infinity: those of the rows before.

    Rows that are nothing else have the first places, of equal elements, and minus infinities.
    """
    if not _is_filled(b, operand, _DEEPEST, {}):
        return None
    node = b.node(_outside(b, operand, {}))
    if isinstance(node.op, ops.Reshape):
        source = b.type(node.operands[0]).shape
        groups = merged_axes(node.type.shape, source)
        if groups is None or not node.type.shape or groups[-1] != (len(node.type.shape) - 1,):
            return None
        return b.add(ops.Reshape(op.infer([node.type]).shape), b.add(op, node.operands[0]))
    if not isinstance(node.op, ops.Pad) or not node.type.dtype.is_float or op.k != 1:
        return None
    grows = all(is_nonnegative(high) for high in node.op.high)
    plain = not any(node.op.low) and not any(node.op.interior)
    length = b.type(node.operands[0]).shape[-1]
    if not (grows and plain and at_most(1, length) is True) or b.uniform(node.operands[1]) != -math.inf:
        return None
    found, kept = b.add(op, node.operands[0]), (*node.op.high[:-1], 0)
    if all(high == 0 for high in kept):
        return found
    none = (0,) * len(kept)
    filling = 0 if op.result == "indices" else -math.inf
    return b.add(ops.Pad(none, kept, none), found, b.add(ops.Constant(b.type(found).with_shape(()), (filling,))))


def is_before(op: ops.Slice, pad: ops.Pad, shape: Sequence[Dim]) -> bool:
    """Whether a slice ends before what a tensor of some shape is filled with behind its end."""
    if any(pad.low) or any(pad.interior) or not all(is_nonnegative(high) for high in pad.high):
        return False
    return all(high == 0 or at_most(end, n) is True for end, n, high in zip(op.limit, shape, pad.high, strict=True))


_DEEPEST = 32
"""So many operators are looked through between a fold and where a block was filled."""


def _is_filled(b: SimplifyingBuilder, position: int, depth: int, known: dict[int, bool]) -> bool:
    """Whether a block was filled before it was laid out and functions of it were computed."""
    if position not in known:
        node = b.node(position)
        if isinstance(node.op, Elementwise | ops.Reshape):
            inner = [p for p in node.operands if b.uniform(p) is None]
            known[position] = depth > 0 and bool(inner) and all(_is_filled(b, p, depth - 1, known) for p in inner)
        else:
            known[position] = isinstance(node.op, ops.Pad)
    return known[position]


def _outside(b: SimplifyingBuilder, position: int, known: dict[int, int]) -> int:
    """A function of blocks that were filled or laid out alike as the function of what was there, filled or laid out."""
    if position not in known:
        known[position] = _moved(b, position, known)
    return known[position]


def _moved(b: SimplifyingBuilder, position: int, known: dict[int, int]) -> int:
    node = b.node(position)
    if not isinstance(node.op, Elementwise):
        return position
    numbers = [b.uniform(p) for p in node.operands]
    inner = [b.node(_outside(b, p, known)) for p, number in zip(node.operands, numbers, strict=True) if number is None]
    if not inner or not isinstance(inner[0].op, ops.Pad | ops.Reshape):
        return position
    sources = [n.operands[0] for n in inner if n.operands]
    shape = b.type(sources[0]).shape
    if any(n.op != inner[0].op for n in inner) or any(b.type(p).shape != shape for p in sources):
        return position
    left = iter(sources)
    operands = [
        next(left) if number is None else b.add(ops.Constant(b.type(p).with_shape(shape), (number,)))
        for number, p in zip(numbers, node.operands, strict=True)
    ]
    if isinstance(inner[0].op, ops.Reshape):
        return b.add(inner[0].op, b.add(node.op, *operands))
    filling = iter([b.uniform(n.operands[1]) for n in inner])
    values = [next(filling) if number is None else number for number in numbers]
    given = [value for value in values if value is not None]
    if len(given) < len(values):
        return position
    dtypes = [array_dtype(b.type(p).dtype, np.float64) for p in node.operands]
    with np.errstate(all="ignore"):
        arrays = [np.asarray(value, dtype) for value, dtype in zip(given, dtypes, strict=True)]
        value = node.op.execute(arrays, np.float64).item()
    filled = b.add(ops.Constant(node.type.with_shape(()), (value,)))
    return b.add(inner[0].op, b.add(node.op, *operands), filled)
