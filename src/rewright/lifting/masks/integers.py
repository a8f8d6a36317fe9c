"""The integer part of a program: positions, masks, token numbers, and the look-ups that they are used in."""

from __future__ import annotations

from dataclasses import replace

from rewright import ops
from rewright.ir.graph import Graph, Node


def integer_part(graph: Graph) -> Graph:
    """The graph with every floating-point value that a look-up does not read directly made an input.

    Node positions change; the inputs of integer type keep their names. Used to learn the ranges of integer inputs.
    """
    nodes: list[Node] = []
    inputs: dict[str, int] = {}
    place: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if type(node.op) is ops.Gather:
            data = graph.nodes[node.operands[0]].type
            indices = place.get(node.operands[1])
            if node.operands[0] in place and indices is not None:
                place[position] = len(nodes)
                nodes.append(replace(node, operands=(place[node.operands[0]], indices)))
            elif indices is not None and data.is_static():
                label = f"data {position}"
                inputs[label] = len(nodes)
                nodes.append(Node(ops.Input(label, data), (), data, node.span))
                place[position] = len(nodes)
                nodes.append(replace(node, operands=(len(nodes) - 1, indices)))
        elif not node.type.dtype.is_float and all(operand in place for operand in node.operands):
            place[position] = len(nodes)
            if isinstance(node.op, ops.Input):
                inputs[node.op.label] = len(nodes)
            nodes.append(replace(node, operands=tuple(place[operand] for operand in node.operands)))
    return Graph(tuple(nodes), inputs, {}, graph.name)
