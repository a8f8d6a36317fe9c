"""The graphs of a pair of programs, written again at small sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from rewright import ops
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.placement import AxisRuns, Placement
from rewright.ir.types import TensorType
from rewright.refine.shrink.relations import number
from rewright.refine.shrink.solving import Solution
from rewright.refine.shrink.units import Scale


@dataclass(frozen=True, slots=True)
class Failure:
    """A node that is not well typed at the small sizes, with the axes that it touches."""

    axes: tuple[int, ...]


class Rewriter:
    """Writes the nodes of one graph at the sizes of a solution."""

    def __init__(self, graph: Graph, offsets: Sequence[int], solution: Solution) -> None:
        self.graph, self.offsets, self.solution = graph, offsets, solution

    def rewrite(self) -> tuple[Graph, list[Failure]]:
        """The small graph; where nodes do not fit, all of them instead of a useful graph."""
        nodes: list[Node] = []
        failures: list[Failure] = []
        for position, node in enumerate(self.graph.nodes):
            shape = tuple(self.scale(position, axis)(number(n)) for axis, n in enumerate(node.type.shape))
            expected = node.type.with_shape(shape)
            op = self.operator(position, node, expected)
            try:
                found = op.infer([nodes[p].type for p in node.operands])
            except TypeMismatch:
                found = None
            if found != expected:
                failures.append(Failure(self._touched(position, node)))
            nodes.append(Node(op, node.operands, expected, node.span))
        return replace(self.graph, nodes=tuple(nodes)), failures

    def scale(self, position: int, axis: int) -> Scale:
        """The scale of an axis of a node."""
        return self.solution.scale(self.offsets[position] + axis)

    def operator(self, position: int, node: Node, expected: TensorType) -> Operator:
        """The operator with the attributes that it has at the small sizes."""
        op = node.op
        if isinstance(op, ops.Constant):
            return self._constant(op, position, expected)
        if isinstance(op, ops.Leaf):
            return replace(cast(Any, op), tensor=expected)
        if isinstance(op, ops.BroadcastInDim | ops.Reshape):
            return replace(op, shape=expected.shape)
        if isinstance(op, ops.DynamicSlice):
            return replace(op, sizes=expected.shape)
        rewrite = _REWRITES.get(type(op))
        return rewrite(self, node, op) if rewrite else op

    def scale_each(self, source: int, numbers: Sequence[Any]) -> tuple[int, ...]:
        """One length or position for each axis of a node, at the small sizes."""
        return tuple(self.scale_signed(source, axis, number(n)) for axis, n in enumerate(numbers))

    def scale_signed(self, source: int, axis: int, length: int) -> int:
        """A length that may be negative, as in padding."""
        scaled = self.scale(source, axis)(abs(length))
        return scaled if length >= 0 else -scaled

    def _constant(self, op: ops.Constant, position: int, expected: TensorType) -> ops.Constant:
        values = op.values
        if len(values) > 1 and expected.shape != op.tensor.shape:
            table = np.array(values, dtype=object).reshape([number(n) for n in op.tensor.shape])
            kept = [
                [self.scale(position, axis).source(i) for i in range(number(size))]
                for axis, size in enumerate(expected.shape)
            ]
            values = tuple(table[np.ix_(*kept)].reshape(-1).tolist())
        if expected.dtype.is_integer:
            entry = self.offsets[position] + expected.rank
            values = tuple(self.solution.value(entry, int(value)) for value in values)
        return ops.Constant(expected, values)

    def _touched(self, position: int, node: Node) -> tuple[int, ...]:
        found: list[int] = []
        for p in (position, *node.operands):
            found.extend(range(self.offsets[p], self.offsets[p] + self.graph.nodes[p].type.rank))
        return tuple(found)


def small_placement(placement: Placement, scales: Sequence[Scale]) -> Placement:
    """A placement of a tensor whose axes became smaller by these scales."""

    def runs(scale: Scale, own: AxisRuns) -> AxisRuns:
        return tuple((scale(number(low)), scale(number(length))) for low, length in own)

    return replace(
        placement,
        runs=tuple(tuple(runs(s, own) for s, own in zip(scales, rank, strict=True)) for rank in placement.runs),
    )


def _slice(rewriter: Rewriter, node: Node, op: ops.Slice) -> Operator:
    source = node.operands[0]
    return replace(op, start=rewriter.scale_each(source, op.start), limit=rewriter.scale_each(source, op.limit))


def _pad(rewriter: Rewriter, node: Node, op: ops.Pad) -> Operator:
    source = node.operands[0]
    return replace(op, low=rewriter.scale_each(source, op.low), high=rewriter.scale_each(source, op.high))


def _window(rewriter: Rewriter, node: Node, op: ops.ReduceWindow) -> Operator:
    source = node.operands[0]
    low = rewriter.scale_each(source, [pair[0] for pair in op.padding])
    high = rewriter.scale_each(source, [pair[1] for pair in op.padding])
    return replace(op, window=rewriter.scale_each(source, op.window), padding=tuple(zip(low, high, strict=True)))


def _gather(rewriter: Rewriter, node: Node, op: ops.Gather) -> Operator:
    return replace(op, slice_sizes=rewriter.scale_each(node.operands[0], op.slice_sizes))


def _exchange(rewriter: Rewriter, node: Node, op: ops.AllToAll) -> Operator:
    scale = rewriter.scale(node.operands[0], op.split_dimension)
    send = op.send_splits and tuple(scale(number(n)) for n in op.send_splits)
    receive = op.receive_splits and tuple(scale(number(n)) for n in op.receive_splits)
    return replace(op, send_splits=send, receive_splits=receive)


_REWRITES: dict[type, Callable[[Rewriter, Node, Any], Operator]] = {
    ops.Slice: _slice,
    ops.Pad: _pad,
    ops.ReduceWindow: _window,
    ops.Gather: _gather,
    ops.AllToAll: _exchange,
}
