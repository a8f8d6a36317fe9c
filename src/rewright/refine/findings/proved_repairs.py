"""Repairs that were proved before they are told."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from rewright.blame.editing import Site, edit_program
from rewright.blame.repairs import Edit, Repair
from rewright.ir.errors import RewrightError, TypeMismatch
from rewright.ir.graph import Graph, Node
from rewright.ir.placement import RankProgram
from rewright.refine.case import Case
from rewright.refine.check import attempt
from rewright.refine.proof import Proof
from rewright.refine.running import compare


@dataclass(frozen=True)
class Mended:
    """A repair, and the proof with it."""

    repair: Repair
    proof: Proof
    also: tuple[str, ...] = ()
    """Where else it was made."""


def proved_repair(
    case: Case, failed: Collection[str], repairs: Iterable[Repair], outputs: Sequence[str], deadline: float | None
) -> Mended | None:
    """The first repair after which the proof succeeds for some outputs, and nothing else fails than did before."""
    for repair in repairs:
        if deadline is not None and time.monotonic() > deadline:
            return None
        again = proof_of(case, repair.program, deadline)
        if again is not None and not set(outputs) & set(again.failed) and set(again.failed) < set(failed):
            return Mended(repair, again)
    return None


def proof_of(case: Case, program: RankProgram, deadline: float | None) -> Proof | None:
    """The proof for another distributed program; None where it does not run, or not in time."""
    ran = cache(partial(compare, replace(case, program=program)))
    try:
        again = attempt(
            case.sequential,
            program,
            case.relations,
            case.expected,
            deadline,
            wrong=lambda failed: ran().known_wrong(failed),
        )
    except RewrightError:
        return None
    return None if again.mismatch or again.out_of_time else again


def everywhere(case: Case, mended: Mended, deadline: float | None) -> Mended | None:
    """The same repair at every place that came from the same source line: in all layers, say.

    None where it was no edit of one node, where there is no such place, or where it makes no more outputs right.
    """
    edit = mended.repair.edit
    found = equal_places(case.program, edit) if edit is not None else {}
    if edit is None or not found:
        return None
    program = case.program
    first = min(edit.site)
    try:
        for site in sorted([edit.site, *found.values()], key=lambda site: -site[first]):
            program = edit_program(program, site, edit.build)[0]
    except (TypeMismatch, IndexError, KeyError):
        return None
    again = proof_of(case, program, deadline)
    if again is None or not set(again.failed) < set(mended.proof.failed):
        return None
    return Mended(replace(mended.repair, program=program), again, tuple(found))


def equal_places(program: RankProgram, edit: Edit) -> dict[str, Site]:
    """The other places of an edit's source line, by module path: the same operator, as often as there."""
    found: dict[str, Site] = {}
    for rank, position in edit.site.items():
        graph = program.graphs[rank]
        occurrences = _occurrences(graph, graph.nodes[position])
        own = graph.nodes[position].span.module_path
        number = occurrences[own].index(position)
        for path, positions in occurrences.items():
            if path != own and number < len(positions):
                found.setdefault(path, {})[rank] = positions[number]
    return {path: site for path, site in found.items() if site.keys() == edit.site.keys()}


def _occurrences(graph: Graph, wanted: Node) -> Mapping[str, list[int]]:
    """The nodes with the operator and the source line of another one, by module path."""
    found: dict[str, list[int]] = {}
    line = replace(wanted.span, module_path="")
    for position, node in enumerate(graph.nodes):
        near = node.span.line == line.line and node.op.name == wanted.op.name
        if near and replace(node.span, module_path="") == line:
            found.setdefault(node.span.module_path, []).append(position)
    return found
