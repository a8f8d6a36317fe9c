"""How many groups end in front of each row, where the numbers that rows are sorted by are counted.

``counts[g]`` is how many of some numbers are ``g``, ``ends`` is their running sum, and ``sum(ends[g] <= i over g)`` is
which group row ``i`` of the sorted numbers is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.numbering import is_never_twice
from rewright.proof.rewriting.laws.reading import (
    LONG,
    along,
    core,
    followed,
    is_list,
    number,
    plain,
    writes_rows,
    writes_whole_rows,
)
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
        ends = along(self._graph, self._known, first, axis) if self._is_index(second, 1 - axis) else None
        of = None if ends is None else self._ends_of(ends)
        if of is None or ends is None:
            return None
        (count,), (rows,) = self._graph.nodes[ends].type.shape, self._graph.nodes[of].type.shape
        return Groups(of, count) if isinstance(count, int) and node.type.shape == (rows,) else None

    def _ends_of(self, position: int) -> int | None:
        """The numbers of which a list has how many there are up to each whole number from nought on."""
        if position not in self._ends:
            node = self._graph.nodes[plain(self._graph, self._known, position)]
            sums = _holds_counts(node) and _is_running_sum(node)
            of = self._counted(plain(self._graph, self._known, node.operands[0])) if sums else None
            self._ends[position] = of if of is not None and self._are_whole(of) else None
        return self._ends[position]

    def _counted(self, position: int) -> int | None:
        """The numbers of which a list has how many are nought, one, two and so on."""
        node = self._graph.nodes[position]
        if not _holds_counts(node):
            return None
        if isinstance(node.op, ops.Scatter):
            return self._added(node.op, node)
        if not isinstance(node.op, ops.Reduce) or node.op.kind != "sum" or node.type.rank != 1:
            return None
        marked = self._marked(node.operands[0], tuple(sorted(node.op.dimensions)))
        if marked is not None:
            return marked
        found = self._test(node.operands[0], ("EQ",))
        if found is None:
            return None
        (axis,) = node.op.dimensions
        for one, other in (found.operands, found.operands[::-1]):
            of = along(self._graph, self._known, one, axis) if self._is_index(other, 1 - axis) else None
            if of is not None:
                return self._before_sorting(plain(self._graph, self._known, of))
        return None

    def _marked(self, position: int, added: tuple[int, ...]) -> int | None:
        """The same, of truths that are written at places of every row, none of them twice, added up over all rows."""
        node = self._graph.nodes[plain(self._graph, self._known, position)]
        node = self._graph.nodes[node.operands[0]] if isinstance(node.op, ops.Convert) else node
        op, rank = node.op, node.type.rank
        if not isinstance(op, ops.Scatter) or op.kind != "replace" or not writes_rows(op, rank):
            return None
        if added != tuple(range(rank - 1)):
            return None
        base, at, marks = node.operands
        is_empty, are_marks = (number(self._graph, self._known, p) == value for p, value in ((base, 0), (marks, 1)))
        if not is_empty or not are_marks or not is_never_twice(self._graph, self._known, op, at):
            return None
        places = plain(self._graph, self._known, core(self._graph, self._known, at))
        lists = (p for p, other in enumerate(self._graph.nodes) if other.operands == (places,) and _is_list(other))
        return next(lists, None)

    def _added(self, op: ops.Scatter, node: Node) -> int | None:
        """The same, of ones that are added up at the numbers."""
        base, at, ones = node.operands
        is_sum = op.kind == "sum" and number(self._graph, self._known, base) == 0
        by_place = writes_whole_rows(op, node.type) and is_list(self._graph.nodes[at].type, op.index_vector_dim)
        if node.type.rank != 1 or not by_place or not is_sum or number(self._graph, self._known, ones) != 1:
            return None
        of = along(self._graph, self._known, at, 0)
        return None if of is None else self._before_sorting(plain(self._graph, self._known, of))

    def _before_sorting(self, position: int) -> int:
        """Of sorted numbers those that were sorted: there are as many of each."""
        node = self._graph.nodes[position]
        is_sorted = isinstance(node.op, ops.Sort) and node.op.result == "values"
        return plain(self._graph, self._known, node.operands[0]) if is_sorted else position

    def _test(self, position: int, directions: Sequence[str]) -> Node | None:
        """A comparison along two axes, as numbers that are one where it holds."""
        test = self._graph.nodes[plain(self._graph, self._known, position)]
        if isinstance(test.op, ops.Convert):
            test = self._graph.nodes[test.operands[0]]
        return test if test.type.rank == 2 and _direction(test) in directions else None

    def _is_index(self, position: int, axis: int) -> bool:
        """Whether a tensor is the index along an axis."""
        while True:
            position = plain(self._graph, self._known, position)
            node = self._graph.nodes[position]
            if isinstance(node.op, ops.Iota):
                return node.op.dimension == axis and (node.type.dtype in LONG or node.type.dtype.is_float)
            inner = followed(self._graph, node, axis) if isinstance(node.op, ops.View) else None
            if inner is None:
                return False
            position, axis = node.operands[0], inner

    def _are_whole(self, position: int) -> bool:
        """Whether numbers are whole and none of them is below zero."""
        kind = self._graph.nodes[position].type
        return kind.dtype in LONG and kind.rank == 1 and self._signs.is_nonnegative(position)


def _direction(node: Node) -> str:
    return node.op.direction if isinstance(node.op, ops.Compare) else ""


def _holds_counts(node: Node) -> bool:
    """Whether a node has numbers that do not wrap, as short integers do."""
    return node.type.dtype in LONG or node.type.dtype.is_float


def _is_list(node: Node) -> bool:
    return node.type.rank == 1 and node.op == ops.Reshape(node.type.shape)


def _is_running_sum(node: Node) -> bool:
    """Whether a node has the sums of a list up to each of its elements."""
    op, size = node.op, node.type.shape[0] if node.type.rank == 1 else None
    if not isinstance(op, ops.ReduceWindow) or not isinstance(size, int):
        return False
    return op.kind == "sum" and (op.window, op.strides, op.padding) == ((size,), (1,), ((size - 1, 0),))


__all__ = ["Counting", "Groups"]
