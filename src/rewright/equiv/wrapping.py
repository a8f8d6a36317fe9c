"""Short integers that are counted from the other end: arithmetic of 8 or 16 bits whose results may not fit.

Proofs take whole numbers to have no end. Of integers of 32 and 64 bits, which count tokens and places, that is an
assumption like others. Packed and quantised weights have all numbers of their type: ``w - 8`` of unsigned bytes is not
the number ``w - 8``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.equiv.bounds import SHORT, Bound, bounds
from rewright.ir.digest import node_digests
from rewright.ir.graph import Graph
from rewright.ops.base import Array

_ARITHMETIC = (
    ops.Abs,
    ops.Add,
    ops.DotGeneral,
    ops.Multiply,
    ops.Negate,
    ops.Power,
    ops.Reduce,
    ops.ReduceWindow,
    ops.Subtract,
)
WRAPS = (
    "the programs are equal if no {0} is too large for its type at {1}, which a number of that type may be; cast "
    "before, or give the values of weights"
)


def wrapping(graphs: Sequence[Graph], values: Mapping[str, Array]) -> str:
    """Why whole numbers of one program may not be what they are in the others; empty where they are.

    ``values`` are known values of inputs by name, in the names of the first program.
    """
    short = [any(node.type.dtype in SHORT for node in graph.nodes) for graph in graphs]
    if not any(short):
        return ""
    given: dict[str, Bound] = {n: (float(v.min()), float(v.max())) for n, v in values.items() if v.size}
    # What ranks compute of their parts is not what the other program computes, node for node.
    found = [_found(graph, given, alone=len(graphs) == 2) for graph in graphs]
    for graph, own in zip(graphs, found, strict=True):
        for name, position in own.items():
            if any(name not in other for other in found):
                node = graph.nodes[position]
                return WRAPS.format(node.type.dtype.value, node.span)
    return ""


def _found(graph: Graph, given: Mapping[str, Bound], *, alone: bool) -> dict[object, int]:
    """Nodes of short types whose results may not fit, by what they compute; for ranks, by their operators."""
    known, names = bounds(graph, given=given), node_digests(graph)
    return {
        names[position] if alone else (graph.nodes[position].op.name, graph.nodes[position].type.dtype): position
        for position in sorted(graph.live())
        if graph.nodes[position].type.dtype in SHORT and known[position] is None and _counts(graph, position)
    }


def _counts(graph: Graph, position: int) -> bool:
    """Whether a node computes a whole number from whole numbers, or casts one."""
    node = graph.nodes[position]
    is_cast = isinstance(node.op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype.is_integer
    return is_cast or isinstance(node.op, _ARITHMETIC)
