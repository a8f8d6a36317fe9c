"""What is computed with rows of a table that a choice picks, as a sum over all rows.

A mixture may look up the weights of each chosen expert, or go over all experts and add up where they were chosen. The
places that a choice gives are places of the row that is chosen from. So what is computed with the rows at these places,
for each place by itself, is a sum over all rows: where a place is that row, what is computed with it. Programs of which
only some look rows up get such sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.equiv.building import pruned, rebuilt
from rewright.equiv.fillings import splat
from rewright.ir.dims import Dim, Shape, product
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import TensorType
from rewright.ops.elementwise import Elementwise

_MOST_ROWS = 256
_MOST = 20_000
"""Operators that the cases of a program may take."""
_MOVES = (ops.BroadcastInDim, ops.Reshape, ops.Slice, ops.Transpose)


@dataclass(frozen=True)
class _Placed:
    """A tensor of which an element depends on an index tensor at one place alone."""

    core: int
    """The index tensor."""
    axes: tuple[int, ...]
    """The axes of the place, in the order of the index tensor's axes."""


@dataclass(frozen=True)
class _Looked:
    """A look-up of whole rows at places of a choice."""

    core: int
    rows: int


def cases_alike(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with what is computed with chosen rows as sums; as they are where all or none look rows up."""
    found = [_look_ups(graph) for graph in graphs]
    if all(found) or not any(found):
        return tuple(graphs)
    return tuple(_by_cases(graph, looked) if looked else graph for graph, looked in zip(graphs, found, strict=True))


# --- look-ups


def _look_ups(graph: Graph) -> dict[int, _Looked]:
    """Nodes that read whole rows of a float table at places that a choice gave, which lie on the table."""
    found: dict[int, _Looked] = {}
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Gather) and node.type.dtype.is_float:
            rows = graph.nodes[node.operands[0]].type.shape[0] if node.op.start_index_map == (0,) else None
            if not isinstance(rows, int) or rows > _MOST_ROWS or not _reads_rows(graph, node.op, node):
                continue
            core = _core(graph, node.operands[1])
            size = _places(graph, core)
            if size is not None and size <= rows and graph.nodes[core].type.shape == _batch(node.op, node):
                found[position] = _Looked(core, rows)
    return found


def _reads_rows(graph: Graph, op: ops.Gather, node: Node) -> bool:
    shape = graph.nodes[node.operands[0]].type.shape
    is_plain = not op.operand_batching_dims and op.collapsed_slice_dims == (0,)
    return is_plain and len(shape) > 1 and op.slice_sizes[1:] == shape[1:]


def _batch(op: ops.Gather, node: Node) -> Shape:
    return tuple(size for axis, size in enumerate(node.type.shape) if axis not in op.offset_dims)


def _core(graph: Graph, position: int) -> int:
    """What has the same numbers: without casts, tests for places below nought, and axes of one index at the end."""
    node = graph.nodes[position]
    if isinstance(node.op, ops.Convert) and graph.nodes[node.operands[0]].type.dtype.is_integer:
        return _core(graph, node.operands[0])
    if isinstance(node.op, ops.Select) and _asks_for_below(graph, node):
        return _core(graph, node.operands[2])
    if isinstance(node.op, ops.Reshape) and node.type.shape == (*graph.nodes[node.operands[0]].type.shape, 1):
        return _core(graph, node.operands[0])
    return position


def _asks_for_below(graph: Graph, node: Node) -> bool:
    test = graph.nodes[node.operands[0]]
    is_below = isinstance(test.op, ops.Compare) and test.op.direction == "LT"
    return is_below and test.operands[0] == node.operands[2] and splat(graph, test.operands[1]) == 0


def _places(graph: Graph, position: int) -> int | None:
    """The length of the axis that all elements of a tensor are places on; None where they are no places."""
    position = _core(graph, position)
    node = graph.nodes[position]
    if isinstance(node.op, _MOVES):
        return _places(graph, node.operands[0])
    if isinstance(node.op, ops.TopK | ops.Sort) and node.op.result == "indices":
        source = graph.nodes[node.operands[0]].type
        size = source.shape[node.op.dimension if isinstance(node.op, ops.Sort) else source.rank - 1]
        return size if isinstance(size, int) else None
    return None


# --- what depends on one place


def _followed(graph: Graph, looked: Mapping[int, _Looked]) -> dict[int, _Placed]:
    """All nodes that are computed with chosen rows, for each place by itself."""
    found: dict[int, _Placed] = {}
    for position, node in enumerate(graph.nodes):
        own = looked.get(position)
        if own is not None and node.operands[0] not in found:
            assert isinstance(node.op, ops.Gather)
            axes = tuple(axis for axis in range(node.type.rank) if axis not in node.op.offset_dims)
            found[position] = _Placed(own.core, axes)
        elif any(p in found for p in node.operands):
            placed = _placed(graph, node, found)
            if placed is not None:
                found[position] = placed
    return found


def _placed(graph: Graph, node: Node, known: Mapping[int, _Placed]) -> _Placed | None:
    own = {known[p] for p in node.operands if p in known}
    if isinstance(node.op, ops.DotGeneral):
        return _multiplied(graph, node.op, node, known)
    if len(own) != 1:
        return None
    (placed,) = own
    if isinstance(node.op, Elementwise):
        return placed
    if len(node.operands) != 1:
        return None
    shape = graph.nodes[node.operands[0]].type.shape
    axes = [_moved(node, shape, axis) for axis in placed.axes]
    return _Placed(placed.core, tuple(a for a in axes if a is not None)) if None not in axes else None


def _moved(node: Node, shape: Shape, axis: int) -> int | None:
    """Where an axis of the only operand is in the result; None where it is not, or not as a whole."""
    op, size = node.op, shape[axis]
    if isinstance(op, ops.BroadcastInDim):
        place = op.dimensions[axis]
        return place if node.type.shape[place] == size else None
    if isinstance(op, ops.Transpose):
        return op.permutation.index(axis)
    if isinstance(op, ops.Reduce):
        return None if axis in op.dimensions else axis - sum(1 for other in op.dimensions if other < axis)
    if isinstance(op, ops.Slice):
        return axis if node.type.shape[axis] == size and op.stride[axis] == 1 else None
    if isinstance(op, ops.Reshape):
        before = product(shape[:axis])
        same = [k for k, n in enumerate(node.type.shape) if n == size and product(node.type.shape[:k]) == before]
        return same[0] if len(same) == 1 or (same and size != 1) else None
    return None


def _multiplied(graph: Graph, op: ops.DotGeneral, node: Node, known: Mapping[int, _Placed]) -> _Placed | None:
    found: list[_Placed] = []
    ranks = [graph.nodes[p].type.rank for p in node.operands]
    count = len(op.lhs_batch)
    for side, operand in enumerate(node.operands):
        placed = known.get(operand)
        if placed is None:
            continue
        batch, contracted = ((op.lhs_batch, op.lhs_contracting), (op.rhs_batch, op.rhs_contracting))[side]
        if any(axis in contracted for axis in placed.axes):
            return None
        free = [axis for axis in range(ranks[side]) if axis not in (*batch, *contracted)]
        start = count + (0 if side == 0 else ranks[0] - count - len(op.lhs_contracting))
        axes = tuple(batch.index(a) if a in batch else start + free.index(a) for a in placed.axes)
        found.append(_Placed(placed.core, axes))
    # Of two that are computed with rows both have to be at one place: along axes that they share.
    return found[0] if len(set(found)) == 1 and (len(found) == 1 or max(found[0].axes, default=-1) < count) else None


# --- sums


def _by_cases(graph: Graph, looked: Mapping[int, _Looked]) -> Graph:
    """The program with sums over all rows in the place of the last nodes that are computed with chosen rows."""
    followed = _followed(graph, looked)
    last = {
        operand: followed[operand]
        for position, node in enumerate(graph.nodes)
        for operand in node.operands
        if operand in followed and position not in followed
    }
    last |= {position: followed[position] for position in graph.outputs.values() if position in followed}
    parts = {p: _part(graph, p, followed) for p in last}
    rows = {p: {looked[q].rows for q in part if q in looked} for p, part in parts.items()}
    fits = sum(len(part) * max(rows[p]) for p, part in parts.items()) <= _MOST
    floats = all(graph.nodes[p].type.dtype.is_float for p in last)
    if not last or not fits or not floats or any(len(found) != 1 for found in rows.values()):
        return graph
    places: dict[int, int] = {}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        places.update(zip(node.operands, operands, strict=True))
        summed = isinstance(node.op, ops.Reduce) and node.op.kind == "sum" and node.operands[0] in last
        own = node.operands[0] if summed else position
        if own not in last:
            return None
        (count,) = rows[own]
        cases = _cases(builder, graph, parts[own], last[own], places, count, looked)
        # A sum over the places is taken row by row, as programs that go over all rows have it.
        return _added(builder, [builder.add(node.op, case) for case in cases] if summed else cases)

    return pruned(rebuilt(graph, make))


def _part(graph: Graph, position: int, followed: Mapping[int, _Placed]) -> list[int]:
    """The nodes that one is made of and that are computed with chosen rows, in order."""
    seen, stack = set[int](), [position]
    while stack:
        own = stack.pop()
        if own in followed and own not in seen:
            seen.add(own)
            stack.extend(graph.nodes[own].operands)
    return sorted(seen)


def _cases(
    builder: GraphBuilder,
    graph: Graph,
    part: Sequence[int],
    placed: _Placed,
    places: Mapping[int, int],
    rows: int,
    looked: Mapping[int, _Looked],
) -> list[int]:
    """By row what the last node of a part is where the place is that row, and nought elsewhere."""
    kind = graph.nodes[part[-1]].type
    core = places[placed.core]
    spread = builder.add(ops.BroadcastInDim(kind.shape, placed.axes), core)
    nought = builder.add(ops.Constant(kind, (0.0,)))
    cases: list[int] = []
    for row in range(rows):
        number = builder.add(ops.Constant(TensorType(kind.shape, builder.type(core).dtype), (row,)))
        here = builder.add(ops.Compare("EQ"), spread, number)
        cases.append(builder.add(ops.Select(), here, _case(builder, graph, part, places, row, looked), nought))
    return cases


def _added(builder: GraphBuilder, cases: Sequence[int]) -> int:
    total, *others = cases
    for case in others:
        total = builder.add(ops.Add(), total, case)
    return total


def _case(
    builder: GraphBuilder,
    graph: Graph,
    part: Sequence[int],
    places: Mapping[int, int],
    row: int,
    looked: Mapping[int, _Looked],
) -> int:
    """The last node of a part, with one row in the place of every look-up."""
    made: dict[int, int] = {}
    for position in part:
        node = graph.nodes[position]
        if position in looked and isinstance(node.op, ops.Gather):
            made[position] = _row(builder, places[node.operands[0]], node.op, node.type.shape, row)
        else:
            made[position] = builder.add(node.op, *(made.get(p, places.get(p, -1)) for p in node.operands))
    return made[part[-1]]


def _row(builder: GraphBuilder, table: int, op: ops.Gather, shape: Shape, row: int) -> int:
    """One row of a table wherever a look-up reads one."""
    sizes: Shape = builder.type(table).shape
    starts: list[Dim] = [row, *(0 for _ in sizes[1:])]
    limits: list[Dim] = [row + 1, *sizes[1:]]
    cut = builder.add(ops.Slice(tuple(starts), tuple(limits), tuple(1 for _ in sizes)), table)
    flat = builder.add(ops.Reshape(sizes[1:]), cut)
    return builder.add(ops.BroadcastInDim(shape, op.offset_dims), flat)
