"""Everything that relates the axes of a sequential program and of all ranks."""

from __future__ import annotations

from typing import cast

from rewright import ops
from rewright.analysis.meetings import Meeting, Schedule
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ops.base import TensorOperator
from rewright.refine.shrink.counting import Values, measured
from rewright.refine.shrink.space import AxisSpace, number


def collect(sequential: Graph, program: RankProgram, schedule: Schedule) -> AxisSpace:
    """The axes of the sequential graph (number 0) and of the ranks (1 + rank), with all relations between them."""
    graphs = (sequential, *program.graphs)
    space = AxisSpace(graphs)
    for graph, offsets, attributes in zip(graphs, space.offsets, space.attributes, strict=True):
        values = Values(space, graph, offsets)
        axes = [range(first, first + node.type.rank) for first, node in zip(offsets, graph.nodes, strict=True)]
        for position, node in enumerate(graph.nodes):
            op = cast(TensorOperator, node.op)
            attributes.append(op.relate_sizes(space, [axes[p] for p in node.operands], axes[position]))
            op.relate_counts(values, node.operands, position)
        space.fix(measured(graph, offsets))
    for step in schedule:
        if isinstance(step, Meeting):
            _meet(space, program, step)
    for position in sequential.inputs.values():
        if sequential.nodes[position].type.dtype.is_integer:
            space.tokens.update(range(space.offsets[0][position], _end(space, sequential, 0, position)))
    for name, placement in program.inputs.items():
        parts = [graph.inputs.get(name) for graph in program.graphs]
        _place(space, sequential, program, placement, sequential.inputs.get(name), parts)
    for name, placement in program.outputs.items():
        parts = [graph.outputs.get(name) for graph in program.graphs]
        _place(space, sequential, program, placement, sequential.outputs.get(name), parts)
    return space


def _end(space: AxisSpace, graph: Graph, number_: int, position: int) -> int:
    """The entry for values of a node, which follows its axes."""
    return space.offsets[number_][position] + graph.nodes[position].type.rank


def _meet(space: AxisSpace, program: RankProgram, meeting: Meeting) -> None:
    """All members have operands of one shape; a message has one shape at both ends."""
    entries: list[range] = []
    for rank, position in meeting.nodes:
        graph = program.graphs[rank]
        node = graph.nodes[position]
        read = position if isinstance(node.op, ops.Recv) else node.operands[0]
        start = space.offsets[rank + 1][read]
        entries.append(range(start, start + graph.nodes[read].type.rank + 1))
    for other in entries[1:]:
        for one, same in zip(entries[0], other, strict=True):
            if space.sizes[one] != 1 or space.sizes[same] != 1:
                space.link(one, same)


def _place(
    space: AxisSpace,
    sequential: Graph,
    program: RankProgram,
    placement: Placement,
    whole: int | None,
    parts: list[int | None],
) -> None:
    """Runs are lengths and positions along the axes of the global tensor."""
    if whole is None:
        return
    start = space.offsets[0][whole]
    rank_of_tensor = sequential.nodes[whole].type.rank
    for rank, part in enumerate(parts):
        if part is None or program.graphs[rank].nodes[part].type.rank != rank_of_tensor:
            continue
        local = space.offsets[rank + 1][part]
        if sequential.nodes[whole].type.dtype.is_integer:
            space.link(start + rank_of_tensor, local + rank_of_tensor)
        for axis in range(rank_of_tensor):
            runs = [(number(low), number(length)) for low, length in placement.runs[rank][axis]]
            if space.sizes[start + axis] == 1:
                continue
            space.link(start + axis, local + axis)
            space.total(local + axis, [length for _, length in runs])
            for low, length in runs:
                space.total(start + axis, (low, length))
