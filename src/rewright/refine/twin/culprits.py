"""Operators that leave the numbers that a proof is about: where there is none, or one that is too large for a type."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph
from rewright.ops.agreement import meets
from rewright.ops.base import Array, TensorOperator, integer_limits

_USUAL = 30.0
"""A function of smaller numbers is infinite at a pole alone, and not because its value is too large for a float."""


def undefined_nodes(graph: Graph, values: Mapping[int, Array], *, poles: bool) -> Iterator[int]:
    """Nodes that make no number of finite ones; with ``poles`` also those that make infinite ones of usual ones."""
    for position, value, operands in _floats(graph, values):
        bad = np.isnan(value)
        if poles:
            bad |= np.isinf(value) & ~_is_far(value, operands)
        if bad.any() and bool((bad & _finite(value, operands)).any()):
            yield position


def uncastable(graph: Graph, values: Mapping[int, Array]) -> Iterator[int]:
    """Casts of floats to integers that do not fit: the result depends on the machine."""
    for position, node in enumerate(graph.nodes):
        kind = node.type.dtype
        if isinstance(node.op, ops.Convert) and kind.is_integer and values[node.operands[0]].dtype.kind == "f":
            low, high = integer_limits(kind)
            whole = np.trunc(values[node.operands[0]])
            if not bool(((whole >= low) & (whole <= high)).all()):
                yield position


def overflowing(graph: Graph, values: Mapping[int, Array], *, or_vanishes: bool = False) -> Iterator[int]:
    """Nodes with a result that is too large for a float, or else too close to zero."""
    for position, value, read in _floats(graph, values):
        beyond = np.isinf(value) | (or_vanishes & (value == 0))
        if bool((beyond & _finite(value, read) & _is_far(value, read)).any()):
            yield position


def spoiled_outputs(graphs: Sequence[Graph], spoiled: Sequence[Collection[int]]) -> list[set[str]]:
    """By program the outputs that are made of nodes of which the values say nothing, also by way of other ranks.

    Args:
        graphs: programs that run together.
        spoiled: such nodes of each.
    """
    met = [[p for p, node in enumerate(graph.nodes) if node.op.is_met] for graph in graphs]
    pairs = list(zip(graphs, spoiled, met, strict=True))
    crosses = any(not graph.ancestors(own).isdisjoint(bad) for graph, bad, own in pairs)
    sources = [{*bad, *(own if crosses else ())} for _, bad, own in pairs]
    return [
        {name for name, p in graph.outputs.items() if not graph.ancestors([p]).isdisjoint(own)}
        for graph, own in zip(graphs, sources, strict=True)
    ]


def _floats(graph: Graph, values: Mapping[int, Array]) -> Iterator[tuple[int, Array, list[Array]]]:
    """The nodes that compute floats, with what they compute of what."""
    for position, node in enumerate(graph.nodes):
        value = values[position]
        if value.dtype.kind == "f" and node.operands and not meets(node.op):
            yield position, value, [values[p] for p in node.operands]


def _finite(value: Array, operands: Sequence[Array]) -> Array:
    """For every element whether it is made of finite numbers; of operands of other shapes all elements count."""
    found = np.ones(value.shape, np.bool_)
    for x in operands:
        if x.dtype.kind == "f":
            found &= np.isfinite(x) if x.shape == value.shape else bool(np.isfinite(x).all())
    return found


def _is_far(value: Array, operands: Sequence[Array]) -> Array:
    """For every element whether it is made of a number that is far from zero, and of no zero."""
    large, zero = np.zeros(value.shape, np.bool_), np.zeros(value.shape, np.bool_)
    for x in operands:
        if x.dtype.kind == "f":
            alike = x.shape == value.shape
            large |= np.abs(x) > _USUAL if alike else bool((np.abs(x) > _USUAL).any())
            zero |= x == 0 if alike else False
    return large & ~zero


def wrapping(graph: Graph, values: Mapping[int, Array]) -> Iterator[int]:
    """Nodes whose result in more digits is another one: integers that do not fit their type, and count on below."""
    for position, node in enumerate(graph.nodes):
        value = values[position]
        if not node.operands or value.dtype.kind not in "iu" or not isinstance(node.op, TensorOperator):
            continue
        if isinstance(node.op, ops.Convert):
            (given,) = (values[p] for p in node.operands)
            if given.dtype.kind in "iu" and not np.array_equal(given, value):
                yield position
        elif value.dtype.itemsize < 8 and not np.array_equal(_wide(node.op, [values[p] for p in node.operands]), value):
            yield position


def _wide(op: TensorOperator, operands: list[Array]) -> Array:
    return op.execute([x.astype(np.int64) if x.dtype.kind in "iu" else x for x in operands])
