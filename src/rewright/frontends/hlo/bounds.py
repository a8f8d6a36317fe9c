"""Indices out of range: HLO moves a block that is read inside, and drops a block that is written.

Both are written out: a gather of the IR is not defined out of range, and a scatter skips elements one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.frontends.hlo.context import Context
from rewright.ir.dims import Shape
from rewright.ir.types import DType
from rewright.ops.reference import building as rb


def clamp(c: Context, low: int, x: int, high: int) -> int:
    """An integer tensor moved between two others, as choices: where it is known to be between them, nothing is left."""
    least, most = c.b.uniform(low), c.b.uniform(high)
    if least is None or most is None or least > most:
        return c.b.add(ops.Clamp(), low, x, high)
    if _is_between(c, x, least, most):
        return x
    below = rb.select(c.b, rb.compare(c.b, "GT", x, high), high, x)
    found = rb.select(c.b, rb.compare(c.b, "LT", x, low), low, below)
    c.between[found] = least, most
    return found


def _is_between(c: Context, x: int, low: float, high: float) -> bool:
    """Whether a tensor is made of one that was moved between such numbers already."""
    while x not in c.between and isinstance(c.b.node(x).op, _REARRANGES):
        (x,) = c.b.node(x).operands
    least, most = c.between.get(x, (low - 1, high + 1))
    return low <= least and most <= high


_REARRANGES = (ops.BroadcastInDim, ops.Reshape, ops.Transpose, ops.Slice)


def gather_or_nan(c: Context, condition: int, on_true: int, on_false: int) -> int | None:
    """A gather where a condition holds, else what is no number; None unless the condition says that it is in range.

    JAX reads so by default. The gather of the IR is not defined out of range, which is the same.
    """
    gather = c.b.node(on_true)
    if on_true not in c.unmoved or not isinstance(gather.op, ops.Gather) or not _is_no_number(c, on_false):
        return None
    indices, op = c.unmoved[on_true], gather.op
    test = c.b.node(condition)
    batch = tuple(axis for axis in range(gather.type.rank) if axis not in op.offset_dims)
    if isinstance(test.op, ops.BroadcastInDim) and test.op.dimensions == batch:
        test = c.b.node(test.operands[0])
    elif op.offset_dims:
        return None
    while isinstance(test.op, ops.Reshape) or test.op == ops.Reduce("and", (op.index_vector_dim,)):
        test = c.b.node(test.operands[0])
    shape = c.b.type(gather.operands[0]).shape
    limits = [int(str(shape[axis])) - int(str(op.slice_sizes[axis])) for axis in op.start_index_map]
    if not isinstance(test.op, ops.And) or test.type.shape != c.b.type(indices).shape:
        return None
    low, high = (c.b.node(operand) for operand in test.operands)
    fits = (
        low.op == ops.Compare("GE") and high.op == ops.Compare("LE") and low.operands[0] == high.operands[0] == indices
    )
    if not fits or c.b.uniform(low.operands[1]) != 0 or _vector(c, high.operands[1]) not in (limits, limits[:1]):
        return None
    if len(set(limits)) > 1 and len(_vector(c, high.operands[1])) == 1:
        return None
    return c.b.add(op, gather.operands[0], indices)


def _is_no_number(c: Context, position: int) -> bool:
    value = c.b.uniform(position)
    return value is not None and value != value


def _vector(c: Context, position: int) -> list[float]:
    """The values of a constant, or of a vector that is repeated along the other axes."""
    node = c.b.node(position)
    if isinstance(node.op, ops.BroadcastInDim) and node.op.dimensions == (node.type.rank - 1,):
        node = c.b.node(node.operands[0])
    return list(node.op.values) if isinstance(node.op, ops.Constant) else []


def clamp_starts(c: Context, op: ops.Gather, shape: Shape, indices: int) -> int:
    """Start indices for which every block is inside of a tensor of a shape."""
    limits = [int(str(shape[axis])) - int(str(op.slice_sizes[axis])) for axis in op.start_index_map]
    parts = _components(c, _wide(c, indices), op.index_vector_dim, len(limits))
    moved = [
        clamp(c, _like(c, part, 0), part, _like(c, part, limit)) for part, limit in zip(parts, limits, strict=True)
    ]
    return _join(c, moved, op.index_vector_dim, c.b.type(indices).shape)


def drop_outside_blocks(c: Context, op: ops.Scatter, shape: Shape, indices: int, updates: int) -> tuple[int, int]:
    """Indices and updates without the blocks that are not wholly inside of a tensor of a shape."""
    blocks = _blocks(c, op, updates, len(shape))
    limits = [int(str(shape[axis])) - blocks[axis] for axis in op.scatter_dims_to_operand_dims]
    if c.is_whole or op.kind != "sum":
        if all(blocks[axis] == 1 for axis in op.scatter_dims_to_operand_dims):
            return indices, updates
        parts, every = _held_inside(c, op, indices, limits)
        ends = [int(str(shape[axis])) for axis in op.scatter_dims_to_operand_dims]
        kept = [_choose(c, every, part, end) for part, end in zip(parts, ends, strict=True)]
        return _join(c, kept, op.index_vector_dim, c.b.type(indices).shape), updates
    # Of a device: zero is added at the start of its part of a tensor.
    parts, every = _held_inside(c, op, indices, limits)
    kept = [_choose(c, every, part, 0) for part in parts]
    moved = _join(c, kept, op.index_vector_dim, c.b.type(indices).shape)
    return moved, _mask(c, op, every, updates)


def _blocks(c: Context, op: ops.Scatter, updates: int, rank: int) -> list[int]:
    """The sizes of the block that one update covers."""
    window = iter(int(str(c.b.type(updates).shape[axis])) for axis in op.update_window_dims)
    absent = (*op.inserted_window_dims, *op.input_batching_dims)
    return [1 if axis in absent else next(window) for axis in range(rank)]


def _held_inside(c: Context, op: ops.Scatter, indices: int, limits: Sequence[int]) -> tuple[list[int], int]:
    """The components of indices, wide enough for all sizes, and whether all of one index are within limits."""
    parts = _components(c, _wide(c, indices), op.index_vector_dim, len(limits))
    valid = [
        condition
        for part, limit in zip(parts, limits, strict=True)
        for condition in (
            rb.compare(c.b, "GE", part, _like(c, part, 0)),
            rb.compare(c.b, "LE", part, _like(c, part, limit)),
        )
    ]
    every = valid[0]
    for condition in valid[1:]:
        every = c.b.add(ops.And(), every, condition)
    return parts, every


def _choose(c: Context, condition: int, x: int, otherwise: int) -> int:
    return rb.select(c.b, condition, x, _like(c, x, otherwise))


def _wide(c: Context, indices: int) -> int:
    """Indices in a dtype that holds the size of every tensor."""
    return rb.convert(c.b, indices, DType.I64) if c.b.type(indices).dtype in _NARROW else indices


_NARROW = (DType.I8, DType.U8, DType.I16, DType.U16)


def _mask(c: Context, op: ops.Scatter, valid: int, updates: int) -> int:
    """Updates with zero where an index is out of range; the axes of indices are those that no window has."""
    shape = c.b.type(updates).shape
    axes = [axis for axis in range(len(shape)) if axis not in op.update_window_dims]
    condition = c.b.add(ops.BroadcastInDim(shape, tuple(axes)), valid)
    return rb.select(c.b, condition, updates, _like(c, updates, 0))


def _components(c: Context, indices: int, axis: int, count: int) -> list[int]:
    """The start index along every axis that is indexed, each without the axis of index vectors."""
    shape = c.b.type(indices).shape
    if axis == len(shape):
        return [indices]
    rest = (*shape[:axis], *shape[axis + 1 :])
    return [rb.reshape(c.b, rb.slice_axis(c.b, indices, axis, k, k + 1), rest) for k in range(count)]


def _join(c: Context, parts: Sequence[int], axis: int, shape: Shape) -> int:
    if axis == len(shape):
        return parts[0]
    longer = (*shape[:axis], 1, *shape[axis + 1 :])
    return rb.concatenate(c.b, [rb.reshape(c.b, part, longer) for part in parts], axis)


def _like(c: Context, x: int, value: int) -> int:
    kind = c.b.type(x)
    return rb.splat(c.b, value if kind.dtype is not DType.BOOL else bool(value), kind.shape, kind.dtype)
