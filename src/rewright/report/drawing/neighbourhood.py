"""The nodes around a place of a graph that a picture shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.analysis.moving import LAYING_OUT
from rewright.ir.graph import Graph, Node


@dataclass(frozen=True)
class Neighbourhood:
    """Positions in the order of the program, and the edges between them, from what is read to its reader."""

    focus: int
    nodes: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    more_before: frozenset[int]
    """Nodes that read something that is not shown."""
    more_after: frozenset[int]
    """Nodes that something reads that is not shown."""


def neighbourhood_of(
    graph: Graph, focus: int, steps: int = 3, most: int = 24, others: Sequence[int] = (), users: bool = True
) -> Neighbourhood:
    """The nodes within some steps of a place, nearest first, up to a number that can be read.

    Args:
        focus: position of the place.
        steps: operators to go back, and half as many to go on.
        most: nodes to show at most.
        others: further positions to start from, such as the reader of a sum that is not added up.
        users: whether readers are shown too.
    """
    readers = graph.users()
    shown = dict.fromkeys([focus, *others], 0)
    _spread(graph, shown, lambda p: graph.nodes[p].operands, steps, most)
    if users:
        after = dict.fromkeys([focus, *others], 0)
        _spread(graph, after, lambda p: readers[p], max(steps // 2, 1), most // 3)
        shown |= after
    positions = sorted(shown)
    inside = set(positions)
    edges = tuple((p, q) for q in positions for p in dict.fromkeys(graph.nodes[q].operands) if p in inside)
    return Neighbourhood(
        focus,
        tuple(positions),
        edges,
        frozenset(q for q in positions if not inside.issuperset(graph.nodes[q].operands)),
        frozenset(p for p in positions if not inside.issuperset(readers[p])),
    )


def _spread(
    graph: Graph, shown: dict[int, int], neighbours: Callable[[int], Sequence[int]], steps: int, most: int
) -> None:
    """Add what is a few steps away, breadth first; layout is shown and is no step: what is behind it is read."""
    queue = list(shown)
    while queue:
        position = queue.pop(0)
        for near in neighbours(position):
            step = shown[position] + (0 if isinstance(graph.nodes[near].op, LAYING_OUT) else 1)
            if near not in shown and step <= steps and len(shown) < most:
                shown[near] = step
                queue.append(near)


def correspondence(left: Graph, right: Graph, start: int, place: int, most: int = 64) -> dict[int, int]:
    """Nodes of the left graph and what stands for them in the right one, side by side behind two places.

    A guess for the eye: operators are compared, and a collective that only the right one has is stepped over.
    """
    found: dict[int, int] = {}
    stack = [(start, place)]
    while stack and len(found) < most:
        a, b = stack.pop()
        while isinstance(right.nodes[b].op, ops.Collective) and not isinstance(left.nodes[a].op, ops.Collective):
            b = right.nodes[b].operands[0] if right.nodes[b].operands else b
            if not right.nodes[b].operands:
                break
        if a in found or not _alike(left.nodes[a], right.nodes[b]):
            continue
        found[a] = b
        stack.extend(zip(left.nodes[a].operands, right.nodes[b].operands, strict=False))
    return found


def _alike(left: Node, right: Node) -> bool:
    if isinstance(left.op, ops.Input) and isinstance(right.op, ops.Input):
        return left.op.label == right.op.label
    return type(left.op) is type(right.op)
