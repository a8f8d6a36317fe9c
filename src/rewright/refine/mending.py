"""Repairs that were proved before they are told."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rewright.ir.errors import RewrightError
from rewright.ir.placement import RankProgram
from rewright.refine.case import Case, Ran
from rewright.refine.check import Proof, attempt
from rewright.refine.editing import Site
from rewright.refine.repairs import Repair, candidates, confirmed

_MOST_REPAIRS = 20
"""Candidates that are tried at one place; each costs about as much as a run of the twin."""


def proved_repair(
    case: Case, proof: Proof, repairs: Iterable[Repair], outputs: Sequence[str], deadline: float | None
) -> Repair | None:
    """The first repair after which the proof succeeds for the outputs that failed, and nothing else fails."""
    for repair in repairs:
        if deadline is not None and time.monotonic() > deadline:
            return None
        try:
            again = attempt(case.sequential, repair.program, case.relations, case.expected, deadline)
        except RewrightError:
            continue
        if again.mismatch or again.out_of_time:
            continue
        if not set(outputs) & set(again.failed) and set(again.failed) < set(proof.failed):
            return repair
    return None


def nearby(case: Case, ran: Ran, sites: Iterable[Site], outputs: Sequence[str]) -> Iterator[Repair]:
    """The most plausible edits at each of some sites that all ranks have; the twin sorts out those that do not help."""
    expected = {name: p for name, p in case.expected.items() if name in case.sequential.outputs}
    for site in sites:
        if len(site) < len(case.program.graphs):
            continue
        if ran.twin is None:
            yield from islice(candidates(case.program, site), _MOST_REPAIRS)
        else:
            yield from confirmed(case.sequential, case.program, site, expected, _MOST_REPAIRS, outputs, ran.twin)


def site_of(program: RankProgram, rank: int, position: int) -> Site:
    """The corresponding node of every rank: positions differ between ranks, operators and source lines do not."""
    wanted = program.graphs[rank].nodes[position]
    alike = [
        [p for p, node in enumerate(graph.nodes) if node.span == wanted.span and node.op.name == wanted.op.name]
        for graph in program.graphs
    ]
    occurrence = alike[rank].index(position)
    return {rank: found[occurrence] for rank, found in enumerate(alike) if occurrence < len(found)}
