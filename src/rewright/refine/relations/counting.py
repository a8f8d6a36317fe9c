"""Whole numbers that ranks hold in floats of too few digits: counts of tokens that are summed in bfloat16, say."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rewright import ops
from rewright.analysis.values import facts_of_ranks
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.facts import Facts

_EXACT = {DType.BF16: 1 << 8, DType.F16: 1 << 11}
"""Up to where a type of few digits has every whole number."""
_MOST_TOLD = 3


def notes_of_counts(sequential: Graph, graphs: Sequence[Graph]) -> tuple[str, ...]:
    """Where ranks hold whole numbers that their type does not have, and one device does not do so on the same line."""
    if not any(map(_counts, graphs)):
        return ()
    alike = _held_at([sequential]) if _counts(sequential) else {}
    found = [_sentence(line, *size) for line, size in _held_at(graphs).items() if line not in alike]
    return tuple(found[:_MOST_TOLD])


def _sentence(line: str, size: float, dtype: DType) -> str:
    most = f"up to {size:g}" if math.isfinite(size) else "of any size"
    return (
        f"precision: {dtype.value} at {line} holds whole numbers {most}, and has each of them to {_EXACT[dtype]} only"
    )


def _counts(graph: Graph) -> bool:
    """Whether a program makes such floats of integers."""
    return any(
        isinstance(node.op, ops.Convert)
        and node.type.dtype in _EXACT
        and not graph.nodes[node.operands[0]].type.dtype.is_float
        for node in graph.nodes
    )


def _held_at(graphs: Sequence[Graph]) -> dict[str, tuple[float, DType]]:
    """The lines at which such numbers are held, with the largest of them and their type."""
    found: dict[str, tuple[float, DType]] = {}
    for graph, facts in zip(graphs, facts_of_ranks(graphs), strict=True):
        for node, known in zip(graph.nodes, facts, strict=True):
            limit, line = _EXACT.get(node.type.dtype), str(node.span)
            if limit is not None and known.whole and known.is_finite and _size(known) > limit:
                found[line] = max(
                    found.get(line, (0.0, node.type.dtype)), (_size(known), node.type.dtype), key=lambda entry: entry[0]
                )
    return found


def _size(known: Facts) -> float:
    return max(abs(float(known.low)), abs(float(known.high)))
