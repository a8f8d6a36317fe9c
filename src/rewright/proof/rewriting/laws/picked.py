"""What is read at the places of a choice from the row that was chosen from: the values of the choice.

A router may take the weights of the chosen experts from its choice, or look them up at the places that it gave. Both
are the same elements, whatever they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.reading import keeps_places


@dataclass(frozen=True)
class Picked:
    """``x[top_k(x).indices]`` is ``top_k(x).values``, row by row."""

    graph: Graph
    known: Sequence[Facts]

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """The values of the choice whose places a node reads at."""
        node = self.graph.nodes[position]
        if not reads_rows(node):
            return None
        source, at = node.operands
        if self.graph.nodes[at].type.shape != node.type.shape:
            return None
        while isinstance(self.graph.nodes[at].op, ops.Convert) and keeps_places(self.graph, self.known, at):
            (at,) = self.graph.nodes[at].operands
        op = self.graph.nodes[at].op
        if not isinstance(op, ops.TopK) or op.result != "indices" or self.graph.nodes[at].operands != (source,):
            return None
        return builder.add(replace(op, result="values"), places[source])


def reads_rows(node: Node) -> bool:
    """Whether a node reads elements of every row of a tensor at places along the last axis that are its own."""
    op = node.op
    if not isinstance(op, ops.Gather):
        return False
    last = node.type.rank - 1
    rows = tuple(range(last))
    batched = op.operand_batching_dims == op.start_indices_batching_dims == rows
    plain = not op.offset_dims and op.collapsed_slice_dims == op.start_index_map == (last,)
    return batched and plain and op.index_vector_dim in (last + 1, last + 2)
