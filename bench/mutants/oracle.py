"""Whether a mutant is wrong at all, decided by running it."""

from __future__ import annotations

from dataclasses import replace

from bench.mutants.model import Mutant
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ops.agreement import CollectiveMismatch
from rewright.refine.relations.known import complete_relations, input_relations, output_expectations
from rewright.refine.twin.twin import make_twin


def is_equivalent(sequential: Graph, mutant: Mutant, seeds: tuple[int, ...] = (0, 1, 2)) -> bool | None:
    """Whether a mutant still computes what the sequential program does, with its outputs placed as before.

    Placements that the program does not state are inferred, as ``refine`` does it. False as soon as one seed shows
    a difference (or collectives no longer meet), True where none does, None where the programs cannot be executed.
    """
    known = input_relations(sequential, mutant.program, None)
    program = replace(mutant.program, inputs=known.placements)
    expected = output_expectations(sequential, program, None)
    known = complete_relations(sequential, program, known, expected)
    program = replace(program, inputs=known.placements)
    expected = output_expectations(sequential, program, None)
    try:
        twin = make_twin(sequential, program)
    except CollectiveMismatch:
        return False
    if isinstance(twin, Unsupported):
        return None
    for seed in seeds:
        agrees = twin.compare(seed, expect=expected).agrees
        if agrees is not True:
            return agrees
    return True
