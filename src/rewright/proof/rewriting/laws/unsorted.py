"""What is computed with rows that a sort has put in order, with the rows where they were.

A mixture sorts its tokens by expert, computes each group's product, and puts the results back. Along the axis of a sort
every tensor that is computed row by row is another one with its rows exchanged: ``f(x[p])`` is ``f(x)[p]``, where ``p``
are the places that the sort gave. So reading it at ``argsort(p)`` gives ``f(x)``, and a sum over rows, a product that
adds up over them, and what is added at places of rows are those of ``f(x)``. Of whole numbers that are not negative
``ends <= i``, where ``ends[g]`` is how many are at most ``g``, counts the groups in front of row ``i``: as many as the
number that is sorted there, or all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rewright import ops
from rewright.analysis.evenness import Evenness, keeps_rows
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.counting import Counting
from rewright.proof.rewriting.laws.reading import LONG, core, is_list, number, reads_whole_rows, writes_whole_rows


@dataclass(frozen=True)
class _Sorted:
    """A tensor whose rows along an axis are those of another one, in the order of a sort."""

    by: tuple[int, bool]
    """What was sorted, and whether its largest number comes first."""
    axis: int


class Unsorted:
    """``f(x[p])[argsort(p)]`` is ``f(x)``, and ``sum(f(x[p]))`` is ``sum(f(x))``."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self._evenness = Evenness(graph)
        self._counting = Counting(graph, known)
        self._sorted: dict[int, _Sorted] = {}
        sorts = any(isinstance(node.op, ops.Sort) for node in graph.nodes)
        for position, node in enumerate(graph.nodes if sorts else ()):
            found = self._place(position, node)
            if found is not None:
                self._sorted[position] = found
        self._made: dict[int, int] = {}
        self._builder: GraphBuilder | None = None

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """What leaves the order of a sort, made without it."""
        node = self._graph.nodes[position]
        rows = self._put_back(node)
        if position in self._sorted or (rows is None and not self._leaves(node)):
            return None
        if builder is not self._builder:
            self._builder, self._made = builder, {}
        if rows is not None:
            return self._make_anew(builder, rows, places)
        return builder.add(node.op, *(self._make(builder, p, places) for p in node.operands))

    # --- which tensors are in order -------------------------------------------------------------------------------
    def _place(self, position: int, node: Node) -> _Sorted | None:
        if isinstance(node.op, ops.Sort) and node.type.rank == 1:
            size = node.type.shape[0]
            is_known = isinstance(size, int) and size > 0
            return _Sorted((node.operands[0], node.op.descending), 0) if is_known else None
        if isinstance(node.op, ops.Scatter):
            return self._writes_in_order(node)
        if isinstance(node.op, ops.Gather):
            return self._reads_in_order(node.op, node)
        found = keeps_rows(self._graph, node)
        if found is None:
            return self._counts_groups(position)
        own = {
            (place.by, axes[place.axis])
            for p, axes in zip(node.operands, found, strict=True)
            if (place := self._sorted.get(p)) is not None
        }
        by, axis = next(iter(own)) if len(own) == 1 else ((-1, False), None)
        if axis is None:
            return self._counts_groups(position)
        for p, axes in zip(node.operands, found, strict=True):
            if p not in self._sorted and not self._evenness.is_even(p, _along(axes, axis)):
                return None
        return _Sorted(by, axis)

    def _reads_in_order(self, op: ops.Gather, node: Node) -> _Sorted | None:
        """What is read at places that are in order, from what is not."""
        place = self._sorted.get(node.operands[1])
        if place is None or node.operands[0] in self._sorted or place.axis in op.start_indices_batching_dims:
            return None
        indexed = [axis for axis in range(self._graph.nodes[node.operands[1]].type.rank) if axis != op.index_vector_dim]
        result = [axis for axis in range(node.type.rank) if axis not in op.offset_dims]
        return replace(place, axis=result[indexed.index(place.axis)]) if place.axis in indexed else None

    def _writes_in_order(self, node: Node) -> _Sorted | None:
        """Rows that are put in order: each is written at the place that the sort gives it, into nothing."""
        base, at, updates = node.operands
        op, kind = node.op, node.type
        assert isinstance(op, ops.Scatter)
        whole = writes_whole_rows(op, kind) and self._graph.nodes[updates].type == kind
        fresh = op.kind == "replace" or (op.kind == "sum" and number(self._graph, self._known, base) == 0)
        by = self._inverse(at) if whole and fresh and is_list(self._graph.nodes[at].type, op.index_vector_dim) else None
        return None if by is None or kind.shape[0] != self._graph.nodes[by[0]].type.shape[0] else _Sorted(by, 0)

    def _counts_groups(self, position: int) -> _Sorted | None:
        """The number of groups in front of each row, where these are groups of what was sorted."""
        found = self._counting.groups(position)
        return None if found is None else _Sorted((found.of, False), 0)

    def _inverse(self, position: int) -> tuple[int, bool] | None:
        """What was sorted, where a list has the places in order of all of it: ``argsort`` of what the sort gave."""
        while True:
            position = core(self._graph, self._known, position)
            node = self._graph.nodes[position]
            if not isinstance(node.op, ops.Gather) or not self._reads_positions(node.op, node):
                break
            position = node.operands[1]  # arange(n)[k] is k
        if not isinstance(node.op, ops.Sort) or node.op.result != "indices" or node.op.descending:
            return None
        before = core(self._graph, self._known, node.operands[0])
        sort, place = self._graph.nodes[before].op, self._sorted.get(before)
        gives_places = isinstance(sort, ops.Sort) and sort.result == "indices" and place is not None
        return place.by if gives_places and place is not None else None

    def _reads_positions(self, op: ops.Gather, node: Node) -> bool:
        """Whether a list is read of the positions along an axis."""
        table, at = (self._graph.nodes[p] for p in node.operands)
        counts = isinstance(table.op, ops.Iota) and table.type.rank == 1 and table.type.dtype in LONG
        return counts and reads_whole_rows(op, table.type) and is_list(at.type, op.index_vector_dim)

    # --- what leaves the order ------------------------------------------------------------------------------------
    def _leaves(self, node: Node) -> bool:
        """Whether a node does not depend on the order of the rows that it is made of."""
        own = {k: place for k, p in enumerate(node.operands) if (place := self._sorted.get(p)) is not None}
        if not own or len({place.by for place in own.values()}) > 1:
            return False
        op = node.op
        if isinstance(op, ops.Reduce):
            return own[0].axis in op.dimensions
        if isinstance(op, ops.DotGeneral):
            return self._adds_up(op, node, own)
        return isinstance(op, ops.Scatter) and self._adds_rows(op, node, own)

    def _adds_up(self, op: ops.DotGeneral, node: Node, own: Mapping[int, _Sorted]) -> bool:
        """Whether a product adds up over rows, which both of its factors have in order, or one of them all alike."""
        contracted = op.lhs_contracting, op.rhs_contracting
        axes = {contracted[k].index(place.axis) for k, place in own.items() if place.axis in contracted[k]}
        if len(axes) != 1 or any(place.axis not in contracted[k] for k, place in own.items()):
            return False
        (number_of_axis,) = axes
        others = ((k, p) for k, p in enumerate(node.operands) if k not in own)
        return all(self._evenness.is_even(p, (contracted[k][number_of_axis],)) for k, p in others)

    def _adds_rows(self, op: ops.Scatter, node: Node, own: Mapping[int, _Sorted]) -> bool:
        """Whether rows are added at places that go with them."""
        _, at, updates = node.operands
        if op.kind != "sum" or 0 in own or 1 not in own:
            return False
        if own[1].axis == op.index_vector_dim or own[1].axis in op.scatter_indices_batching_dims:
            return False
        places = [axis for axis in range(self._graph.nodes[at].type.rank) if axis != op.index_vector_dim]
        kept = [axis for axis in range(self._graph.nodes[updates].type.rank) if axis not in op.update_window_dims]
        if len(places) != len(kept):
            return False
        axis = kept[places.index(own[1].axis)]
        return own[2].axis == axis if 2 in own else self._evenness.is_even(updates, (axis,))

    def _put_back(self, node: Node) -> int | None:
        """The rows in order that a node puts back all of, reading or writing; None for other nodes."""
        if not isinstance(node.op, ops.Gather | ops.Scatter):
            return None
        at, rows = node.operands[1], node.operands[0 if isinstance(node.op, ops.Gather) else 2]
        place, kind = self._sorted.get(rows), self._graph.nodes[rows].type
        if place is None or place.axis != 0 or node.type != kind:
            return None
        if not is_list(self._graph.nodes[at].type, node.op.index_vector_dim):
            return None
        if isinstance(node.op, ops.Gather):
            return rows if reads_whole_rows(node.op, kind) and self._inverse(at) == place.by else None
        is_empty = node.op.kind == "sum" and number(self._graph, self._known, node.operands[0]) == 0
        order = self._sorted.get(core(self._graph, self._known, at))
        is_own = order is not None and order.by == place.by and self._is_order(at)
        return rows if is_empty and is_own and writes_whole_rows(node.op, kind) else None

    def _reads_all(self, op: ops.Gather, node: Node) -> bool:
        """Whether a node reads all rows of a tensor, in the order of a sort."""
        data, at = (self._graph.nodes[p].type for p in node.operands)
        whole = node.type == data and reads_whole_rows(op, data) and is_list(at, op.index_vector_dim)
        return whole and self._is_order(node.operands[1])

    def _is_order(self, position: int) -> bool:
        """Whether indices are the places that a sort gave."""
        op = self._graph.nodes[core(self._graph, self._known, position)].op
        return isinstance(op, ops.Sort) and op.result == "indices"

    # --- tensors with their rows where they were ------------------------------------------------------------------
    def _make(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int:
        """A tensor with its rows where they were, if it is in order."""
        if position not in self._sorted:
            return places[position]
        if position not in self._made:
            self._made[position] = self._make_anew(builder, position, places)
        return self._made[position]

    def _make_anew(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int:
        node = self._graph.nodes[position]
        if isinstance(node.op, ops.Sort):
            return places[node.operands[0]] if node.op.result == "values" else builder.add(ops.Iota(node.type, 0))
        if isinstance(node.op, ops.Scatter):
            return places[node.operands[2]]
        if isinstance(node.op, ops.Gather) and self._reads_all(node.op, node):
            return places[node.operands[0]]
        groups = self._counting.groups(position)
        if groups is None:
            return builder.add(node.op, *(self._make(builder, p, places) for p in node.operands))
        kind = builder.type(places[groups.of])
        most = builder.add(ops.Constant(kind, (groups.count,)))
        least = builder.add(ops.Minimum(), places[groups.of], most)
        return builder.add(ops.Convert(node.type.dtype), least) if node.type != kind else least


def _along(axes: Sequence[int | None], axis: int) -> list[int]:
    """The axes of an operand that an axis of the result follows."""
    return [own for own, to in enumerate(axes) if to == axis]


__all__ = ["Unsorted"]
