"""What if: the ranks are run again with the right tensor at one place, and an output is right then or is not.

A way back from a wrong output pairs operators that look alike, and may pair what does not belong together. Where it
ends at the fault, the right tensor there makes the output right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rewright.blame.editing import with_input
from rewright.blame.holding import Holding
from rewright.blame.places import Place
from rewright.interp.placing import cut
from rewright.interp.ranks import run_ranks
from rewright.interp.trial import Trial
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, Placement
from rewright.ops.base import Array

GIVEN = "the tensor that belongs here"
"""The name of the input that stands in a place."""
_MOST_PLACEMENTS = 4


def mending_placement(
    holding: Holding, position: int, place: Place, reader: Place, is_right: Callable[[Trial], bool]
) -> Placement | None:
    """The placement of a sequential tensor at a place with which an output is right, None where there is none.

    Args:
        reader: where the place is read on the way to the output; other readers may be meant to have what is there.
        is_right: whether the output is right in another trial.
    """
    for placement, given in _held(holding, position, place):
        for graphs in _programs(holding.program.graphs, place, reader):
            trial = _run(holding.trial, graphs, given)
            if trial is not None and is_right(trial):
                return placement
    return None


def _held(holding: Holding, position: int, place: Place) -> Iterator[tuple[Placement, list[Array]]]:
    """What the ranks would hold, for the cleanest placements with the shapes that they have there."""
    value = holding.value(position)
    for placement in holding.fitting(position, place)[:_MOST_PLACEMENTS]:
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
    yield [with_input(graph, p, GIVEN) for graph, p in zip(graphs, place, strict=True)]
    if reader != place and all(graph.nodes[r].operands for graph, r in zip(graphs, reader, strict=True)):
        yield [with_input(graph, p, GIVEN, r) for graph, p, r in zip(graphs, place, reader, strict=True)]


def _run(trial: Trial, graphs: Sequence[Graph], given: Sequence[Array]) -> Trial | None:
    """The trial with other programs of the ranks, which are given a tensor; None where they cannot be run."""
    held = [{**own, GIVEN: tensor} for own, tensor in zip(trial.held, given, strict=True)]
    try:
        return replace(trial, ranks=run_ranks(graphs, held))
    except RewrightError:
        return None
