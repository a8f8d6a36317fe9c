"""Numbers that masks are filled with before a softmax, where programs fill them with several.

Each is minus infinity where that is what it does: see :mod:`rewright.proof.rewriting.filled`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from rewright import ops
from rewright.ir.graph import Graph
from rewright.proof.rewriting.filled import only_fills
from rewright.proof.rewriting.numbers.taken import HIGHEST
from rewright.proof.rewriting.program import Program, passes_on


def fillings(graphs: Sequence[Graph], lowest: Collection[float]) -> tuple[dict[int, float], ...]:
    """By program the constants that masks are filled with, and their values.

    None where all fill in the same numbers in the same ways: a number that is added to a score is not the one that is
    chosen instead of it. ``lowest`` are numbers that stand for minus infinity in any case, and are left out.
    """
    found = [_fillings(graph) for graph in graphs]
    plain = {
        frozenset((-math.inf if v in lowest else v, _is_added(graph, p)) for p, v in values.items())
        for graph, values in zip(graphs, found, strict=True)
        if values
    }
    if len(plain) < 2:
        return tuple({} for _ in graphs)
    kept = {v for values in found for v in values.values() if math.isfinite(v) and v not in lowest}
    return tuple({p: v for p, v in values.items() if v in kept} for values in found)


def _is_added(graph: Graph, constant: int) -> bool:
    """Whether a filling is added to scores, and not chosen instead of them."""
    users, seen, stack = graph.users(), {constant}, [constant]
    while stack:
        position = stack.pop()
        for user in users[position]:
            node = graph.nodes[user]
            if isinstance(node.op, ops.Add):
                return True
            is_kept = isinstance(node.op, ops.Multiply | ops.Extremum) or passes_on(node, position)
            if user not in seen and is_kept:
                seen.add(user)
                stack.append(user)
    return False


def _fillings(graph: Graph) -> dict[int, float]:
    low = {
        position: float(value)
        for position, node in enumerate(graph.nodes)
        if node.type.dtype.is_float and (value := ops.splat(node.op)) is not None and value <= HIGHEST
    }
    if not low:
        return {}
    program = Program(graph)
    return {position: value for position, value in low.items() if only_fills(program, position, value)}
