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
    along,
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
        if isinstance(node.op, ops.Gather):
            data, at = node.operands
            shape = self.graph.nodes[data].type.shape
            times = self._times(at, shape[0]) if self._reads_rows(node.op, data, at) else None
            if times is None or node.type.shape[1:] != shape[1:]:
                return None
            wide = (shape[0], times, *shape[1:])
            spread = ops.BroadcastInDim(wide, (0, *range(2, len(wide))))
            return builder.add(ops.Reshape(node.type.shape), builder.add(spread, places[data]))
        if isinstance(node.op, ops.Scatter) and node.op.kind == "sum":
            base, at, updates = node.operands
            shape = node.type.shape
            times = self._times(at, shape[0]) if self._adds_rows(node.op, base, at) else None
            is_empty = number(self.graph, self.known, base) == 0
            if times is None or not is_empty or self.graph.nodes[updates].type.shape[1:] != shape[1:]:
                return None
            wide = (shape[0], times, *shape[1:])
            return builder.add(ops.Reduce("sum", (1,)), builder.add(ops.Reshape(wide), places[updates]))
        return None

    def _reads_rows(self, op: ops.Gather, data: int, at: int) -> bool:
        """Whether rows are read at a list, each as a whole, or element by element at one place for all of it."""
        kind, other = self.graph.nodes[data].type, self.graph.nodes[at].type
        rest = tuple(range(1, kind.rank))
        batches = op.operand_batching_dims == op.start_indices_batching_dims == rest
        single = (
            op.start_index_map == op.collapsed_slice_dims == (0,) and op.index_vector_dim == other.rank == kind.rank
        )
        return (batches and single) or (reads_whole_rows(op, kind) and is_list(other, op.index_vector_dim))

    def _adds_rows(self, op: ops.Scatter, base: int, at: int) -> bool:
        """The same of rows that are added."""
        kind, other = self.graph.nodes[base].type, self.graph.nodes[at].type
        rest = tuple(range(1, kind.rank))
        batches = op.input_batching_dims == op.scatter_indices_batching_dims == rest
        first = op.scatter_dims_to_operand_dims == op.inserted_window_dims == (0,)
        single = first and not op.update_window_dims and op.index_vector_dim == other.rank == kind.rank
        return (batches and single) or (writes_whole_rows(op, kind) and is_list(other, op.index_vector_dim))

    def _times(self, position: int, rows: object) -> int | None:
        """How often indices along the first axis name each of so many rows, all of them in order."""
        found = along(self.graph, self.known, position, 0)
        node = None if found is None else self.graph.nodes[core(self.graph, self.known, found)]
        if node is None or not isinstance(rows, int) or not isinstance(node.op, ops.Divide):
            return None
        counted = self.graph.nodes[core(self.graph, self.known, node.operands[0])]
        times = number(self.graph, self.known, node.operands[1])
        is_index = isinstance(counted.op, ops.Iota) and counted.type.rank == 1 and counted.type.dtype in LONG
        if node.type.dtype not in LONG or times is None or times < 1 or times != int(times) or not is_index:
            return None
        return int(times) if node.type.shape == (rows * int(times),) else None


__all__ = ["Repeating"]
