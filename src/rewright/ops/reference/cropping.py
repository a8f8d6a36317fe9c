"""Lanes that nobody sees: what fills blocks up, is computed with row by row, and is cropped in the end.

A kernel that subtracts two blocks, each filled up with ``-inf``, makes no numbers in the lanes that its store leaves
out. The crop is moved in front of what is computed, where it takes the filling away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.graph import Node
from rewright.ir.types import DType, TensorType
from rewright.ops.reference.affine import Affine, combine, decided, of_node, reshaped
from rewright.ops.reference.groups import merged_axes

if TYPE_CHECKING:
    from rewright.ops.reference.simplifying import SimplifyingBuilder

Crop = tuple[Dim, ...]
"""How much is added behind each axis: nothing, or a negative number."""
Seen = tuple[int, Shape, Crop]
"""A node, the shape as which it is read, and what is cropped of that."""


def crop_before(b: SimplifyingBuilder, position: int, crop: Crop, shape: Shape | None = None) -> int | None:
    """A cropped node, with the crop in front of what computes it; None where that takes no filling away.

    It may be read as one of another shape, and is cropped then.
    """
    shape = b.type(position).shape if shape is None else shape
    found = _cone(b, (position, shape, crop))
    if not any(_is_filled(b, seen) for seen in found):
        return None
    made = b.cropped
    for seen in sorted(found.keys() - made.keys(), key=lambda seen: seen[0]):
        made[seen] = _made(b, seen, found[seen], made)
    return made[position, shape, crop]


def filled_behind(b: SimplifyingBuilder, choice: Node, shape: Shape) -> int | None:
    """``where(i < n, x, c)``, read as of some shape, as what ``x`` is before ``n``, filled up with ``c``.

    None where the condition is another one, or where that takes no filling away.
    """
    condition, kept, other = choice.operands
    value = b.uniform(other)
    if not isinstance(choice.op, ops.Select) or value is None:
        return None
    less = [0] * len(shape)
    for part in _all_of(b, condition):
        found = _prefix(b, part, shape)
        if found is None:
            return None
        less[found[0]] = min(less[found[0]], found[1])
    rows = crop_before(b, kept, tuple(less), shape) if any(less) else None
    if rows is None:
        return None
    none = (0,) * len(shape)
    fill = b.add(ops.Constant(TensorType((), choice.type.dtype), (value,)))
    return b.add(ops.Pad(none, tuple(-size for size in less), none), rows, fill)


def _all_of(b: SimplifyingBuilder, condition: int) -> tuple[int, ...]:
    node = b.node(condition)
    return tuple(p for o in node.operands for p in _all_of(b, o)) if isinstance(node.op, ops.And) else (condition,)


def _prefix(b: SimplifyingBuilder, condition: int, shape: Shape) -> tuple[int, int] | None:
    """The axis along which a condition holds of the first places alone, and less how many places these are."""
    node, broadcast = b.node(condition), None
    if isinstance(node.op, ops.BroadcastInDim):
        broadcast, node = node, b.node(node.operands[0])
    if not isinstance(node.op, ops.Compare):
        return None
    first, last = (b.affine(p) for p in node.operands)
    sign, less = _SIGNS.get(node.op.direction, (0, 0))
    if first is None or last is None or not sign:
        return None
    form: Affine | None = combine(first, last, sign, less)
    if broadcast is not None:
        form = of_node(broadcast.op, [form], [node.type], TensorType(broadcast.type.shape, DType.I64))
    form = None if form is None else reshaped(form, b.type(condition).shape, shape)
    moving = [] if form is None else [axis for axis, c in enumerate(form.coefficients) if c]
    if form is None or len(moving) != 1 or form.coefficients[moving[0]] > 0:
        return None
    length, size = max(form.constant // -form.coefficients[moving[0]] + 1, 0), shape[moving[0]]
    return (moving[0], min(length - size, 0)) if isinstance(size, int) else None


_SIGNS = {"GE": (1, 0), "GT": (1, 1), "LE": (-1, 0), "LT": (-1, 1)}
"""A comparison as a difference that is not negative: its sign, and what is taken from it."""


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
    stretched = _stretched(b, seen) if isinstance(node.op, ops.BroadcastInDim) else None
    return () if stretched is None else (stretched[0],)


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
    groups = merged_axes(own, shape)
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


def _stretched(b: SimplifyingBuilder, seen: Seen) -> tuple[Seen, tuple[int, ...]] | None:
    """What is stretched, as it is read, and which axes of the shape as which all is read are its own.

    None where some axis of that shape is partly stretched.
    """
    position, shape, crop = seen
    node = b.node(position)
    groups = merged_axes(node.type.shape, shape)
    if not isinstance(node.op, ops.BroadcastInDim) or groups is None:
        return None
    inner, dimensions = b.type(node.operands[0]).shape, node.op.dimensions
    if list(dimensions) != sorted(dimensions):
        return None
    own: list[tuple[int, Dim, Dim]] = []
    for axis, group in enumerate(groups):
        sizes = [inner[dimensions.index(a)] for a in group if a in dimensions]
        if not sizes:
            continue
        if sizes == [node.type.shape[a] for a in group]:
            own.append((axis, shape[axis], crop[axis]))
        elif all(size == 1 for size in sizes):
            own.append((axis, 1, 0))
        else:
            return None
    axes, sizes, crops = tuple(zip(*own, strict=True)) if own else ((), (), ())
    return (node.operands[0], tuple(sizes), tuple(crops)), axes


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
        stretched = _stretched(b, seen)
        return b.add(ops.BroadcastInDim(smaller, stretched[1] if stretched else ()), made[operands[0]])
    if isinstance(node.op, ops.Reshape):
        return made[operands[0]]
    places = [made[operand] for operand in operands]
    if isinstance(node.op, ops.Compare) and (holds := _holds(b, node.op, places)) is not None:
        return b.add(ops.Constant(TensorType(smaller, DType.BOOL), (holds,)))
    rows = b.add(node.op, *places, span=node.span)
    return b.add(ops.Reshape(smaller), rows)


def _holds(b: SimplifyingBuilder, op: ops.Compare, operands: Sequence[int]) -> bool | None:
    """Whether a comparison of places holds of all that are left, or of none."""
    first, last = (b.affine(p) for p in operands)
    return None if first is None or last is None else decided(op, first, last, b.type(operands[0]).shape)


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
