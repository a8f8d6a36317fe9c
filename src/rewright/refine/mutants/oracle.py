"""Whether a mutant is wrong at all, decided by running it."""

from __future__ import annotations

from rewright.interp.agreement import CollectiveMismatch
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.refine.mutants.model import Mutant
from rewright.refine.twin.twin import make_twin


def is_equivalent(sequential: Graph, mutant: Mutant, seeds: tuple[int, ...] = (0, 1, 2)) -> bool | None:
    """Whether a mutant still computes what the sequential program does, with its outputs placed as before.

    False as soon as one seed shows a difference (or collectives no longer meet), True where none does, None where
    the programs cannot be executed.
    """
    try:
        twin = make_twin(sequential, mutant.program)
    except CollectiveMismatch:
        return False
    if isinstance(twin, Unsupported):
        return None
    for seed in seeds:
        agrees = twin.compare(seed).agrees
        if agrees is not True:
            return agrees
    return True
