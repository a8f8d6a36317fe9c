"""Memory that nothing was written to: no two programs share one, so what it holds is no value that they agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import RankProgram

_PROGRAM = "program"


def with_own_memory(sequential: Graph, program: RankProgram) -> tuple[Graph, RankProgram]:
    """Both programs with every read of unwritten memory named after the program that reads it."""
    first, *rest = numbered((sequential, *program.graphs))
    graphs = tuple(rest)
    return first, program if graphs == program.graphs else replace(program, graphs=graphs)


def numbered(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """As :func:`with_own_memory`, for programs in order."""
    return tuple(_number(graph, number) for number, graph in enumerate(graphs))


def unwritten_places(graph: Graph) -> list[int]:
    """The positions of what reads such memory."""
    return [position for position, node in enumerate(graph.nodes) if _is_unwritten(node)]


def _is_unwritten(node: Node) -> bool:
    return isinstance(node.op, ops.CustomCall) and node.op.is_unspecified


def _number(graph: Graph, number: int) -> Graph:
    found = unwritten_places(graph)
    if not found:
        return graph
    nodes = list(graph.nodes)
    for position in found:
        op = nodes[position].op
        assert isinstance(op, ops.CustomCall)
        rest = tuple((name, value) for name, value in op.attributes if name != _PROGRAM)
        nodes[position] = replace(nodes[position], op=replace(op, attributes=(*rest, (_PROGRAM, number))))
    return replace(graph, nodes=tuple(nodes))
