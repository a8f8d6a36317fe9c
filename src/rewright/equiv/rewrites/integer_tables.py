"""Whole numbers that programs make of floats and of no input, such as the buckets of relative positions, as tables.

A logarithm is cut off to a whole number in one program, and written out in the next. Both get the numbers. What is cut
off is taken as exact: a number that only rounding takes from a whole one stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType
from rewright.ops.base import Array, TensorOperator
from rewright.ops.reference.tables import periodic_table
from rewright.proof.rewriting.parts import depends_on_inputs
from rewright.refine.rewriting.drafts import Draft

_MOST = 1 << 16
"""Elements of a tensor that is computed."""
_CLOSE = 1e-7
"""Floats that are compared, and nearer to each other than this, may be other ones in the type that they have."""
_EXACT = 1e-12
"""What some operators in double precision move a number by is less."""
_EXACT_SINGLE = 2.0**-25
"""What is as near to a whole number is that number in single precision; what is farther away is another one."""
_FILLERS = 12345.0, -12345.0
"""What an infinite number is cut off to: nothing is known of it, and it may be chosen nowhere."""


def with_wholes(draft: Draft) -> Draft:
    """The program with what it makes of floats, and cuts off, and of tables, written out."""
    graph = draft.graph
    if not any(_cuts(graph, node) or _is_table(node) for node in graph.nodes):
        return draft
    one, other = (_Numbers(graph, filler) for filler in _FILLERS)
    return one.written(other, draft)


class _Numbers:
    """What a program computes of no input, as far as that is made of whole numbers in the end."""

    def __init__(self, graph: Graph, filler: float) -> None:
        self.graph, self._filler = graph, filler
        self._depends = depends_on_inputs(graph)
        self._values: dict[int, Array] = {}
        self._told = [False] * len(graph.nodes)
        """Whether a node is made of a table that is written out, or of what was cut off."""
        self._cut = [False] * len(graph.nodes)
        """Whether it is made of what was cut off."""
        wanted = graph.ancestors(p for p, node in enumerate(graph.nodes) if self._is_whole(p, node))
        with np.errstate(all="ignore"):
            for position in sorted(wanted):
                self._compute(position)

    def written(self, other: _Numbers, draft: Draft) -> Draft:
        """The program with tables for whole numbers, where no number is one that another filler makes another one."""
        last = {
            p
            for p, node in enumerate(self.graph.nodes)
            if p in self._values
            and self._told[p]
            and self._is_whole(p, node)
            and not self._repeats(p)
            and np.array_equal(self._values[p], other._values[p])
        }

        def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
            if position not in last:
                return None
            flat = [int(v) for v in self._values[position].reshape(-1)]
            if len(set(flat)) == 1:
                return builder.add(ops.Constant(node.type, (flat[0],)))
            return periodic_table(builder, self._values[position].astype(np.int64), node.type.dtype)

        return _in_rows(draft.rebuild(make)) if last else draft

    def _repeats(self, position: int) -> bool:
        """Whether a node is made of smaller tables that are repeated, of which places are told apart more easily."""
        op = self.graph.nodes[position].op
        if self._cut[position] or position not in self._values or not isinstance(op, ops.Layout | ops.Elementwise):
            return False
        return self._is_constant_along(position) or any(map(self._repeats, self.graph.nodes[position].operands))

    def _is_constant_along(self, position: int) -> bool:
        """Whether numbers are the same along an axis."""
        value = self._values[position]
        return any(n > 1 and bool((value == value.take([0], axis)).all()) for axis, n in enumerate(value.shape))

    def _is_whole(self, position: int, node: Node) -> bool:
        return node.type.dtype.is_integer and not self._depends[position]

    def _compute(self, position: int) -> None:
        node = self.graph.nodes[position]
        before = [self._values.get(p) for p in node.operands]
        operands = [value for value in before if value is not None]
        size = node.type.size()
        op = node.op
        if (
            len(operands) < len(before)
            or not isinstance(size, int)
            or size > _MOST
            or not isinstance(op, TensorOperator)
        ):
            return
        cuts = _cuts(self.graph, node)
        if cuts:
            # What is rounded may go either way in the middle, too.
            single = self.graph.nodes[node.operands[0]].type.dtype is not DType.F64
            near = _EXACT_SINGLE if single else _EXACT
            operands = [self._exact(operands[0], 2 if isinstance(op, ops.RoundNearestEven) else 1, near)]
        if isinstance(node.op, ops.Compare) and _are_close(operands):
            return
        try:
            self._values[position] = op.compute(operands, np.float64)
        except (RewrightError, ArithmeticError, ValueError, NotImplementedError):
            return
        self._cut[position] = cuts or any(self._cut[p] for p in node.operands)
        self._told[position] = self._cut[position] or _is_table(node) or any(self._told[p] for p in node.operands)

    def _exact(self, value: Array, parts: int, near: float) -> Array:
        """Whole numbers, or halves of them, where only rounding makes others of them: by a share of ``near``."""
        whole = np.round(value * parts) / parts
        moved = (whole != value) & (np.abs(value - whole) <= near * np.maximum(1.0, np.abs(whole)))
        return np.where(np.isfinite(value), np.where(moved, whole, value), self._filler)


def _in_rows(draft: Draft) -> Draft:
    """The program with what is read at the places of tables read in one row, so that tables of other shapes are one."""
    graph = draft.graph

    def is_table(position: int) -> bool:
        node = graph.nodes[position]
        return isinstance(node.op, ops.Reshape) and isinstance(graph.nodes[node.operands[0]].op, ops.Constant)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if isinstance(node.op, ops.Gather) and is_table(node.operands[1]):
            return _in_a_row(builder, node.op, node, operands)
        return None

    return draft.rebuild(make)


def _in_a_row(builder: GraphBuilder, op: ops.Gather, node: Node, operands: tuple[int, ...]) -> int | None:
    """What is read at the places of a table, read in one row; None where places have several numbers."""
    index = builder.node(operands[1])
    rank = index.type.rank
    is_plain = op.index_vector_dim == rank and not op.operand_batching_dims
    if not isinstance(index.op, ops.Reshape) or not is_plain or op.offset_dims != tuple(range(rank, node.type.rank)):
        return None
    own = tuple(range(1, node.type.rank - rank + 1))
    row = builder.add(replace(op, offset_dims=own, index_vector_dim=1), operands[0], index.operands[0])
    return builder.add(ops.Reshape(node.type.shape), row)


def _is_table(node: Node) -> bool:
    """Whether a node holds several whole numbers."""
    return isinstance(node.op, ops.Constant) and len(node.op.values) > 1 and node.type.dtype.is_integer


def _cuts(graph: Graph, node: Node) -> bool:
    """Whether a node cuts off what is behind the point."""
    is_cast = isinstance(node.op, ops.Convert) and node.type.dtype.is_integer
    is_float = bool(node.operands) and graph.nodes[node.operands[0]].type.dtype.is_float
    return is_float and (is_cast or isinstance(node.op, ops.RoundingToWhole))


def _are_close(operands: Sequence[Array]) -> bool:
    """Whether floats are compared that rounding may have made other ones."""
    left, right = operands
    if left.dtype.kind != "f":
        return False
    near = np.abs(left - right) <= _CLOSE * np.maximum(1.0, np.abs(right))
    return bool((near & (left != right)).any())
