"""Indices out of range: HLO moves a block that is read inside, and drops a block that is written.

A program on whole tensors is taken to stay in range, which the verdict says. A device reads and writes its own part of
a table at indices of the whole one, and masks what is not its own: there the rule of HLO counts, and is written out.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.frontends.hlo.context import IN_RANGE, Context
from rewright.ir.dims import Shape
from rewright.ir.types import DType
from rewright.ops.reference import building as rb


def clamped(c: Context, low: int, x: int, high: int) -> int:
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


def counts_from_end(c: Context, condition: int, on_true: int, on_false: int) -> bool:
    """Whether a choice is ``x + n where x < 0 else x`` of an input: an index of Python, taken as not negative."""
    test, moved = c.b.node(condition), c.b.node(on_true)
    if not isinstance(test.op, ops.Compare) or test.op.direction != "LT" or not isinstance(moved.op, ops.Add):
        return False
    if test.operands[0] != on_false or c.b.uniform(test.operands[1]) != 0:
        return False
    own = [operand for operand in moved.operands if operand != on_false]
    if on_false not in moved.operands or len(own) != 1 or not c.b.uniform(own[0]):
        return False
    node = c.b.node(on_false)
    while isinstance(node.op, _MOVES):
        node = c.b.node(node.operands[0])
    if not isinstance(node.op, ops.Input):
        return False
    c.assume(f"the indices in input {node.op.label!r} are not negative")
    return True


_MOVES = (ops.BroadcastInDim, ops.Reshape, ops.Transpose, ops.Slice, ops.AllGather, ops.Convert)


def inside(c: Context, op: ops.Gather, shape: Shape, indices: int) -> int:
    """Start indices for which every block is inside of a tensor of a shape."""
    if c.is_whole:
        c.assume(IN_RANGE)
        return indices
    limits = [int(str(shape[axis])) - int(str(op.slice_sizes[axis])) for axis in op.start_index_map]
    parts = _components(c, indices, op.index_vector_dim, len(limits))
    moved = [
        clamped(c, _like(c, part, 0), part, _like(c, part, limit)) for part, limit in zip(parts, limits, strict=True)
    ]
    return _joined(c, moved, op.index_vector_dim, indices)


def dropped(c: Context, op: ops.Scatter, shape: Shape, indices: int, updates: int) -> tuple[int, int]:
    """Indices and updates with zero added at the start of the tensor in place of every block that is out of range."""
    if c.is_whole or op.kind != "sum":
        c.assume(IN_RANGE)
        return indices, updates
    window = iter(int(str(c.b.type(updates).shape[axis])) for axis in op.update_window_dims)
    absent = (*op.inserted_window_dims, *op.input_batching_dims)
    blocks = [1 if axis in absent else next(window) for axis in range(len(shape))]
    limits = [int(str(shape[axis])) - blocks[axis] for axis in op.scatter_dims_to_operand_dims]
    parts = _components(c, indices, op.index_vector_dim, len(limits))
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
    kept = [rb.select(c.b, every, part, _like(c, part, 0)) for part in parts]
    return _joined(c, kept, op.index_vector_dim, indices), _masked(c, op, every, updates)


def _masked(c: Context, op: ops.Scatter, valid: int, updates: int) -> int:
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


def _joined(c: Context, parts: Sequence[int], axis: int, like: int) -> int:
    shape = c.b.type(like).shape
    if axis == len(shape):
        return parts[0]
    longer = (*shape[:axis], 1, *shape[axis + 1 :])
    return rb.concatenate(c.b, [rb.reshape(c.b, part, longer) for part in parts], axis)


def _like(c: Context, x: int, value: int) -> int:
    kind = c.b.type(x)
    return rb.splat(c.b, value if kind.dtype is not DType.BOOL else bool(value), kind.shape, kind.dtype)
