"""Parts of programs as programs of their own, and what is read at an offset."""

from __future__ import annotations

from collections.abc import Mapping

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.optimize.scalars.expressions import Expression
from rewright.optimize.scalars.simplify import as_index
from rewright.terms.index import Index, Quotient, Remainder


def cut_graph(graph: Graph, root: int, names: Mapping[int, str]) -> Graph:
    """What a graph computes at a node from others, which become inputs with names; other inputs are ``t`` and where."""
    builder = GraphBuilder(graph.name)
    places = {p: builder.input(name, ops.Input(name, graph.nodes[p].type)) for p, name in names.items()}
    stack = [root]
    while stack:
        position = stack[-1]
        node = graph.nodes[position]
        waiting = [p for p in node.operands if p not in places]
        if waiting and position not in places:
            stack += waiting
            continue
        stack.pop()
        if position in places:
            continue
        if isinstance(node.op, ops.Input):
            places[position] = builder.input(f"t{position}", ops.Input(f"t{position}", node.type))
        else:
            places[position] = builder.add(node.op, *(places[p] for p in node.operands), span=node.span)
    builder.output("0", places[root])
    return builder.build()


def is_moved(e: Expression, name: str) -> bool:
    """Whether a tensor is read at an offset along a loop, as the later parts of a concatenation are."""
    places = [as_index(a) for a in e.arguments if name in a.free] if e.op == "load" else []
    return any(place is not None and _has_offset(place) for place in places)


def _has_offset(place: Index) -> bool:
    digits = (atom.numerator for atom, _ in place.terms if isinstance(atom, (Quotient, Remainder)))
    return place.constant != 0 or any(_has_offset(inner) for inner in digits)
