"""Graphs made from other graphs: parts cut out, and parts put in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.rebuilding import remove_dead_nodes
from rewright.ir.types import TensorType
from rewright.ops.base import Array, TensorOperator


def copy_nodes(builder: GraphBuilder, graph: Graph, positions: Iterable[int], places: dict[int, int]) -> None:
    """Append nodes of a graph whose operands have a place; ``places`` learns theirs."""
    for position in positions:
        if position not in places:
            node = graph.nodes[position]
            places[position] = builder.add(node.op, *(places[p] for p in node.operands))


def convert_node(builder: GraphBuilder, position: int, kind: TensorType) -> int:
    """A node as another element type."""
    if builder.type(position).dtype is kind.dtype:
        return position
    return builder.add(ops.Convert(kind.dtype), position)


def depends_on_inputs(graph: Graph) -> list[bool]:
    """For every node whether its value depends on any input."""
    found: list[bool] = []
    for node in graph.nodes:
        found.append(isinstance(node.op, ops.Input) or any(found[p] for p in node.operands))
    return found


def run_part(graph: Graph, inputs: Mapping[str, Array]) -> list[Array] | None:
    """The float64 values of all nodes of a program of one rank; None where one cannot be executed."""
    values: list[Array] = []
    try:
        with np.errstate(all="ignore"):
            for node in graph.nodes:
                if isinstance(node.op, ops.Input):
                    values.append(inputs[node.op.label])
                elif isinstance(node.op, TensorOperator) and not isinstance(node.op, ops.Collective):
                    values.append(node.op.execute([values[p] for p in node.operands], np.float64))
                else:
                    return None
    except (RewrightError, ArithmeticError, ValueError, NotImplementedError, MemoryError):
        return None
    return values


__all__ = [
    "convert_node",
    "copy_nodes",
    "depends_on_inputs",
    "remove_dead_nodes",
    "run_part",
]
