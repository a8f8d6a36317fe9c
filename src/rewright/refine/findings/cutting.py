"""Programs looked at up to one place, and from that place on: how consecutive failures are separated.

Where the ranks should hold a tensor is the end of everything before it, and the beginning of everything behind it.
With the tensor as one more output a repair can be proved there, whatever goes wrong later; with it as an input, which
the ranks hold as they should, the rest of the programs is looked at as if everything before were right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rewright import ops
from rewright.blame.editing import with_input
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.refine.case import Case, Ran
from rewright.refine.findings.cuts import Cut
from rewright.refine.twin.resizing import Resize

HERE = "the tensor at the failure"
"""The name of the output, and of inputs with a number, that stand for the tensor."""


def up_to(case: Case, ran: Ran, cut: Cut) -> tuple[Case, Ran]:
    """The same question with the tensor as one more output."""
    sequential = _with_output(case.sequential, cut.sequential)
    expected = {**case.expected, HERE: cut.placement}
    at = Case(sequential, _with_outputs(case.program, cut), case.relations, expected)
    twin = ran.twin
    if twin is None:
        return at, ran
    shapes: Mapping[str, Shape] = {**twin.resize.shapes, HERE: sequential.nodes[cut.sequential].type.shape}
    twin = replace(
        twin,
        sequential=_with_output(twin.sequential, cut.sequential),
        program=_with_outputs(twin.program, cut),
        resize=Resize(shapes, twin.resize.sizes, twin.resize.scales),
    )
    return at, replace(ran, twin=twin)


def drop_extra_output(program: RankProgram) -> RankProgram:
    """A program without the extra output."""
    graphs = tuple(
        replace(graph, outputs={name: p for name, p in graph.outputs.items() if name != HERE})
        for graph in program.graphs
    )
    return replace(program, graphs=graphs)


def from_there(case: Case, cut: Cut, number: int) -> Case | None:
    """The same question with the tensor as one more input; None where it is one already."""
    name = f"{HERE} {number}"
    pairs = [(case.sequential, cut.sequential), *zip(case.program.graphs, cut.place, strict=True)]
    if any(isinstance(graph.nodes[position].op, ops.Input) for graph, position in pairs):
        return None  # nothing comes before it
    sequential, *graphs = (with_input(graph, position, name) for graph, position in pairs)
    placements = {**case.relations.placements, name: cut.placement}
    program = replace(case.program, graphs=tuple(graphs), inputs={**case.program.inputs, name: cut.placement})
    return Case(sequential, program, replace(case.relations, placements=placements), case.expected)


def _with_output(graph: Graph, position: int) -> Graph:
    return replace(graph, outputs={**graph.outputs, HERE: position})


def _with_outputs(program: RankProgram, cut: Cut) -> RankProgram:
    graphs = tuple(_with_output(graph, p) for graph, p in zip(program.graphs, cut.place, strict=True))
    return replace(program, graphs=graphs)
