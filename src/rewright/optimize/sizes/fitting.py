"""A graph whose sizes are symbols, from captures of a program at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from rewright import ops
from rewright.ir.digest import digest
from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.sizes import with_sizes
from rewright.ir.types import TensorType
from rewright.ops.leaf import splat
from rewright.optimize.sizes.alike import NotAlike, Samples, interpolate, merge, tuples_of
from rewright.optimize.sizes.counting import add_count, fold_counts


def fit_graph(samples: Samples, capture: Callable[[Mapping[str, int]], Graph]) -> Graph:
    """The graph that is what ``capture`` finds at all tuples of sizes of the samples.

    At other sizes a program may be another one, which :func:`is_at` tells. Raises NotAlike where there is no such
    graph.
    """
    graphs = [capture(sizes) for sizes in tuples_of(samples)]
    first = graphs[0]
    if any((g.inputs, g.outputs, len(g)) != (first.inputs, first.outputs, len(first)) for g in graphs):
        raise NotAlike("at other sizes the program has other operators")
    builder = GraphBuilder(first.name)
    made: list[int] = []
    for nodes in zip(*(g.nodes for g in graphs), strict=True):
        made.append(_add(builder, samples, nodes, made))
    for name, position in first.outputs.items():
        builder.output(name, made[position])
    found = builder.build()
    if not all(is_at(found, sizes, graph) for sizes, graph in zip(tuples_of(samples), graphs, strict=True)):
        raise NotAlike("at other sizes the program is another one")
    return found


def is_at(graph: Graph, sizes: Mapping[str, int], captured: Graph) -> bool:
    """Whether a graph with numbers for its symbols is what was captured."""
    try:
        fixed = with_sizes(graph, sizes)
    except RewrightError:  # it is no program at these
        return False
    return digest(fold_counts(captured)) == digest(fold_counts(fixed))


def _add(builder: GraphBuilder, samples: Samples, nodes: Sequence[Node], made: Sequence[int]) -> int:
    """Add the node that all of these are."""

    def number(values: Sequence[Dim]) -> Dim:
        return interpolate(samples, values)

    first = nodes[0]
    if any(node.operands != first.operands for node in nodes):
        raise NotAlike("at other sizes operators read other tensors")
    values = [splat(node.op) for node in nodes]
    if None not in values and any(repr(value) != repr(values[0]) for value in values):
        return _add_number(builder, number, nodes, cast("Sequence[float]", values))
    if any(ops.is_table(node.op) and repr(node.op) != repr(first.op) for node in nodes):
        raise NotAlike("at other sizes the program has other tables of values")
    op = cast("Operator", merge([node.op for node in nodes], number))
    if isinstance(op, ops.Input):
        builder.span = first.span
        return builder.input(op.label, op)
    return builder.add(op, *(made[p] for p in first.operands), span=first.span)


def _add_number(
    builder: GraphBuilder, number: Callable[[Sequence[Dim]], Dim], nodes: Sequence[Node], values: Sequence[float]
) -> int:
    """Add a constant that differs with the sizes, as a count of elements does."""
    if not all(float(value).is_integer() for value in values):
        raise NotAlike(f"at one size there is {values[0]}, and at another one {values[-1]}")
    kind = cast("TensorType", merge([node.type for node in nodes], number))
    count = add_count(builder, number([int(value) for value in values]), kind.dtype)
    return count if not kind.shape else builder.add(ops.BroadcastInDim(kind.shape, ()), count)


__all__ = ["fit_graph", "is_at"]
