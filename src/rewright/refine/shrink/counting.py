"""Which axis the values of integer tensors are positions along."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ops.counts import Counts
from rewright.refine.shrink.space import AxisSpace

MOST_TABLE_VALUES = 64
"""Tables with more different integers keep the axis that they count."""


class Values(Counts):
    """The entries for values of one graph in a space of axes."""

    def __init__(self, space: AxisSpace, graph: Graph, offsets: list[int]) -> None:
        self.space, self.graph, self.offsets = space, graph, offsets

    def entry(self, position: int) -> int:
        """The entry for the values of a node."""
        return self.offsets[position] + self.graph.nodes[position].type.rank

    def counts(self, position: int) -> bool:
        """Whether the values of a node are integers."""
        return self.graph.nodes[position].type.dtype.is_integer

    def same(self, tensors: Sequence[int], /) -> None:
        linked = [self.entry(p) for p in tensors if self.counts(p)]
        for other in linked[1:]:
            self.space.link(linked[0], other)

    def index(self, places: int, tensor: int, axis: int, /) -> None:
        if self.counts(places):
            self.space.link(self.entry(places), self.offsets[tensor] + axis % self.graph.nodes[tensor].type.rank)

    def number(self, result: int, tensor: int, axis: int, /) -> None:
        self.index(result, tensor, axis)

    def constant(self, result: int, numbers: Sequence[float | int | bool], /) -> None:
        if self.counts(result):
            values = set(map(int, numbers))
            if len(values) > MOST_TABLE_VALUES:
                self.space.fix((self.entry(result),))
            else:
                self.space.constants.extend((self.entry(result), value) for value in sorted(values) if value > 0)

    def mix(self, result: int, operands: Sequence[int], /) -> None:
        if self.counts(result):
            self.space.fix(map(self.entry, (result, *operands)))

    def multiply(self, result: int, operands: Sequence[int], /) -> None:
        """A product with a flag counts what the other factor counts; other products keep everything."""
        counted = [p for p in operands if self.counts(p) and not self._is_flag(p)]
        if len(counted) < len(operands):
            self.same([result, counted[0] if counted else operands[1]])
        else:
            self.mix(result, operands)

    def _is_flag(self, position: int) -> bool:
        node = self.graph.nodes[position]
        while isinstance(node.op, ops.View):
            node = self.graph.nodes[node.operands[0]]
        if isinstance(node.op, ops.Constant):
            return set(node.op.values) <= {0, 1}
        return isinstance(node.op, ops.Convert) and not self.counts(node.operands[0])

    def total(self, result: int, operand: int, axes: Sequence[int], /) -> None:
        """Sums of flags along an axis are positions along it."""
        if self.counts(result) and not self._is_flag(operand):
            self.mix(result, [operand])
        elif len(axes) == 1:
            self.number(result, operand, axes[0])
