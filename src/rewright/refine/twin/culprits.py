"""Operators that leave the numbers that a proof is about: where there is none, or one that is too large for a type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rewright import ops
from rewright.interp.meetings import COLLECTIVES
from rewright.ir.graph import Graph
from rewright.ops.base import Array, TensorOperator


def undefined(graph: Graph, values: Mapping[int, Array], *, poles: bool) -> Iterator[int]:
    """Nodes that make no number of finite ones; with ``poles`` also those that make infinite ones."""
    for position, node in enumerate(graph.nodes):
        value = values[position]
        if value.dtype.kind != "f" or not node.operands or isinstance(node.op, COLLECTIVES):
            continue
        if not np.isfinite(value).all() if poles else np.isnan(value).any():
            operands = [values[p] for p in node.operands]
            if all(x.dtype.kind != "f" or bool(np.isfinite(x).all()) for x in operands):
                yield position


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
