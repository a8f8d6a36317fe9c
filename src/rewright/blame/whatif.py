"""What if: the ranks are run again with the right tensor at one place, and an output is right then or is not.

A way back from a wrong output pairs operators that look alike, and may pair what does not belong together. Where it
ends at the fault, the right tensor there makes the output right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from rewright.blame.holding import Holding
from rewright.blame.places import Place
from rewright.interp.placing import cut
from rewright.interp.replay import Change, Replay
from rewright.interp.trial import Trial
from rewright.ir.errors import RewrightError
from rewright.ir.placement import Mesh, Placement
from rewright.ops.base import Array

_MOST_PLACEMENTS = 4


def mending_placement(
    holding: Holding,
    replay: Replay,
    position: int,
    place: Place,
    reader: Place,
    output: str,
    is_right: Callable[[Trial], bool],
) -> Placement | None:
    """The placement of a sequential tensor at a place with which an output is right, None where there is none.

    Args:
        replay: runs the ranks of the trial again.
        reader: where the place is read on the way to the output; other readers may be meant to have what is there.
        is_right: whether the output is right in another trial.
    """
    readers = [(None,) * len(place), *([reader] if reader != place and _all_read(holding, reader) else [])]
    for placement, given in _holdings(holding, position, place):
        for only in readers:
            changes = list(map(Change, place, given, only))
            try:
                ranks = replay.run(output, changes)
            except RewrightError:
                continue
            if is_right(replace(holding.trial, ranks=ranks)):
                return placement
    return None


def _all_read(holding: Holding, reader: Place) -> bool:
    return all(graph.nodes[p].operands for graph, p in zip(holding.program.graphs, reader, strict=True))


def _holdings(holding: Holding, position: int, place: Place) -> Iterator[tuple[Placement, list[Array]]]:
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
