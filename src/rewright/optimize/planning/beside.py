"""Products that are parts of a larger tensor, beside others or beside zeros.

A kernel for the whole computes each of its parts at the places of all of them. So the gradients of queries, keys and
values are put side by side where one layer makes all three; as one kernel they would be three times the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rewright import ops
from rewright.ir.graph import Graph
from rewright.optimize.planning.costs import Machine, again_seconds, elements
from rewright.optimize.planning.work import node_work

MOST = 1000
"""So many tensors that one is computed from are looked at: recurrences that are written out have no end."""


def parts_to_store(
    graph: Graph,
    machine: Machine,
    live: Iterable[int],
    base: Callable[[int], int],
    is_mapped: Callable[[int], bool],
) -> Iterator[int]:
    """The tensors that cost less to store than to compute wherever the tensors that they are parts of are.

    ``base`` says of which tensor another one is a view, and ``is_mapped`` whether kernels would compute one in place.
    """
    for position in live:
        node = graph.nodes[position]
        if not isinstance(node.op, (ops.Concatenate, ops.Pad)):
            continue
        found = {base(p): _products(graph, base(p), is_mapped) for p in node.operands}
        if isinstance(node.op, ops.Concatenate) and len(frozenset[int]().union(*found.values())) < 2:
            continue
        for part, products in found.items():
            size = elements(graph, part)
            again = elements(graph, position) / max(size, 1) - 1
            work = sum(node_work(graph, graph.nodes[p]) for p in products)
            if again_seconds(graph, part, again * work, machine) > 0:
                yield from {p for p in products if elements(graph, p) > size} or {part}  # the part may be a slice


def _products(graph: Graph, position: int, is_mapped: Callable[[int], bool]) -> frozenset[int]:
    """The products that kernels would compute for a tensor element by element."""
    found: set[int] = set()
    seen: set[int] = set()
    stack = [position]
    while stack and len(seen) < MOST:
        p = stack.pop()
        if p in seen or not is_mapped(p):
            continue
        seen.add(p)
        op = graph.nodes[p].op
        if isinstance(op, ops.DotGeneral):
            found.add(p)
        elif isinstance(op, (ops.Elementwise, ops.Layout)):
            stack.extend(graph.nodes[p].operands)
    return frozenset(found)


__all__ = ["parts_to_store"]
