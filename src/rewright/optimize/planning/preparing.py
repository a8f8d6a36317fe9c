"""What a graph has to be before it is planned: one axis a reduction, no dead nodes, nothing without elements."""

from __future__ import annotations

from collections.abc import Callable

from rewright import ops
from rewright.ir.dims import Dim, product
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node


def prepare_graph(graph: Graph) -> Graph:
    """As :func:`prepare_with_places`, the program alone."""
    return prepare_with_places(graph)[0]


def prepare_with_places(graph: Graph) -> tuple[Graph, dict[int, int]]:
    """The same program in the form that plans are made for; raises RewrightError where it cannot be.

    Reductions over several axes become reductions over one axis each, which is what they are, and so do sliding windows
    over several axes; axes side by side are one where nothing has a loop over some of them. Tensors without elements
    are left out of what is put together. Besides, for every node that is needed, where it is.
    """
    for node in graph.nodes:
        if isinstance(node.op, ops.Collective):
            raise RewrightError(
                f"{node.op.name} at {node.span} needs other ranks; optimize what one rank computes between them"
            )
    live, users, returned = graph.live(), graph.users(), set(graph.outputs.values())
    for position in sorted(live):
        node = graph.nodes[position]
        is_left_out = position not in returned and all(_joins(graph, user) for user in users[position])
        if 0 in node.type.shape and not is_left_out:
            raise RewrightError(
                f"{node.op.name} at {node.span} has no elements ({node.type}): there is nothing to fuse"
            )
    builder = GraphBuilder(graph.name)
    made: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if position not in live:
            continue
        operands = [made[p] for p in node.operands]
        if isinstance(node.op, ops.Input):
            builder.span = node.span
            made[position] = builder.input(node.op.label, node.op)
        else:
            made[position] = _copy(builder, node, operands, lambda node=node: _one_loop(graph, node))
    for name, position in graph.outputs.items():
        builder.output(name, made[position])
    found = builder.build()
    return Graph(found.nodes, found.inputs, found.outputs, graph.name, graph.metadata), made


def _joins(graph: Graph, position: int) -> bool:
    """Whether a node puts tensors together of which those without elements may be left out."""
    return isinstance(graph.nodes[position].op, ops.Concatenate) and 0 not in graph.nodes[position].type.shape


def _one_loop(graph: Graph, node: Node) -> bool:
    """Whether axes that are reduced together may be one: what is reduced has no loop that goes over some of them.

    Such a loop is that of a matrix product, or of another reduction; the mean that deviations are taken from is over
    as many elements, and that of the same pass.
    """
    seen: set[int] = set()
    stack = [node.operands[0]]
    while stack:
        position = stack.pop()
        if position in seen:
            continue
        seen.add(position)
        other = graph.nodes[position]
        if isinstance(other.op, ops.Reduce) and _count(graph, other) != _count(graph, node):
            return False
        is_plain = not other.operands or isinstance(other.op, (ops.Elementwise, ops.View))
        if not is_plain and not isinstance(other.op, ops.Reduce):
            return False
        stack.extend(other.operands)
    return True


def _count(graph: Graph, reduce: Node) -> Dim:
    """How many elements each element of a reduction is made of."""
    assert isinstance(reduce.op, ops.Reduce)
    shape = graph.nodes[reduce.operands[0]].type.shape
    return product(shape[axis] for axis in reduce.op.dimensions)


def _reduce(builder: GraphBuilder, node: Node, position: int, one: bool) -> int:
    """A reduction over one axis after the other; axes side by side are made one before, where that is asked for."""
    assert isinstance(node.op, ops.Reduce)
    axes = sorted(node.op.dimensions)
    while axes:
        last = first = axes.pop()
        while one and axes and axes[-1] == first - 1:
            first = axes.pop()
        if first != last:
            shape = builder.type(position).shape
            size = product(shape[first : last + 1])
            position = builder.add(ops.Reshape((*shape[:first], size, *shape[last + 1 :])), position, span=node.span)
        position = builder.add(ops.Reduce(node.op.kind, (first,)), position, span=node.span)
    return position


def _slid(builder: GraphBuilder, node: Node, position: int) -> int:
    """A reduction over windows along one axis after the other: outside of each there is the identity of the kind."""
    assert isinstance(node.op, ops.ReduceWindow)
    rank = range(len(node.op.window))
    for axis in reversed(rank):
        if (node.op.window[axis], node.op.strides[axis], node.op.padding[axis]) != (1, 1, (0, 0)):
            op = ops.ReduceWindow(
                node.op.kind,
                tuple(node.op.window[a] if a == axis else 1 for a in rank),
                tuple(node.op.strides[a] if a == axis else 1 for a in rank),
                tuple(node.op.padding[a] if a == axis else (0, 0) for a in rank),
            )
            position = builder.add(op, position, span=node.span)
    return position


def _copy(builder: GraphBuilder, node: Node, operands: list[int], one_loop: Callable[[], bool]) -> int:
    if isinstance(node.op, ops.Reduce) and len(node.op.dimensions) > 1:
        return _reduce(builder, node, operands[0], one_loop())
    if isinstance(node.op, ops.ReduceWindow):
        return _slid(builder, node, operands[0])
    if isinstance(node.op, ops.Concatenate):
        operands = [p for p in operands if 0 not in builder.type(p).shape] or operands[:1]
    return builder.add(node.op, *operands, span=node.span)
