"""Tables of integers that a program holds, such as where segments end, and what it computes of them alone."""

from __future__ import annotations

from dataclasses import replace

from rewright.ir.graph import Graph
from rewright.ops import Input, is_table
from rewright.ops.reference.simplifying import SimplifyingBuilder


def with_known_tables(graph: Graph) -> Graph:
    """The graph with what it computes of tables of integers, such as where segments end, as tables."""
    if not any(is_table(node.op) and node.type.dtype.is_integer for node in graph.nodes):
        return graph
    b, places = SimplifyingBuilder(graph.name, computes_tables=True), list[int]()
    for node in graph.nodes:
        b.span = node.span
        if isinstance(node.op, Input):
            places.append(b.input(node.op.label, node.op))
        else:
            places.append(b.add(node.op, *(places[p] for p in node.operands)))
    for name, position in graph.outputs.items():
        b.output(name, places[position])
    return replace(b.build(), metadata=graph.metadata)
