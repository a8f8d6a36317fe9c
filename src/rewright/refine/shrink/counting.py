"""Which axis the values of integer tensors are positions along."""

from __future__ import annotations

from rewright import ops
from rewright.interp.counting import index_uses, linked_values
from rewright.ir.graph import Graph, Node
from rewright.refine.shrink.space import AxisSpace

MOST_TABLE_VALUES = 64
"""Tables with more different integers keep the axis that they count."""


class Values:
    """The entries for values of one graph in a space of axes."""

    def __init__(self, space: AxisSpace, graph: Graph, offsets: list[int]) -> None:
        self.space, self.graph, self.offsets = space, graph, offsets

    def entry(self, position: int) -> int:
        """The entry for the values of a node."""
        return self.offsets[position] + self.graph.nodes[position].type.rank

    def counts(self, position: int) -> bool:
        """Whether the values of a node are integers."""
        return self.graph.nodes[position].type.dtype.is_integer

    def relate(self, position: int) -> None:
        """Record what a node says about the integers that it reads and makes."""
        node = self.graph.nodes[position]
        for use in index_uses(node, position):
            if self.counts(use.indices):
                self.space.link(self.entry(use.indices), self.offsets[use.indexed] + use.axis)
        if self.counts(position):
            self._made(node, position)
        linked = [p for p in linked_values(node, position) if self.counts(p)]
        for other in linked[1:]:
            self.space.link(self.entry(linked[0]), self.entry(other))

    def _made(self, node: Node, position: int) -> None:
        op, own = node.op, self.entry(position)
        if isinstance(op, ops.Iota):
            self.space.link(own, self.offsets[position] + op.dimension)
        elif isinstance(op, ops.Constant):
            self._constant(op, own)
        elif isinstance(op, ops.Sort | ops.TopK) and op.result == "indices":
            axis = op.dimension if isinstance(op, ops.Sort) else node.type.rank - 1
            self.space.link(own, self.offsets[node.operands[0]] + axis)
        elif isinstance(op, ops.Multiply):
            self._product(node, own)
        elif isinstance(op, ops.Binary) and not isinstance(op, ops.Linear | ops.Extremum):
            self.space.fix([own, *(self.entry(p) for p in node.operands)])
        elif isinstance(op, ops.Reduce | ops.ReduceWindow) and op.kind == "sum":
            self._count(node, own)

    def _constant(self, op: ops.Constant, own: int) -> None:
        values = {int(value) for value in op.values}
        if len(values) > MOST_TABLE_VALUES:
            self.space.fix((own,))
        else:
            self.space.constants.extend((own, value) for value in sorted(values) if value > 0)

    def _product(self, node: Node, own: int) -> None:
        """A product with a flag counts what the other factor counts; other products keep everything."""
        for flag, other in ((0, 1), (1, 0)):
            if self._is_flag(node.operands[flag]):
                self.space.link(own, self.entry(node.operands[other]))
                return
        self.space.fix([own, *(self.entry(p) for p in node.operands)])

    def _is_flag(self, position: int) -> bool:
        node = self.graph.nodes[position]
        while isinstance(node.op, ops.View):
            node = self.graph.nodes[node.operands[0]]
        if isinstance(node.op, ops.Constant):
            return set(node.op.values) <= {0, 1}
        return isinstance(node.op, ops.Convert) and not self.counts(node.operands[0])

    def _count(self, node: Node, own: int) -> None:
        """Sums of flags along an axis are positions along it."""
        op, source = node.op, node.operands[0]
        if not self._is_flag(source):
            self.space.fix((own, self.entry(source)))
        elif isinstance(op, ops.Reduce):
            moving = op.dimensions
            if len(moving) == 1:
                self.space.link(own, self.offsets[source] + moving[0])
        elif isinstance(op, ops.ReduceWindow):
            for axis, width in enumerate(op.window):
                if width != 1:
                    self.space.link(own, self.offsets[source] + axis)
