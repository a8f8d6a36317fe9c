"""The graphs of a pair of programs, written again at small sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewright import ops
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.placement import AxisRuns, Placement
from rewright.ir.types import TensorType
from rewright.ops.resizing import with_sizes
from rewright.ops.sizes import Attributes
from rewright.refine.shrink.solving import Solution
from rewright.refine.shrink.space import At, number
from rewright.refine.shrink.units import Scale


@dataclass(frozen=True, slots=True)
class Failure:
    """A node that is not well typed at the small sizes, with the axes that it touches."""

    axes: tuple[int, ...]


class Rewriter:
    """Writes the nodes of one graph at the sizes of a solution."""

    def __init__(
        self, graph: Graph, offsets: Sequence[int], attributes: Sequence[Attributes], solution: Solution
    ) -> None:
        self.graph, self.offsets, self.attributes, self.solution = graph, offsets, attributes, solution

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
                failures.append(Failure(self._touched_axes(position, node)))
            nodes.append(Node(op, node.operands, expected, node.span))
        return replace(self.graph, nodes=tuple(nodes)), failures

    def scale(self, position: int, axis: int) -> Scale:
        """The scale of an axis of a node."""
        return self.solution.scale(self.offsets[position] + axis)

    def operator(self, position: int, node: Node, expected: TensorType) -> Operator:
        """The operator with the attributes that it has at the small sizes."""
        if isinstance(node.op, ops.Constant):
            return self._constant(node.op, position, expected)
        return with_sizes(node.op, self.attributes[position], self.small)

    def small(self, at: At) -> int:
        """A position at the small sizes, or a length, which may be negative, as in padding."""
        scaled = self.solution.scale(at.axis)(abs(at.position))
        return scaled if at.position >= 0 else -scaled

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

    def _touched_axes(self, position: int, node: Node) -> tuple[int, ...]:
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
