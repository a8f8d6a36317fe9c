"""Tensors that are zero but for what is written at the places of a choice, written or added.

The places that a choice or a sort gives are different ones in every row, so that no element is written twice: writing
into zeros is adding to them. Where ones, or truth values, are written, what is chosen by them instead of zero is
what is read at their places, added there, and so is what they are multiplied by, where that is real everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rewright import ops
from rewright.ir.dims import at_most
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.numbering import is_never_twice
from rewright.proof.rewriting.laws.reading import number, places_on, writes_rows

_TELLS: Mapping[tuple[str, float], bool] = {("EQ", 0): False, ("NE", 0): True, ("GT", 0): True, ("EQ", 1): True}
"""Comparisons of ones and zeros with a number, and whether ones are what they hold of."""


class Places:
    """``zeros.at[top_k(x).indices].set(w)`` is ``zeros.at[top_k(x).indices].add(w)``, row by row."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self.written = frozenset(p for p, node in enumerate(graph.nodes) if self._is_written(node))
        """Nodes that write into zeros, never twice at one place: floats, or truths."""

    def _is_written(self, node: Node) -> bool:
        if not isinstance(node.op, ops.Scatter) or node.op.kind != "replace":
            return False
        base, indices, updates = node.operands
        marks = node.type.dtype is DType.BOOL and number(self._graph, self._known, updates) == 1
        is_empty = number(self._graph, self._known, base) == 0
        return (
            is_empty
            and (node.type.dtype.is_float or marks)
            and (is_never_twice(self._graph, self._known, node.op, indices))
        )

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """What is written at places, or made of marks there, as a sum."""
        node = self._graph.nodes[position]
        if not node.type.dtype.is_float:
            return None
        if isinstance(node.op, ops.Scatter) and position in self.written:
            return builder.add(replace(node.op, kind="sum"), *(places[p] for p in node.operands))
        if isinstance(node.op, ops.Convert) and node.operands[0] in self.written:
            return self._as_floats(builder, node, places)
        if isinstance(node.op, ops.Select):
            return self._select(builder, node, places)
        return self._multiply(builder, node, places) if isinstance(node.op, ops.Multiply) else None

    def _as_floats(self, builder: GraphBuilder, node: Node, places: Mapping[int, int]) -> int | None:
        """Truths as floats: ones where something was written, and zeros elsewhere."""
        marks = self._graph.nodes[node.operands[0]]
        if not isinstance(marks.op, ops.Scatter) or marks.type.dtype is not DType.BOOL:
            return None
        _, indices, updates = marks.operands
        zero = builder.add(ops.Constant(node.type, (0.0,)))
        kind = replace(self._graph.nodes[updates].type, dtype=node.type.dtype)
        ones = builder.add(ops.Constant(kind, (1.0,)))
        return builder.add(replace(marks.op, kind="sum"), zero, places[indices], ones)

    def _select(self, builder: GraphBuilder, node: Node, places: Mapping[int, int]) -> int | None:
        """A choice by marks between what is real and zero, as what is written at them."""
        found = self._marks(node.operands[0])
        if found is None:
            return None
        marks, holds = found
        chosen, other = node.operands[1:] if holds else node.operands[:0:-1]
        is_real = number(self._graph, self._known, other) == 0 and self._known[chosen].is_finite
        return self._at_marks(builder, marks, chosen, places) if is_real else None

    def _multiply(self, builder: GraphBuilder, node: Node, places: Mapping[int, int]) -> int | None:
        """What is real times marks, as what is written at them."""
        nodes = self._graph.nodes
        for factor, other in (node.operands, node.operands[::-1]):
            source = nodes[factor].operands[0] if isinstance(nodes[factor].op, ops.Convert) else factor
            if source not in self.written or other in self.written or not self._known[other].is_finite:
                continue
            if number(self._graph, self._known, nodes[source].operands[2]) == 1:
                return self._at_marks(builder, source, other, places)
        return None

    def _marks(self, position: int) -> tuple[int, bool] | None:
        """The marks that truth values are made of, and whether they are true where there is one."""
        holds = True
        while isinstance(self._graph.nodes[position].op, ops.Not):
            (position,), holds = self._graph.nodes[position].operands, not holds
        if position in self.written:
            return position, holds
        node = self._graph.nodes[position]
        if not isinstance(node.op, ops.Compare) or node.operands[0] not in self.written:
            return None
        limit, marks = number(self._graph, self._known, node.operands[1]), self._graph.nodes[node.operands[0]]
        if not marks.type.dtype.is_float or number(self._graph, self._known, marks.operands[2]) != 1:
            return None
        tells = None if limit is None else _TELLS.get((node.op.direction, limit))
        return None if tells is None else (node.operands[0], tells is holds)

    def _at_marks(self, builder: GraphBuilder, marks: int, chosen: int, places: Mapping[int, int]) -> int | None:
        """Zeros, with the elements of a tensor where marks are; None where these are not along its last axis.

        A mark beyond its row is none, and nothing can be read there: all of them have to be places of the row.
        """
        node, kind = self._graph.nodes[marks], self._graph.nodes[chosen].type
        op, last, indices = node.op, kind.rank - 1, node.operands[1]
        assert isinstance(op, ops.Scatter)
        if not writes_rows(op, kind.rank) or node.type.shape != kind.shape:
            return None
        size = places_on(self._graph, self._known, indices)
        is_inside = size is not None and at_most(size, kind.shape[last]) is True
        if not is_inside or any(at_most(1, n) is not True for n in kind.shape):
            return None
        rows = op.input_batching_dims
        own = (last,), rows, rows, (last,), op.index_vector_dim, tuple(1 for _ in kind.shape)
        read = builder.add(ops.Gather((), *own), places[chosen], places[indices])
        zero = builder.add(ops.Constant(kind, (0.0,)))
        return builder.add(replace(op, kind="sum"), zero, places[indices], read)
