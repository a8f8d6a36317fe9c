"""Lanes that nobody sees: what fills blocks up, is computed with row by row, and is cropped in the end.

A kernel that subtracts two blocks, each filled up with ``-inf``, makes no numbers in the lanes that its store leaves
out. The crop is moved in front of what is computed, where it takes the filling away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.graph import Node
from rewright.ir.types import DType, TensorType
from rewright.ops.reference import products

if TYPE_CHECKING:
    from rewright.ops.reference.simplifying import SimplifyingBuilder

Crop = tuple[Dim, ...]
"""How much is added behind each axis: nothing, or a negative number."""
Seen = tuple[int, Shape, Crop]
"""A node, the shape as which it is read, and what is cropped of that."""


def crop_before(b: SimplifyingBuilder, position: int, crop: Crop) -> int | None:
    """A cropped node, with the crop in front of what computes it; None where that takes no filling away."""
    shape = b.type(position).shape
    found = _cone(b, (position, shape, crop))
    if not any(_is_filled(b, seen) for seen in found):
        return None
    made = b.cropped
    for seen in sorted(found.keys() - made.keys(), key=lambda seen: seen[0]):
        made[seen] = _made(b, seen, found[seen], made)
    return made[position, shape, crop]


def _cone(b: SimplifyingBuilder, first: Seen) -> dict[Seen, tuple[Seen, ...]]:
    """What a cropped node is computed from row by row, each with its operands; none where that ends."""
    found: dict[Seen, tuple[Seen, ...]] = {}
    left = [first]
    while left:
        seen = left.pop()
        if seen not in found:
            found[seen] = _operands(b, seen)
            left += found[seen]
    return found


def _operands(b: SimplifyingBuilder, seen: Seen) -> tuple[Seen, ...]:
    position, shape, crop = seen
    node = b.node(position)
    if b.affine(position) is not None:
        return ()
    if isinstance(node.op, ops.Elementwise) and all(b.type(p).shape == node.type.shape for p in node.operands):
        return tuple((operand, shape, crop) for operand in node.operands)
    if isinstance(node.op, ops.Reshape):
        return ((node.operands[0], shape, crop),)
    if isinstance(node.op, (ops.Reduce, ops.DotGeneral, ops.Transpose)):
        return _rows(b, node, _own_crop(node.type.shape, shape, crop))
    axes = _axes(b, seen) if isinstance(node.op, ops.BroadcastInDim) else None
    if axes is None:
        return ()
    inner = b.type(node.operands[0]).shape
    own = tuple(crop[axis] if shape[axis] == size else 0 for axis, size in zip(axes, inner, strict=True))
    return ((node.operands[0], inner, own),)


def _rows(b: SimplifyingBuilder, node: Node, crop: Crop | None) -> tuple[Seen, ...]:
    """The operands of what computes each row by itself, with as many rows of each as are left."""
    types = [b.type(p) for p in node.operands]
    follows = node.op.follows(types, node.type) if isinstance(node.op, ops.TensorOperator) else None
    if crop is None or follows is None:
        return ()
    own = [tuple(0 if axis is None else crop[axis] for axis in axes) for axes in follows]
    return tuple((p, kind.shape, less) for p, kind, less in zip(node.operands, types, own, strict=True))


def _own_crop(own: Shape, shape: Shape, crop: Crop) -> Crop | None:
    """What is cropped of a tensor that is read as one of another shape; None where that is not along its axes."""
    groups = products.merged_axes(own, shape)
    if groups is None:
        return None
    found: list[Dim] = [0] * len(own)
    for group, less in zip(groups, crop, strict=True):
        wide = [axis for axis in group if own[axis] != 1]
        if less != 0 and len(wide) != 1:
            return None
        if less != 0:
            found[wide[0]] = less
    return tuple(found)


def _axes(b: SimplifyingBuilder, seen: Seen) -> tuple[int, ...] | None:
    """By axis of what is stretched, which axis it is in the shape as which that is read; None where it is of none."""
    position, shape, _ = seen
    node = b.node(position)
    groups = products.merged_axes(node.type.shape, shape)
    if not isinstance(node.op, ops.BroadcastInDim) or groups is None:
        return None
    found = tuple(groups.index((axis,)) if (axis,) in groups else -1 for axis in node.op.dimensions)
    return None if -1 in found else found


def _made(b: SimplifyingBuilder, seen: Seen, operands: tuple[Seen, ...], made: dict[Seen, int]) -> int:
    position, shape, crop = seen
    node = b.node(position)
    own = _own_crop(node.type.shape, shape, crop)
    smaller = tuple(size + less for size, less in zip(shape, crop, strict=True))
    if not operands and own is None:
        return _cropped(b, b.add(ops.Reshape(shape), position), crop)
    if not operands:
        return b.add(ops.Reshape(smaller), _cropped(b, position, own or crop))
    if isinstance(node.op, ops.BroadcastInDim):
        return b.add(ops.BroadcastInDim(smaller, _axes(b, seen) or ()), made[operands[0]])
    if isinstance(node.op, ops.Reshape):
        return made[operands[0]]
    rows = b.add(node.op, *(made[operand] for operand in operands), span=node.span)
    return b.add(ops.Reshape(smaller), rows)


def _cropped(b: SimplifyingBuilder, position: int, crop: Crop) -> int:
    dtype = b.type(position).dtype
    zero = b.add(ops.Constant(TensorType((), dtype), (False if dtype is DType.BOOL else 0,)))
    none = (0,) * len(crop)
    return b.add(ops.Pad(none, crop, none), position, zero)


def _is_filled(b: SimplifyingBuilder, seen: Seen) -> bool:
    position, shape, crop = seen
    node = b.node(position)
    own = _own_crop(node.type.shape, shape, crop)
    if own is None or not isinstance(node.op, ops.Pad) or any((*node.op.low, *node.op.interior)):
        return False
    return any(less != 0 and more != 0 for less, more in zip(own, node.op.high, strict=True))
