"""What is computed with rows of a table that a choice picks, as a sum over all rows.

A mixture may look up the weights of each chosen expert, or go over all experts and add up where they were chosen. The
places that a choice gives are places of the row that is chosen from. So what is computed with the rows at these places,
for each place by itself, is a sum over all rows: where a place is that row, what is computed with it, and zero
elsewhere. Exactly one of these is not left out, so that nothing is asked of what is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright import ops
from rewright.ir.dims import Dim, Shape
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import TensorType
from rewright.ops.facts import Facts, integer_range
from rewright.proof.rewriting.laws.following import Placed, trace_places
from rewright.proof.rewriting.laws.reading import core, places_on

_MOST_ROWS = 256
MOST = 20_000
"""Operators that the cases of a program may take."""


class Rows:
    """``f(table[top_k(x).indices])`` is the sum over r of ``where(top_k(x).indices == r, f(table[r]), 0)``."""

    def __init__(self, graph: Graph, known: Sequence[Facts]) -> None:
        self._graph, self._known = graph, known
        self.looked = {p: found for p, node in enumerate(graph.nodes) if (found := self._look_up(node)) is not None}
        """By node that reads whole rows of a float table at places of a choice, which lie on the table: its result."""
        self.followed: Mapping[int, Placed] = self._followed() if self.looked else {}
        """All nodes that are computed with chosen rows, for each place by itself."""

    def __call__(self, builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        """What is computed with chosen rows, or a sum of it over the places, as a sum over all rows."""
        own, node = self.summed_rows(position), self._graph.nodes[position]
        part = self.part(position if own is None else own)
        rows = self.rows(part)
        if not part or rows is None or len(part) * rows > MOST or not node.type.dtype.is_float:
            return None
        cases = self._cases(builder, part, rows, places)
        # A sum over the places is taken row by row, as programs that go over all rows have it.
        return _add(builder, cases if own is None else [builder.add(node.op, case) for case in cases])

    def summed_rows(self, position: int) -> int | None:
        """What a node adds up over places of a choice, beside which it does not depend on any."""
        node = self._graph.nodes[position]
        is_sum = isinstance(node.op, ops.Reduce) and node.op.kind == "sum" and position not in self.followed
        return node.operands[0] if is_sum and node.operands[0] in self.followed else None

    def part(self, position: int) -> list[int]:
        """The nodes that one is made of and that are computed with chosen rows, in order."""
        seen, stack = set[int](), [position]
        while stack:
            own = stack.pop()
            if own in self.followed and own not in seen:
                seen.add(own)
                stack.extend(self._graph.nodes[own].operands if own not in self.looked else ())
        return sorted(seen)

    def rows(self, part: Sequence[int]) -> int | None:
        """How many rows the tables of a part have; None where they have several numbers of rows."""
        found = {self._graph.nodes[self._graph.nodes[p].operands[0]].type.shape[0] for p in part if p in self.looked}
        (count,) = found if len(found) == 1 else (None,)
        return count if isinstance(count, int) else None

    def _look_up(self, node: Node) -> Placed | None:
        """The places that a node reads whole rows at, one for every element along some of its axes."""
        if not isinstance(node.op, ops.Gather) or not node.type.dtype.is_float or node.op.start_index_map != (0,):
            return None
        shape = self._graph.nodes[node.operands[0]].type.shape
        rows = shape[0]
        is_plain = not node.op.operand_batching_dims and node.op.collapsed_slice_dims == (0,)
        reads_rows = is_plain and len(shape) > 1 and node.op.slice_sizes[1:] == shape[1:]
        if not reads_rows or not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
            return None
        at = core(self._graph, self._known, node.operands[1])
        size, kind = places_on(self._graph, self._known, at), self._graph.nodes[at].type
        axes = tuple(axis for axis in range(node.type.rank) if axis not in node.op.offset_dims)
        is_inside = isinstance(size, int) and size <= rows and rows - 1 <= integer_range(kind.dtype)[1]
        return Placed(at, axes) if is_inside and kind.shape == tuple(node.type.shape[a] for a in axes) else None

    def _followed(self) -> dict[int, Placed]:
        found: dict[int, Placed] = {}
        for position, node in enumerate(self._graph.nodes):
            own = self.looked.get(position)
            if own is None or node.operands[0] in found:
                own = trace_places(self._graph, node, found) if any(p in found for p in node.operands) else None
            if own is not None:
                found[position] = own
        return found

    def _cases(self, builder: GraphBuilder, part: Sequence[int], rows: int, places: Mapping[int, int]) -> list[int]:
        """By row what the last node of a part is where the place is that row, and zero elsewhere."""
        kind, own = self._graph.nodes[part[-1]].type, self.followed[part[-1]]
        at = places[own.core]
        spread = builder.add(ops.BroadcastInDim(kind.shape, own.axes), at)
        zero = builder.add(ops.Constant(kind, (0.0,)))
        cases: list[int] = []
        for row in range(rows):
            number = builder.add(ops.Constant(TensorType(kind.shape, builder.type(at).dtype), (row,)))
            here = builder.add(ops.Compare("EQ"), spread, number)
            cases.append(builder.add(ops.Select(), here, self._case(builder, part, row, places), zero))
        return cases

    def _case(self, builder: GraphBuilder, part: Sequence[int], row: int, places: Mapping[int, int]) -> int:
        """The last node of a part, with one row in the place of every look-up."""
        made: dict[int, int] = {}
        for position in part:
            node = self._graph.nodes[position]
            if position in self.looked and isinstance(node.op, ops.Gather):
                made[position] = _row(builder, places[node.operands[0]], node.op, node.type.shape, row)
            else:
                made[position] = builder.add(node.op, *(made[p] if p in made else places[p] for p in node.operands))
        return made[part[-1]]


def _add(builder: GraphBuilder, cases: Sequence[int]) -> int:
    total, *others = cases
    for case in others:
        total = builder.add(ops.Add(), total, case)
    return total


def _row(builder: GraphBuilder, table: int, op: ops.Gather, shape: Shape, row: int) -> int:
    """One row of a table wherever a look-up reads one."""
    sizes: Shape = builder.type(table).shape
    starts: list[Dim] = [row, *(0 for _ in sizes[1:])]
    limits: list[Dim] = [row + 1, *sizes[1:]]
    cut = builder.add(ops.Slice(tuple(starts), tuple(limits), tuple(1 for _ in sizes)), table)
    flat = builder.add(ops.Reshape(sizes[1:]), cut)
    return builder.add(ops.BroadcastInDim(shape, op.offset_dims), flat)
