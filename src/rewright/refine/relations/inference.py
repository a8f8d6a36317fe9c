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
    """The first combination of placements under which execution of both programs agrees, else the simplest one."""
    if inferred.is_open:
        for chosen in islice(inferred.combinations(), _MOST_CHOICES):
            if _agrees(sequential, replace(program, inputs={**stated, **chosen}), expected):
                return chosen
    return inferred.first


def _agrees(sequential: Graph, program: RankProgram, expected: Mapping[str, Placement]) -> bool:
    try:
        twin = make_twin(sequential, program)
    except (RewrightError, CollectiveMismatch):
        return False
    return not isinstance(twin, Unsupported) and twin.compare(expect=dict(expected)).agrees is True


def note(inferred: Mapping[str, Placement], *, confirmed: bool) -> tuple[str, ...]:
    """What a verdict assumes of inferred placements, in one line."""
    if not inferred:
        return ()
    lines: Sequence[str] = [f"{name} is {placement}" for name, placement in inferred.items()]
    shown = ", ".join(lines[:3]) + (f" and {len(lines) - 3} more" if len(lines) > 3 else "")
    how = "their shapes and from execution" if confirmed else "their shapes"
    return (f"relations of {len(lines)} inputs were inferred from {how}: {shown}",)
