"""From a proof that failed to findings a person can act on: the place, the counterexample, a repair that was tried."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import Placement, RankProgram
from rewright.ir.types import SourceSpan
from rewright.refine.check import Proof, attempt
from rewright.refine.localise import Localiser, Parting
from rewright.refine.relations import Relations
from rewright.refine.repairs import Repair, candidates
from rewright.refine.twin.twin import TwinResult
from rewright.refine.verdict import Finding, OutputRelation

_MOST_REPAIRS = 20
"""Candidates that are proved at one place; each costs about as much as the check itself."""


@dataclass(frozen=True)
class Case:
    """One question: both programs, the relations of their inputs and what is expected of the outputs."""

    sequential: Graph
    program: RankProgram
    relations: Relations
    expected: Mapping[str, Placement]


def findings(case: Case, proof: Proof, twin: TwinResult, deadline: float | None) -> tuple[Finding, ...]:
    """One finding for every independent place where the programs part, the earliest first."""
    localiser = Localiser(proof.lifter, proof.sequential, proof.ranks)
    places: dict[tuple[SourceSpan, str], tuple[Parting, list[str]]] = {}
    for output in _by_importance(proof.failed):
        partings = localiser.partings(output)
        if not partings:
            continue
        first = partings[0]
        places.setdefault((first.span, first.operator), (first, []))[1].append(output)
    found: list[Finding] = []
    ordered = sorted(places.values(), key=lambda item: item[0].position)
    for number, (parting, outputs) in enumerate(ordered[: _shown(ordered)]):
        origin = localiser.origin(parting)
        sites = [place for place in (origin, parting) if place is not None]
        # Later findings mostly follow from the first: a repair that mends it is what there is to tell.
        tried = sites if number == 0 and twin.agrees is False else []
        repairs = (_repair(case, proof, place, outputs, deadline) for place in tried)
        repair = next((repair for repair in repairs if repair is not None), None)
        found.append(_finding(proof, parting, origin, outputs, twin, repair))
    explained = {name for _, outputs in places.values() for name in outputs}
    for name in proof.failed:
        if name not in explained:
            found.append(_output_finding(proof.relations[name], twin))
    return tuple(found)


def _shown(ordered: Sequence[tuple[Parting, list[str]]]) -> int:
    """Later places usually follow from the first; they are told only up to a readable number."""
    return min(len(ordered), 3)


def _by_importance(failed: Sequence[str]) -> list[str]:
    """Forward outputs first: a wrong forward value makes gradients wrong too."""
    return sorted(failed, key=lambda name: name.startswith("grad:"))


def _finding(
    proof: Proof,
    parting: Parting,
    origin: Parting | None,
    outputs: Sequence[str],
    twin: TwinResult,
    repair: Repair | None,
) -> Finding:
    relation = proof.relations[outputs[0]]
    partial = bool(parting.partial) or "Partial" in relation.placement
    kind = "missing_reduction" if partial else "wrong_value"
    if twin.agrees is not False:
        kind = "not_proved"
    found = 'Partial("sum")' if partial else "no part of a tensor of the sequential program"
    more = f" and {len(outputs) - 1} more outputs" if len(outputs) > 1 else ""
    message = f"{outputs[0]}{more}: rank {parting.rank} computes {parting.operator} at {parting.span} from "
    if origin is not None:
        message += f"the sum at {origin.span}, which is not yet reduced over the ranks"
    elif parting.partial:
        message += "a sum that is not yet reduced over the ranks"
    elif partial:
        message = f"{outputs[0]}{more}: the sum at {parting.span} is never reduced over the ranks"
    else:
        message += "tensors that are right, and its result is not"
    shown = origin or parting
    return Finding(
        kind,
        message,
        shown.sequential,
        shown.span,
        relation.expected or "Replicate()",
        found,
        repair.text if repair else None,
        twin.counterexample,
    )


def _output_finding(relation: OutputRelation, twin: TwinResult) -> Finding:
    what = f"is {relation.placement} and" if relation.placement else "is not related and"
    return Finding(
        "wrong_placement" if relation.placement else "not_related",
        f"output {relation.name} {what} should be {relation.expected or 'related'}",
        None,
        None,
        relation.expected or "",
        relation.placement,
        None,
        twin.counterexample,
    )


def _repair(
    case: Case, proof: Proof, parting: Parting, outputs: Sequence[str], deadline: float | None
) -> Repair | None:
    """The first edit near the place after which the proof succeeds for the outputs that failed there."""
    site = _site(case.program, parting)
    if len(site) < len(case.program.graphs):
        return None
    for count, repair in enumerate(candidates(case.program, site)):
        if count >= _MOST_REPAIRS or (deadline is not None and time.monotonic() > deadline):
            return None
        try:
            again = attempt(case.sequential, repair.program, case.relations, case.expected, deadline)
        except RewrightError:
            continue
        if again.mismatch or again.out_of_time:
            continue
        if not set(outputs) & set(again.failed) and len(again.failed) < len(proof.failed):
            return repair
    return None


def _site(program: RankProgram, parting: Parting) -> dict[int, int]:
    """The corresponding node of every rank: positions differ between ranks, operators and source lines do not."""
    wanted = program.graphs[parting.rank].nodes[parting.position]
    alike = [
        [p for p, node in enumerate(graph.nodes) if node.span == wanted.span and node.op.name == wanted.op.name]
        for graph in program.graphs
    ]
    occurrence = alike[parting.rank].index(parting.position)
    return {rank: found[occurrence] for rank, found in enumerate(alike) if occurrence < len(found)}
