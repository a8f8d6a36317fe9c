"""What is read at the places of a choice from the row that was chosen from: the values of the choice.

A router may take the weights of the chosen experts from its choice, or look them up at the places that it gave.
"""

from __future__ import annotations

from dataclasses import replace

from rewright import ops
from rewright.equiv.building import rebuilt
from rewright.ir.graph import Graph, GraphBuilder, Node


def with_values(graph: Graph) -> Graph:
    """The program with the values of a choice for what is looked up at its own places."""
    chosen = any(isinstance(node.op, ops.TopK) for node in graph.nodes)
    return rebuilt(graph, _made) if chosen and any(reads_rows(node) for node in graph.nodes) else graph


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


def _made(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
    if not reads_rows(node):
        return None
    source, places = operands
    if builder.type(places).shape != node.type.shape:
        return None
    found = builder.node(places)
    while isinstance(found.op, ops.Convert) and builder.type(found.operands[0]).dtype.is_integer:
        found = builder.node(found.operands[0])
    if not isinstance(found.op, ops.TopK) or found.op.result != "indices" or found.operands[0] != source:
        return None
    return builder.add(replace(found.op, result="values"), source)
