"""Tables that a module computes when it is made, and that nothing relates to a tensor of the other program.

Their values are known, so that they are constants and no free inputs. Of a large one that is read in part only what
is read becomes a constant: the first rows of a rotary table, for example.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.rebuilding import rebuild, remove_dead_nodes
from rewright.ir.types import TensorType
from rewright.ops.base import Array, array_dtype
from rewright.proof.rewriting.parts import run_part

MOST_BOUND = 1 << 22
"""Tables with more elements, as far as they are read, stay free inputs; nothing is refuted by these."""
_MOST_UNKNOWN = 1 << 16
"""Tensors of more elements that no capture calls a buffer are weights, which the map has to relate."""


def bind_values(graph: Graph, values: Mapping[str, Array], others: Collection[str]) -> Graph:
    """The program with inputs that only it has, and whose values are known, as constants.

    What selects elements of such a table at places that no other input decides is a constant itself.
    """
    known = {position: values[name] for name, position in graph.inputs.items() if name in values and name not in others}
    buffers = {graph.inputs[name] for name in json.loads(graph.metadata.get("buffers", "{}")) if name in graph.inputs}
    known = {p: value for p, value in known.items() if value.size <= _MOST_UNKNOWN or p in buffers}
    tables = {p: value for p, value in known.items() if value.size and value.shape == graph.nodes[p].type.shape}
    if not tables:
        return graph
    found = {p: v for p, v in _select(graph, tables).items() if v.size <= MOST_BOUND}
    found |= {p: v for p, v in tables.items() if v.size <= MOST_BOUND}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        return builder.add(constant(node.type, found[position])) if position in found else None

    made = rebuild(graph, make)
    whole = {name for name, position in graph.inputs.items() if position in tables} & _unread(made)
    return _without(made, whole) if whole else made


def constant(kind: TensorType, value: Array) -> ops.Constant:
    """Known elements as an operator."""
    number = float if kind.dtype.is_float else bool if kind.dtype.value == "i1" else int
    return ops.Constant(kind, tuple(number(v) for v in value.reshape(-1).tolist()))


def _select(graph: Graph, tables: Mapping[int, Array]) -> dict[int, Array]:
    """What is selected of tables, as far as something that selects nothing more reads it."""
    loose: list[bool] = []
    moved: set[int] = set(tables)
    for position, node in enumerate(graph.nodes):
        own = isinstance(node.op, ops.Input | ops.Collective) and position not in tables
        loose.append(own or any(loose[p] for p in node.operands))
        if _moves_one(node) and node.operands[0] in moved and not loose[position]:
            moved.add(position)
    wanted = [p for p in moved if _selects(graph.nodes[p])]
    if not wanted:
        return {}
    part = remove_dead_nodes(Graph(graph.nodes, {}, {str(p): p for p in wanted}))
    kinds = {name: array_dtype(graph.nodes[p].type.dtype, np.float64) for name, p in graph.inputs.items()}
    inputs = {name: np.asarray(tables[p]).astype(kinds[name]) for name, p in graph.inputs.items() if p in tables}
    values = run_part(part, inputs) if all(node.type.is_static() for node in part.nodes) else None
    return {} if values is None else {int(name): values[position] for name, position in part.outputs.items()}


def _moves_one(node: Node) -> bool:
    """Whether the elements of a node are elements of its first operand, and of no other one."""
    return isinstance(node.op, ops.TensorOperator) and node.op.moves(len(node.operands)) == (0,)


def _selects(node: Node) -> bool:
    """Whether a node may leave out elements of its only source."""
    return _moves_one(node) and not isinstance(node.op, ops.Lossless)


def _unread(graph: Graph) -> set[str]:
    """The inputs that no output depends on."""
    live = {p for node in graph.nodes for p in node.operands} | set(graph.outputs.values())
    return {name for name, position in graph.inputs.items() if position not in live}


def _without(graph: Graph, names: Collection[str]) -> Graph:
    """The program without inputs that nothing reads."""
    dead = {graph.inputs[name] for name in names}
    places: dict[int, int] = {}
    for position in range(len(graph.nodes)):
        if position not in dead:
            places[position] = len(places)
    nodes = tuple(replace(graph.nodes[p], operands=tuple(places[o] for o in graph.nodes[p].operands)) for p in places)
    inputs = {name: places[p] for name, p in graph.inputs.items() if p in places}
    return replace(graph, nodes=nodes, inputs=inputs, outputs={n: places[p] for n, p in graph.outputs.items()})
