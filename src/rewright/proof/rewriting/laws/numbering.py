"""Vectors of pairwise different indices.

The places that a ``top_k`` gives are different ones in a row. Beside the number of their row, or where rows are shared
with what is written into, no two of them name one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.analysis.evenness import follows
from rewright.ir.graph import Graph
from rewright.ir.types import TensorType
from rewright.ops.facts import Facts, facts_between, fits
from rewright.proof.rewriting.laws.reading import LONG, asks_for_below


@dataclass(frozen=True)
class _Numbering:
    """An axis along which no two elements of a tensor are equal, all else being the same."""

    axis: int
    is_choice: bool
    """Whether the elements are places that a choice or a sort gave; else they are the index along the axis."""


def is_never_twice(graph: Graph, known: Sequence[Facts], op: ops.Scatter, indices: int) -> bool:
    """Whether no two vectors of indices are one.

    They are not where they differ along an axis that is shared with what is written into, or that one of their numbers
    counts; and where they differ along one axis more, of which another number is the place that a choice gave.
    """
    rank, vector = graph.nodes[indices].type.rank, op.index_vector_dim
    found = [_numbering(graph, known, p) for p in _components(graph, indices, vector)]
    numbers = [one for one in found if one is not None]
    counted = {*op.scatter_indices_batching_dims, *(one.axis for one in numbers if not one.is_choice)}
    rest = set(range(rank)) - {vector} - counted
    return not op.update_window_dims and (not rest or any(rest == {one.axis} for one in numbers if one.is_choice))


def _components(graph: Graph, position: int, vector: int) -> tuple[int, ...]:
    """The numbers that vectors of indices are made of, as far as they are apart."""
    node = graph.nodes[position]
    if vector == node.type.rank or node.type.shape[vector] == 1:
        return (position,)
    if isinstance(node.op, ops.Concatenate) and node.op.dimension == vector:
        return tuple(p for p in node.operands if graph.nodes[p].type.shape[vector] == 1)
    return ()


def _numbering(graph: Graph, known: Sequence[Facts], position: int) -> _Numbering | None:
    node = graph.nodes[position]
    if isinstance(node.op, ops.Iota):
        return _Numbering(node.op.dimension, is_choice=False) if _counts(node.op.tensor, node.op.dimension) else None
    if isinstance(node.op, ops.Ordering):
        return _Numbering(node.op.along(node.type.rank), is_choice=True) if node.op.result == "indices" else None
    if isinstance(node.op, ops.Convert) and node.type.dtype in LONG:
        return _numbering(graph, known, node.operands[0])
    if isinstance(node.op, ops.Select):
        return _numbering(graph, known, node.operands[2]) if asks_for_below(graph, known, node) else None
    if isinstance(node.op, ops.View):
        inner, found = _numbering(graph, known, node.operands[0]), follows(graph, node)
        axis = None if inner is None or found is None else found[0][inner.axis]
        return None if inner is None or axis is None else replace(inner, axis=axis)
    return None


def _counts(kind: TensorType, axis: int) -> bool:
    """Whether a type holds all indices along an axis; short integers start anew, and floats round."""
    size = kind.shape[axis]
    return kind.dtype in LONG or (
        isinstance(size, int) and fits(facts_between(0, max(size - 1, 0), whole=True), kind.dtype)
    )
