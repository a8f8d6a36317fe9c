"""How many groups end in front of each row, where the numbers that rows are sorted by are counted.

``counts[g]`` is how many of some numbers are ``g``, ``ends`` is their running sum, and ``sum(ends[g] <= i over g)`` is
which group row ``i`` of the sorted numbers is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.analysis.evenness import follows
from rewright.ir.graph import Graph, Node
from rewright.ops.facts import Facts, fits
from rewright.proof.rewriting.laws.reading import LONG, number
from rewright.proof.rewriting.laws.signs import Signs


@dataclass(frozen=True)
class Groups:
    """Groups of equal numbers, of which those below ``count`` are counted."""

    of: int
    count: int


class Counting:
    """Reads counts of numbers, and what is made of them, off a program."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self._signs = Signs(graph, known)
        self._ends: dict[int, int | None] = {}

    def groups(self, position: int) -> Groups | None:
        """The groups of which a node says how many end at or in front of each row; None for other nodes."""
        node = self._graph.nodes[position]
        if not isinstance(node.op, ops.Reduce) or node.op.kind != "sum" or node.type.rank != 1:
            return None
        found = self._test(node.operands[0], ("LE", "GE"))
        if found is None or node.type.dtype not in LONG:
            return None
        (axis,) = node.op.dimensions
        first, second = found.operands if _direction(found) == "LE" else found.operands[::-1]
        ends = self._along(first, axis) if self._is_index(second, 1 - axis) else None
        of = None if ends is None else self._ends_of(ends)
        if of is None or ends is None:
            return None
        (count,), (rows,) = self._graph.nodes[ends].type.shape, self._graph.nodes[of].type.shape
        return Groups(of, count) if isinstance(count, int) and node.type.shape == (rows,) else None

    def _ends_of(self, position: int) -> int | None:
        """The numbers of which a list has how many there are up to each whole number from nought on."""
        if position not in self._ends:
            node = self._graph.nodes[self._plain(position)]
            of = self._counted(self._plain(node.operands[0])) if _is_running_sum(node) else None
            self._ends[position] = of if of is not None and self._are_whole(of) else None
        return self._ends[position]

    def _counted(self, position: int) -> int | None:
        """The numbers of which a list has how many are nought, one, two and so on."""
        node = self._graph.nodes[position]
        if isinstance(node.op, ops.Scatter):
            return self._added(node.op, node)
        if not isinstance(node.op, ops.Reduce) or node.op.kind != "sum" or node.type.rank != 1:
            return None
        found = self._test(node.operands[0], ("EQ",))
        if found is None:
            return None
        (axis,) = node.op.dimensions
        for one, other in (found.operands, found.operands[::-1]):
            of = self._along(one, axis) if self._is_index(other, 1 - axis) else None
            if of is not None:
                return self._before_sorting(self._plain(of))
        return None

    def _added(self, op: ops.Scatter, node: Node) -> int | None:
        """The same, of ones that are added up at the numbers."""
        base, at, ones = node.operands
        shape = self._graph.nodes[at].type.shape
        plain = op.inserted_window_dims == op.scatter_dims_to_operand_dims == (0,) and not op.update_window_dims
        is_sum = op.kind == "sum" and number(self._graph, self._known, base) == 0
        is_list = len(shape) == op.index_vector_dim == 1 or (len(shape) == 2 and shape[1] == op.index_vector_dim == 1)
        if not plain or not is_sum or not is_list or number(self._graph, self._known, ones) != 1:
            return None
        of = self._along(at, 0)
        return None if of is None else self._before_sorting(self._plain(of))

    def _before_sorting(self, position: int) -> int:
        """Of sorted numbers those that were sorted: there are as many of each."""
        node = self._graph.nodes[position]
        is_sorted = isinstance(node.op, ops.Sort) and node.op.result == "values"
        return self._plain(node.operands[0]) if is_sorted else position

    def _test(self, position: int, directions: Sequence[str]) -> Node | None:
        """A comparison along two axes, as numbers that are one where it holds."""
        dtype, test = self._graph.nodes[position].type.dtype, self._graph.nodes[self._plain(position)]
        if isinstance(test.op, ops.Convert):
            test = self._graph.nodes[test.operands[0]]
        counts = dtype in LONG or dtype.is_float
        return test if counts and test.type.rank == 2 and _direction(test) in directions else None

    def _along(self, position: int, axis: int) -> int | None:
        """The list that a tensor has along an axis, whatever its other coordinates."""
        while True:
            position = self._plain(position)
            node = self._graph.nodes[position]
            if node.type.rank == 1:
                return position
            if not isinstance(node.op, ops.View):
                return None
            (source,) = node.operands
            inner = self._followed(node, axis)
            shape = self._graph.nodes[source].type.shape
            if inner is None or any(size != 1 for k, size in enumerate(shape) if k != inner):
                return None
            position, axis = source, inner

    def _is_index(self, position: int, axis: int) -> bool:
        """Whether a tensor is the index along an axis."""
        while True:
            position = self._plain(position)
            node = self._graph.nodes[position]
            if isinstance(node.op, ops.Iota):
                return node.op.dimension == axis and (node.type.dtype in LONG or node.type.dtype.is_float)
            inner = self._followed(node, axis) if isinstance(node.op, ops.View) else None
            if inner is None:
                return False
            position, axis = node.operands[0], inner

    def _followed(self, node: Node, axis: int) -> int | None:
        """The axis of a view's operand that one of its axes follows."""
        found = follows(self._graph, node)
        return None if found is None or axis not in found[0] else found[0].index(axis)

    def _plain(self, position: int) -> int:
        """What is behind casts that keep whole numbers."""
        node = self._graph.nodes[position]
        while isinstance(node.op, ops.Convert) and self._keeps_whole(node):
            (position,) = node.operands
            node = self._graph.nodes[position]
        return position

    def _keeps_whole(self, node: Node) -> bool:
        source, target = node.operands[0], node.type.dtype
        is_whole = self._known[source].whole and self._known[source].is_finite
        return is_whole and (target.is_float or fits(self._known[source], target))

    def _are_whole(self, position: int) -> bool:
        """Whether numbers are whole and none of them is below zero."""
        kind = self._graph.nodes[position].type
        return kind.dtype in LONG and kind.rank == 1 and self._signs.is_nonnegative(position)


def _direction(node: Node) -> str:
    return node.op.direction if isinstance(node.op, ops.Compare) else ""


def _is_running_sum(node: Node) -> bool:
    """Whether a node has the sums of a list up to each of its elements."""
    op, size = node.op, node.type.shape[0] if node.type.rank == 1 else None
    if not isinstance(op, ops.ReduceWindow) or not isinstance(size, int):
        return False
    return op.kind == "sum" and (op.window, op.strides, op.padding) == ((size,), (1,), ((size - 1, 0),))


__all__ = ["Counting", "Groups"]
