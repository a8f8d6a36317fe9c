"""How the axes of one node depend on the axes of its operands, operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rewright import ops
from rewright.ir.dims import Dim
from rewright.ir.graph import Graph, Node
from rewright.refine.shrink.space import AxisSpace


@dataclass(frozen=True, slots=True)
class NodeAxes:
    """The axes of one node and of its operands, as numbers in the space."""

    space: AxisSpace
    graph: Graph
    offsets: Sequence[int]
    node: Node
    position: int

    def result(self) -> range:
        """Axes of the result."""
        return range(self.offsets[self.position], self.offsets[self.position] + self.node.type.rank)

    def operand(self, index: int) -> range:
        """Axes of an operand."""
        position = self.node.operands[index]
        return range(self.offsets[position], self.offsets[position] + self.graph.nodes[position].type.rank)

    def pin_all(self) -> None:
        """Keep every size of this node and its operands."""
        self.space.pin(self.result())
        for index in range(len(self.node.operands)):
            self.space.pin(self.operand(index))


def relate_node(axes: NodeAxes) -> None:
    """Record what the operator of a node says about its axes; unknown operators keep all sizes."""
    op = axes.node.op
    if isinstance(op, ops.Leaf):
        return
    if isinstance(op, ops.Elementwise):
        _same_shape(axes)
        return
    relation = _RELATIONS.get(type(op))
    if relation is None:
        axes.pin_all()
    else:
        relation(axes, op)


def _same_shape(axes: NodeAxes, _: Any = None) -> None:
    for index in range(len(axes.node.operands)):
        for own, other in zip(axes.result(), axes.operand(index), strict=True):
            axes.space.equal(own, other)


def _broadcast(axes: NodeAxes, op: ops.BroadcastInDim) -> None:
    result, sizes = axes.result(), axes.space.sizes
    for source, dimension in zip(axes.operand(0), op.dimensions, strict=True):
        if sizes[source] == sizes[result[dimension]]:
            axes.space.equal(source, result[dimension])


def _reshape(axes: NodeAxes, _: ops.Reshape) -> None:
    axes.space.regroup(axes.operand(0), axes.result())


def _transpose(axes: NodeAxes, op: ops.Transpose) -> None:
    source = axes.operand(0)
    for own, axis in zip(axes.result(), op.permutation, strict=True):
        axes.space.equal(own, source[axis])


def _slice(axes: NodeAxes, op: ops.Slice) -> None:
    for own, source, start, limit, stride in zip(
        axes.result(), axes.operand(0), op.start, op.limit, op.stride, strict=True
    ):
        if stride != 1:
            axes.space.pin((own, source))
        else:
            axes.space.equal(own, source)
            axes.space.cut(source, number(start), number(limit))


def _pad(axes: NodeAxes, op: ops.Pad) -> None:
    for own, source, low, high, interior in zip(
        axes.result(), axes.operand(0), op.low, op.high, op.interior, strict=True
    ):
        if interior:
            axes.space.pin((own, source))
        elif low or high:
            axes.space.link(own, source)
            axes.space.total(own, (number(low), axes.space.sizes[source], number(high)))
        else:
            axes.space.equal(own, source)


def _concatenate(axes: NodeAxes, op: ops.Concatenate) -> None:
    parts: list[int] = []
    for index in range(len(axes.node.operands)):
        for axis, (own, source) in enumerate(zip(axes.result(), axes.operand(index), strict=True)):
            if axis == op.dimension:
                parts.append(axes.space.sizes[source])
                axes.space.link(own, source)
            else:
                axes.space.equal(own, source)
    axes.space.total(axes.result()[op.dimension], parts)


def _dot(axes: NodeAxes, op: ops.DotGeneral) -> None:
    left, right, result = axes.operand(0), axes.operand(1), list(axes.result())
    for a, b in zip(op.lhs_batch + op.lhs_contracting, op.rhs_batch + op.rhs_contracting, strict=True):
        axes.space.equal(left[a], right[b])
    kept = [left[a] for a in op.lhs_batch]
    kept += [left[a] for a in range(len(left)) if a not in op.lhs_batch + op.lhs_contracting]
    kept += [right[b] for b in range(len(right)) if b not in op.rhs_batch + op.rhs_contracting]
    for own, source in zip(result, kept, strict=True):
        axes.space.equal(own, source)


def _reduce(axes: NodeAxes, op: ops.Reduce) -> None:
    kept = [axis for i, axis in enumerate(axes.operand(0)) if i not in op.dimensions]
    for own, source in zip(axes.result(), kept, strict=True):
        axes.space.equal(own, source)


def _window(axes: NodeAxes, op: ops.ReduceWindow) -> None:
    for own, source, width, stride, (low, high) in zip(
        axes.result(), axes.operand(0), op.window, op.strides, op.padding, strict=True
    ):
        if stride != 1:
            axes.space.pin((own, source))
        else:
            axes.space.link(own, source)
            axes.space.cut(source, number(width), number(low), number(high))


def _gather(axes: NodeAxes, op: ops.Gather) -> None:
    source, indices, result = axes.operand(0), axes.operand(1), axes.result()
    window = op.window_axes(len(source))
    _windows(axes.space, [source[a] for a in window], [result[a] for a in op.offset_dims])
    batch = [a for i, a in enumerate(indices) if i != op.index_vector_dim]
    for own, index in zip([a for i, a in enumerate(result) if i not in op.offset_dims], batch, strict=True):
        axes.space.equal(own, index)
    for a, b in zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True):
        axes.space.equal(source[a], indices[b])
    if op.index_vector_dim < len(indices):
        axes.space.pin((indices[op.index_vector_dim],))


def _scatter(axes: NodeAxes, op: ops.Scatter) -> None:
    source, indices, updates = axes.operand(0), axes.operand(1), axes.operand(2)
    for own, other in zip(axes.result(), source, strict=True):
        axes.space.equal(own, other)
    window = op.window_axes(len(source))
    _windows(axes.space, [source[a] for a in window], [updates[a] for a in op.update_window_dims])
    batch = [a for i, a in enumerate(indices) if i != op.index_vector_dim]
    for own, index in zip([updates[a] for a in op.batch_axes(len(updates))], batch, strict=True):
        axes.space.equal(own, index)
    for a, b in zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True):
        axes.space.equal(source[a], indices[b])
    if op.index_vector_dim < len(indices):
        axes.space.pin((indices[op.index_vector_dim],))


def _windows(space: AxisSpace, whole: Sequence[int], part: Sequence[int]) -> None:
    """Windows that cover an axis depend on it; others keep both sizes."""
    for a, b in zip(whole, part, strict=True):
        if space.sizes[a] == space.sizes[b]:
            space.equal(a, b)
        else:
            space.pin((a, b))


def _dynamic_slice(axes: NodeAxes, _: ops.DynamicSlice) -> None:
    for own, source in zip(axes.result(), axes.operand(0), strict=True):
        axes.space.link(own, source)


def _dynamic_update(axes: NodeAxes, _: ops.DynamicUpdateSlice) -> None:
    for own, source, part in zip(axes.result(), axes.operand(0), axes.operand(1), strict=True):
        axes.space.link(own, source)
        axes.space.link(part, source)


def _top(axes: NodeAxes, _: ops.TopK) -> None:
    result, source = axes.result(), axes.operand(0)
    for own, other in zip(result[:-1], source[:-1], strict=True):
        axes.space.equal(own, other)
    axes.space.pin((result[-1], source[-1]))


def _convolution(axes: NodeAxes, op: ops.Convolution) -> None:
    source, kernel, result = axes.operand(0), axes.operand(1), axes.result()
    axes.space.equal(source[0], result[0])
    axes.space.pin([*source[2:], *kernel[2:], *result[2:]])
    if op.feature_groups == 1:
        axes.space.equal(source[1], kernel[1])
        axes.space.equal(kernel[0], result[1])
    else:
        axes.space.pin((source[1], kernel[0], kernel[1], result[1]))


def _gathered(axes: NodeAxes, op: ops.AllGather) -> None:
    _resized(axes, op.dimension)
    part = axes.space.sizes[axes.operand(0)[op.dimension]]
    axes.space.total(axes.result()[op.dimension], [part] * len(op.groups[0]))


def _scattered(axes: NodeAxes, op: ops.ReduceScatter) -> None:
    _resized(axes, op.dimension)
    part = axes.space.sizes[axes.result()[op.dimension]]
    axes.space.total(axes.operand(0)[op.dimension], [part] * len(op.groups[0]))


def _exchange(axes: NodeAxes, op: ops.AllToAll) -> None:
    _resized(axes, op.split_dimension, op.concat_dimension)
    source, result, count = axes.operand(0), axes.result(), len(op.groups[0])
    even = axes.space.sizes[source[op.split_dimension]] // count
    sends = [number(size) for size in op.send_splits] if op.send_splits is not None else [even] * count
    axes.space.total(source[op.split_dimension], sends)
    even = axes.space.sizes[result[op.concat_dimension]] // count
    receives = [number(size) for size in op.receive_splits] if op.receive_splits is not None else [even] * count
    axes.space.total(result[op.concat_dimension], receives)


def _resized(axes: NodeAxes, *dimensions: int) -> None:
    for axis, (own, source) in enumerate(zip(axes.result(), axes.operand(0), strict=True)):
        if axis in dimensions:
            axes.space.link(own, source)
        else:
            axes.space.equal(own, source)


def number(size: Dim) -> int:
    """A size that is known to be a number."""
    assert isinstance(size, int)
    return size


_RELATIONS: dict[type, Callable[[NodeAxes, Any], None]] = {
    ops.BroadcastInDim: _broadcast,
    ops.Reshape: _reshape,
    ops.Transpose: _transpose,
    ops.Slice: _slice,
    ops.Pad: _pad,
    ops.Concatenate: _concatenate,
    ops.Reverse: _same_shape,
    ops.DotGeneral: _dot,
    ops.Reduce: _reduce,
    ops.ReduceWindow: _window,
    ops.Gather: _gather,
    ops.Scatter: _scatter,
    ops.DynamicSlice: _dynamic_slice,
    ops.DynamicUpdateSlice: _dynamic_update,
    ops.Sort: _same_shape,
    ops.TopK: _top,
    ops.Convolution: _convolution,
    ops.AllReduce: _same_shape,
    ops.AllGather: _gathered,
    ops.ReduceScatter: _scattered,
    ops.AllToAll: _exchange,
    ops.CollectivePermute: _same_shape,
    ops.CollectiveBroadcast: _same_shape,
    ops.Send: _same_shape,
}
