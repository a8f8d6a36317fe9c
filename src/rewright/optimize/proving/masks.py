"""Conditions on indices as inputs: what two programs mask is compared element by element, and left out of the proof."""

from __future__ import annotations

import hashlib

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType
from rewright.ops.base import Array, TensorOperator


def with_mask_inputs(graph: Graph) -> Graph:
    """The graph with every condition that depends on indices alone as an input, named by its elements.

    Two programs of which both have an input of such a name mask the same elements there: sizes are numbers, so that
    conditions are
    evaluated and their elements are compared, all of them.
    """
    fixed = _fix(graph)
    users = graph.users()
    ends: dict[int, str] = {}
    for position, value in fixed.items():
        node = graph.nodes[position]
        if node.type.dtype is DType.BOOL and not any(_is_condition(graph, u, fixed) for u in users[position]):
            ends[position] = (
                "mask " + hashlib.sha256(f"{value.shape}".encode() + np.packbits(value).tobytes()).hexdigest()
            )
    builder = GraphBuilder(graph.name)
    places: list[int] = []
    known: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        builder.span = node.span
        if isinstance(node.op, ops.Input):
            places.append(builder.input(node.op.label, node.op))
        elif position in ends:
            label = ends[position]
            if label not in known:
                known[label] = builder.input(label, ops.Input(label, node.type))
            places.append(known[label])
        else:
            places.append(builder.add(node.op, *(places[p] for p in node.operands)))
    for name, position in graph.outputs.items():
        builder.output(name, places[position])
    return _prune(builder.build())


def _is_condition(graph: Graph, position: int, fixed: dict[int, Array]) -> bool:
    return position in fixed and graph.nodes[position].type.dtype is DType.BOOL


def _fix(graph: Graph) -> dict[int, Array]:
    """The values of the integers and conditions that depend on indices alone."""
    found: dict[int, Array] = {}
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Input) or node.type.dtype.is_float or not isinstance(node.op, TensorOperator):
            continue
        size = node.type.size()
        if all(p in found for p in node.operands) and isinstance(size, int) and size <= 1 << 26:
            found[position] = node.op.execute([found[p] for p in node.operands])
    return found


def _prune(graph: Graph) -> Graph:
    """The graph without what no output needs."""
    live = graph.live()
    builder = GraphBuilder(graph.name)
    places: dict[int, int] = {}
    for position, node in enumerate(graph.nodes):
        if position not in live:
            continue
        builder.span = node.span
        if isinstance(node.op, ops.Input):
            places[position] = builder.input(node.op.label, node.op)
        else:
            places[position] = builder.add(node.op, *(places[p] for p in node.operands))
    for name, position in graph.outputs.items():
        builder.output(name, places[position])
    return builder.build()
