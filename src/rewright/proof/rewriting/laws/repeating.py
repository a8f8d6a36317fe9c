"""Rows that are read several times each, or added up by several, one behind the other.

``x[arange(n) // k]`` is every row of ``x``, ``k`` times, and what is added at ``arange(n) // k`` is summed by ``k``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.reading import (
    LONG,
    core,
    is_list,
    number,
    reads_whole_rows,
    writes_whole_rows,
)


@dataclass(frozen=True)
class Repeating:
    """``x[arange(n) // k]`` is ``repeat_interleave(x, k)``, and the sum of updates there one of ``k`` at a time."""

    graph: Graph
    known: Sequence[Facts]

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """Rows that are repeated, or summed, without indices."""
        node = self.graph.nodes[position]
        if isinstance(node.op, ops.Gather) and reads_whole_rows(node.op, self.graph.nodes[node.operands[0]].type):
            data, at = node.operands
            shape = self.graph.nodes[data].type.shape
            times = self._times(at, node.op.index_vector_dim, shape[0])
            if times is None or node.type.shape[1:] != shape[1:]:
                return None
            wide = (shape[0], times, *shape[1:])
            spread = ops.BroadcastInDim(wide, (0, *range(2, len(wide))))
            return builder.add(ops.Reshape(node.type.shape), builder.add(spread, places[data]))
        if isinstance(node.op, ops.Scatter) and writes_whole_rows(node.op, node.type) and node.op.kind == "sum":
            base, at, updates = node.operands
            shape = node.type.shape
            times = self._times(at, node.op.index_vector_dim, shape[0])
            is_empty = number(self.graph, self.known, base) == 0
            if times is None or not is_empty or self.graph.nodes[updates].type.shape[1:] != shape[1:]:
                return None
            wide = (shape[0], times, *shape[1:])
            return builder.add(ops.Reduce("sum", (1,)), builder.add(ops.Reshape(wide), places[updates]))
        return None

    def _times(self, position: int, vector_dim: int, rows: object) -> int | None:
        """How often a list of indices names each of so many rows, all of them in order; None for other lists."""
        kind = self.graph.nodes[position].type
        node = self.graph.nodes[core(self.graph, self.known, position)]
        if not is_list(kind, vector_dim) or not isinstance(rows, int) or not isinstance(node.op, ops.Divide):
            return None
        if node.type.dtype not in LONG:
            return None
        counted = self.graph.nodes[core(self.graph, self.known, node.operands[0])]
        times = number(self.graph, self.known, node.operands[1])
        is_index = isinstance(counted.op, ops.Iota) and counted.type.rank == 1 and counted.type.dtype in LONG
        if times is None or times < 1 or times != int(times) or not is_index:
            return None
        return int(times) if kind.shape[0] == rows * int(times) else None


__all__ = ["Repeating"]
