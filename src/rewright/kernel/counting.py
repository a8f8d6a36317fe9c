"""How many elements there are of a kind: a program that divides by that is defined where there are any."""

from __future__ import annotations

from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType
from rewright.ops import BroadcastInDim, Convert, CustomCall, Divide, Input, Reduce, Reshape, Select, splat
from rewright.ops.reference import building as rb

PREFIX = "fact:"


def counts(builder: GraphBuilder, graph: Graph, names: dict[str, int]) -> dict[str, None]:
    """Facts that how many elements there are of a kind is not zero, where a program divides by it; and in words."""
    found: dict[str, None] = {}
    live = graph.live()
    for position, node in enumerate(graph.nodes):
        if position not in live or not isinstance(node.op, Divide):
            continue
        source = source_of(graph, node.operands[1])
        count = counted(graph, source)
        if count is not None:
            own = read_into(builder, graph, count, names)
            one = rb.splat_like(builder, 1, own)
            builder.output(f"{PREFIX}{len(builder.build().outputs)}", rb.compare(builder, "GE", own, one))
            found[f"divide at {node.span}: its divisor is not zero"] = None
    return found


def counted(graph: Graph, position: int) -> int | None:
    """A number of elements of a kind, which is a scalar made of inputs; None for others."""
    node = graph.nodes[position]
    while isinstance(node.op, Convert) and not node.type.shape:
        position = node.operands[0]
        node = graph.nodes[position]
    is_sum = isinstance(node.op, Reduce) and node.op.kind == "sum" and not node.type.shape
    if not is_sum or any(isinstance(graph.nodes[p].op, CustomCall) for p in graph.ancestors([position])):
        return None
    term = graph.nodes[source_of(graph, node.operands[0])]
    if isinstance(term.op, Convert) and graph.nodes[term.operands[0]].type.dtype is DType.BOOL:
        return position
    numbers = [splat(graph.nodes[source_of(graph, p)].op) for p in term.operands[1:]]
    return position if isinstance(term.op, Select) and numbers == [1, 0] else None


def source_of(graph: Graph, position: int) -> int:
    """The node whose elements another one has, along more axes."""
    node = graph.nodes[position]
    while isinstance(node.op, BroadcastInDim | Reshape):
        position = node.operands[0]
        node = graph.nodes[position]
    return position


def read_into(builder: GraphBuilder, graph: Graph, position: int, inputs: dict[str, int]) -> int:
    """A node of another graph, and what that is made of, added to a builder."""
    places: dict[int, int] = {}
    for old in sorted(graph.ancestors([position])):
        node = graph.nodes[old]
        if isinstance(node.op, Input):
            if node.op.label not in inputs:
                inputs[node.op.label] = builder.input(node.op.label, node.op)
            places[old] = inputs[node.op.label]
        else:
            places[old] = builder.add(node.op, *(places[p] for p in node.operands))
    return places[position]
