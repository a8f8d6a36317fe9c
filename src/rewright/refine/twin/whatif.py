"""What if: the ranks are run again with the right tensor at one place, and an output is right then or is not.

A way back from a wrong output pairs operators that look alike, and may pair what does not belong together. Where it
ends at the fault, the right tensor there makes the output right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rewright import ops
from rewright.analysis.meetings import match_collectives
from rewright.interp.ranks import run_ranks
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import Mesh, Placement
from rewright.ops.base import Array
from rewright.refine.twin.holding import Holding
from rewright.refine.twin.places import Place
from rewright.refine.twin.placing import cut
from rewright.refine.twin.twin import Trial

GIVEN = "the tensor that belongs here"
"""The name of the input that stands in a place."""
_MOST_PLACEMENTS = 4


def mending_placement(
    holding: Holding, position: int, place: Place, reader: Place, output: str, expected: Mapping[str, Placement]
) -> Placement | None:
    """The placement of a sequential tensor at a place with which an output is right, None where there is none.

    Args:
        reader: where the place is read on the way to the output; other readers may be meant to have what is there.
        expected: placements of outputs at the sizes of the twin; an output without one may have any.
    """
    for placement, given in _held(holding, position, place):
        for graphs in _programs(holding.twin.program.graphs, place, reader):
            if _is_right(holding, graphs, given, output, expected):
                return placement
    return None


def _held(holding: Holding, position: int, place: Place) -> Iterator[tuple[Placement, list[Array]]]:
    """What the ranks would hold, for the cleanest placements with the shapes that they have there."""
    value, local = holding.value(position), holding.local(place)
    if any(tensor.dtype.kind != value.dtype.kind or tensor.ndim != value.ndim for tensor in local):
        return
    for placement in holding.candidates(value, local)[:_MOST_PLACEMENTS]:
        if not placement.partial:
            yield placement, [cut(value, own) for own in placement.runs]
        elif placement.reduction == "sum" and value.dtype.kind == "f":
            yield placement, _first_of_each_group(value, placement, holding.mesh)


def _first_of_each_group(value: Array, placement: Placement, mesh: Mesh) -> list[Array]:
    """Addends of a tensor: one rank of each group has it, and the others have zeros."""
    parts = [cut(value, own) for own in placement.runs]
    firsts = [min(mesh.group(rank, placement.partial)) == rank for rank in range(mesh.size)]
    return [part if first else np.zeros_like(part) for part, first in zip(parts, firsts, strict=True)]


def _programs(graphs: Sequence[Graph], place: Place, reader: Place) -> Iterator[list[Graph]]:
    """The programs that are given the tensor at a place, or that one reader of it is given it."""
    yield [_given(graph, p) for graph, p in zip(graphs, place, strict=True)]
    if reader != place and all(graph.nodes[r].operands for graph, r in zip(graphs, reader, strict=True)):
        yield [_given_to(graph, p, r) for graph, p, r in zip(graphs, place, reader, strict=True)]


def _given(graph: Graph, position: int) -> Graph:
    kind, span = graph.nodes[position].type, graph.nodes[position].span
    nodes = list(graph.nodes)
    nodes[position] = Node(ops.Input(GIVEN, kind), (), kind, span)
    return replace(graph, nodes=tuple(nodes), inputs={**graph.inputs, GIVEN: position})


def _given_to(graph: Graph, position: int, reader: int) -> Graph:
    kind, span = graph.nodes[position].type, graph.nodes[position].span

    def moved(old: int, at: int) -> int:
        return reader if old == position and at == reader else old if old < reader else old + 1

    after = [
        replace(node, operands=tuple(moved(p, reader + number) for p in node.operands))
        for number, node in enumerate(graph.nodes[reader:])
    ]
    nodes = (*graph.nodes[:reader], Node(ops.Input(GIVEN, kind), (), kind, span), *after)
    inputs = {name: moved(p, -1) for name, p in graph.inputs.items()}
    outputs = {name: moved(p, -1) for name, p in graph.outputs.items()}
    return replace(graph, nodes=nodes, inputs={**inputs, GIVEN: reader}, outputs=outputs)


def _is_right(
    holding: Holding, graphs: Sequence[Graph], given: Sequence[Array], output: str, expected: Mapping[str, Placement]
) -> bool:
    twin, trial = holding.twin, holding.trial
    try:
        held = [{**own, GIVEN: tensor} for own, tensor in zip(trial.held, given, strict=True)]
        ranks = run_ranks(graphs, held, schedule=match_collectives(graphs))
    except RewrightError:
        return False
    return twin.judge(Trial(trial.inputs, trial.held, trial.sequential, ranks), expected, [output]).agrees is True
