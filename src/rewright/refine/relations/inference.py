"""Placements of inputs that nobody stated: those that local shapes allow, decided by execution where several fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from rewright.interp.placing import placements
from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ir.placement import Placement, RankProgram
from rewright.ops.agreement import CollectiveMismatch
from rewright.refine.relations.given import Inferred
from rewright.refine.twin.twin import make_twin

_MOST_CHOICES = 32
"""Combinations of placements that are executed before the first one is taken."""


def by_shapes(shape: Shape, name: str, program: RankProgram) -> tuple[Placement, ...]:
    """The placements without partial sums under which every rank holds its local shape, the least sharded first.

    A rank that does not read the tensor may hold any of it.
    """
    local = {rank: g.nodes[g.inputs[name]].type.shape for rank, g in enumerate(program.graphs) if name in g.inputs}
    known = placements(shape, program.mesh)
    fitting = [p for p in known if all(p.local_shape(rank) == held for rank, held in local.items())]
    fewest = min((_shard(p) for p in fitting), default=0)
    return tuple(p for p in fitting if _shard(p) == fewest)


def _shard(placement: Placement) -> int:
    return sum(text != "Replicate()" for text in placement.printed)


def decide(
    sequential: Graph,
    program: RankProgram,
    stated: Mapping[str, Placement],
    inferred: Inferred,
    expected: Mapping[str, Placement],
) -> dict[str, Placement]:
    """The first combination of placements under which execution of both programs agrees most, and the simplest first.

    Of programs that never agree that is the one with the most right outputs, where one that is right up to a factor is
    half right: what is wrong is then found with the placements that were meant.
    """
    best, chosen = -1.0, inferred.first
    for tried in islice(inferred.combinations(), _MOST_CHOICES) if inferred.is_open else ():
        right = _share(sequential, replace(program, inputs={**stated, **tried}), expected)
        if right == 1.0:
            return tried
        if right > best:
            best, chosen = right, tried
    return chosen


def _share(sequential: Graph, program: RankProgram, expected: Mapping[str, Placement]) -> float:
    """The share of the outputs that are right."""
    try:
        twin = make_twin(sequential, program)
    except (RewrightError, CollectiveMismatch):
        return -1.0
    if isinstance(twin, Unsupported):
        return -1.0
    found, count = twin.compare(expect=dict(expected)), len(sequential.outputs)
    if found.agrees is not False:
        return 1.0 if found.agrees else -1.0
    return min(1 - (len(found.wrong_outputs) - 0.5 * len(found.factors)) / count, 1 - 1 / (4 * count))


def note(inferred: Mapping[str, Placement], *, confirmed: bool) -> tuple[str, ...]:
    """What a verdict assumes of inferred placements, in one line."""
    if not inferred:
        return ()
    lines: Sequence[str] = [f"{name} is {placement}" for name, placement in inferred.items()]
    shown = ", ".join(lines[:3]) + (f" and {len(lines) - 3} more" if len(lines) > 3 else "")
    how = "their shapes and from execution" if confirmed else "their shapes"
    return (f"relations of {len(lines)} inputs were inferred from {how}: {shown}",)
