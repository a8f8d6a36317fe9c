"""What attention that goes over its keys block by block begins with: minus infinity as the largest score so far.

``maximum(-inf, x)`` is ``x``, and the sums so far are multiplied by ``exp(-inf - m)``, which is nought where ``m`` is a
real number. Programs that begin with the first block have neither.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.equiv.building import rebuilt
from rewright.equiv.fillings import splat
from rewright.equiv.spans import REAL, Span, spans
from rewright.ir.graph import Graph, GraphBuilder, Node

_MOST_ROUNDS = 8
_LAID_OUT = (ops.BroadcastInDim, ops.Reshape, ops.Transpose, ops.Slice, ops.Convert)


def without_starts(graph: Graph) -> Graph:
    """The program without maxima with minus infinity, and with nought for what is multiplied by its exponential."""
    for _ in range(_MOST_ROUNDS if any(_is_endless(node) for node in graph.nodes) else 0):
        numbers = _numbers(graph, spans(graph))
        aliases = {p: q for p, node in enumerate(graph.nodes) if (q := _largest(node, numbers)) is not None}
        fresh = {p: v for p, v in numbers.items() if splat(graph, p) is None}
        if not aliases and not fresh:
            break
        graph = _rewritten(graph, aliases, fresh)
    return graph


def _is_endless(node: Node) -> bool:
    return isinstance(node.op, ops.Constant) and node.op.values == (-math.inf,)


def _rewritten(graph: Graph, aliases: Mapping[int, int], fresh: Mapping[int, float]) -> Graph:
    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position in aliases:
            return operands[node.operands.index(aliases[position])]
        return builder.add(ops.Constant(node.type, (fresh[position],))) if position in fresh else None

    return rebuilt(graph, make)


def _largest(node: Node, numbers: Mapping[int, float]) -> int | None:
    """The operand that a maximum is, where the other is minus infinity."""
    if isinstance(node.op, ops.Maximum):
        for k in (0, 1):
            if numbers.get(node.operands[k]) == -math.inf:
                return node.operands[1 - k]
    return None


def _numbers(graph: Graph, known: Sequence[Span]) -> dict[int, float]:
    """By node the number that all of its elements are: minus infinity or nought."""
    found: dict[int, float] = {}
    for position, node in enumerate(graph.nodes):
        number = _number(graph, node, position, known, found)
        if number is not None:
            found[position] = number
    return found


def _number(graph: Graph, node: Node, position: int, known: Sequence[Span], found: Mapping[int, float]) -> float | None:
    if not node.type.dtype.is_float:
        return None
    given = [found.get(p) for p in node.operands]
    if isinstance(node.op, ops.Constant):
        number = splat(graph, position)
        return number if number in (0.0, -math.inf) else None
    if isinstance(node.op, _LAID_OUT):
        return given[0]
    if isinstance(node.op, ops.Subtract):
        return given[0] if given[0] == -math.inf and REAL in known[node.operands[1]] else None
    if isinstance(node.op, ops.Exponential):
        return 0.0 if given[0] == -math.inf else None
    if isinstance(node.op, ops.Multiply):
        pairs = zip(given, reversed(node.operands), strict=True)
        return 0.0 if any(number == 0 and REAL in known[other] for number, other in pairs) else None
    return None
