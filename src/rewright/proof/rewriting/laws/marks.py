"""Rows in which the places that a choice gave are marked: by a number written there, or by a comparison with them."""

from __future__ import annotations

from collections.abc import Sequence

from rewright import ops
from rewright.analysis.evenness import Evenness
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph, Node
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.numbering import is_never_twice
from rewright.proof.rewriting.laws.reading import number, places_on, writes_rows


class Marks:
    """How many elements of every row are not zero, at least."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self._evenness = Evenness(graph)

    def least(self, node: Node) -> int:
        """How many elements of a row hold where a row marks the places that another ``top_k`` chose."""
        last = node.type.rank - 1
        if isinstance(node.op, ops.Scatter):
            return self._write(node.op, node.operands, node.type.shape)
        if not isinstance(node.op, ops.Compare) or node.op.direction != "EQ":
            return 0
        for counted, other in (node.operands, node.operands[::-1]):
            op = self._graph.nodes[counted].op
            is_counted = isinstance(op, ops.Iota) and op.dimension == last
            is_place = is_counted and places_on(self._graph, self._known, other) == node.type.shape[last]
            if is_place and self._evenness.is_even(other, (last,)):
                return 1
        return 0

    def _write(self, op: ops.Scatter, operands: Sequence[int], shape: Shape) -> int:
        """How many elements of a row are not zero after a number was written at places of it, no two of them one."""
        _, places, updates = operands
        count = self._graph.nodes[updates].type.shape[-1] if writes_rows(op, len(shape)) else 0
        is_own = op.kind == "replace" and places_on(self._graph, self._known, places) == shape[-1]
        is_marked = is_own and is_never_twice(self._graph, self._known, op, places)
        return count if isinstance(count, int) and is_marked and number(self._graph, self._known, updates) else 0
