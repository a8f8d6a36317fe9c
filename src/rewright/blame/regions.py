"""What is behind wrong results, as far as the other program does not have it, and who reads a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rewright.analysis.moving import LAYING_OUT
from rewright.ir.graph import Graph
from rewright.ir.operator import Operator

_Node = TypeVar("_Node")


def unknown_behind(
    starts: Iterable[_Node], reads: Callable[[_Node], Iterable[_Node]], is_known: Callable[[_Node], bool]
) -> dict[_Node, list[_Node]]:
    """Some nodes and what is behind them up to what is known, with what of that each of them reads.

    Where a node reads nothing that is unknown, the programs part.
    """
    found: dict[_Node, list[_Node]] = {}
    stack = list(starts)
    while stack:
        node = stack.pop()
        if node not in found:
            found[node] = [other for other in reads(node) if not is_known(other)]
            stack.extend(found[node])
    return found


def readers_behind(
    graph: Graph, position: int, through: tuple[type[Operator], ...] = LAYING_OUT, soon: int | None = None
) -> Iterator[int]:
    """The nodes that read a node, directly or behind operators of some kinds, among the next ``soon`` nodes."""
    reached = {position}
    for reader, node in enumerate(graph.nodes[position + 1 : None if soon is None else position + soon], position + 1):
        if not reached.isdisjoint(node.operands):
            yield reader
            if isinstance(node.op, through):
                reached.add(reader)
