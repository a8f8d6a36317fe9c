"""All independent failures of one program: each is told, then taken as mended, and what still fails is told next."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rewright import ops
from rewright.blame.counterparts import nearby_attributes
from rewright.blame.counterparts import replacements as like_counterpart
from rewright.blame.editing import same_occurrence
from rewright.blame.localise import Localiser
from rewright.blame.nearest_law import why_not
from rewright.blame.repairs import Repair
from rewright.ir.placement import RankProgram
from rewright.ir.types import SourceSpan
from rewright.refine.case import Case, Ran
from rewright.refine.findings.cuts import Cut
from rewright.refine.findings.cutting import HERE, drop_extra_output, from_there, up_to
from rewright.refine.findings.explain import Spot, output_finding, spots_by_values, spots_of
from rewright.refine.findings.proved_repairs import Mended, everywhere, proof_of, proved_repair
from rewright.refine.findings.values import nearby, search_trial
from rewright.refine.proof import Proof
from rewright.refine.running import compare, conclude_from_values, smallest
from rewright.refine.verdict import Finding

_MOST_ROUNDS = 12
_CAUSES = ("wrong_scale", "ignored_label")
"""Findings that say why the programs differ; where the proof stops is a consequence."""
_ONLY_OTHERS = ("missing", "term")
"""Causes where the tensor at the place is right for other readers: it cannot be replaced."""


@dataclass(frozen=True)
class _Next:
    """The question after a failure was dealt with; no case where it cannot be."""

    case: Case | None
    proof: Proof | None = None
    mended: Mended | None = None


def findings(
    case: Case,
    proof: Proof,
    ran: Ran,
    deadline: float | None,
    suggest: bool = True,
    locate: bool = True,
    tell: Callable[[Finding], None] | None = None,
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """One finding for every independent place where the programs part, in the order of the program, and notes.

    Args:
        ran: what running the programs showed.
        deadline: no repair is tried after it.
        suggest: whether repairs are tried, and later failures looked for behind them.
        locate: whether the place where values part is looked for; else only the outputs are told.
        tell: is called with the first finding as soon as there is one, before repairs are tried.
    """
    found: list[Finding] = []
    taken = ""
    original, counted = case, frozenset(ran.wrong_of(proof.failed))
    for _ in range(_MOST_ROUNDS):
        spots = spots_of(case, proof, ran) if locate or not ran.is_different else []
        here = _findings(case, proof, ran, spots)
        if tell is not None and here and not found and ran.is_different:
            tell(here[0])
        if not (spots and suggest and ran.is_different):
            return _merge(found, [] if found else here), _notes(found)
        if found and _is_at_cut(case, spots[0]):
            # What the ranks should hold at an earlier place was guessed, and not well enough to go on from there.
            return _merge(found, []), _notes(found)
        step = _step(case, proof, ran, spots[0], deadline, len(found))
        first = _in(original.program, case.program, here[0])
        if step.mended is not None:
            first = replace(first, suggestion=f"{step.mended.repair.text}{taken}", also=step.mended.also)
        if found and HERE in f"{first.message} {first.suggestion}":
            return _merge(found, []), _notes(found)  # it is about what was taken as mended, which no reader knows of
        if step.mended is None and found and not _is_shown(case, ran, spots[0]):
            # Behind a failure that was taken as mended, only what values or a repair show is told.
            return _merge(found, []), _notes(found)
        if step.case is None or step.proof is None:
            return _merge(found, [first] if found else [first, *here[1:]]), _notes([*found, first])
        if step.mended is None and spots[0].cut is not None:
            # What the right program holds there is a guess, on which all that is proved from here on rests.
            taken = f", if the ranks should hold {spots[0].cut.placement} at {first.distributed}"
        found.append(first)
        case, proof = step.case, step.proof
        if not proof.failed:
            return _merge(found, []), _notes(found)
        ran = replace(conclude_from_values(case, compare(case), proof), counted=counted)
    return _merge(found, []), (*_notes(found), f"the search ended after {_MOST_ROUNDS} failures; mend these first")


def findings_by_values(case: Case, proof: Proof, ran: Ran) -> tuple[Finding, ...]:
    """The places where values part, and the outputs that no place explains, for a proof that was not finished."""
    spots = list(spots_by_values(case, proof, ran))
    told = {name for spot in spots for name in spot.outputs}
    rest = [name for name in ran.wrong_of(proof.failed) if name not in told]
    found = [*(spot.finding for spot in spots), *(output_finding(proof.relations[name]) for name in rest)]
    return (replace(found[0], counterexample=smallest(case, ran)), *found[1:]) if found else ()


def _in(original: RankProgram, mended: RankProgram, finding: Finding) -> Finding:
    """A finding of a program with repairs, at the node of the program without them that it is about."""
    where = finding.where
    if where.distributed is None or original is mended:
        return finding
    position = same_occurrence(mended.graphs[where.rank], where.distributed, original.graphs[where.rank])
    return replace(finding, where=replace(where, distributed=position))


def _is_at_cut(case: Case, spot: Spot) -> bool:
    position = spot.finding.where.sequential
    op = None if position is None else case.sequential.nodes[position].op
    return isinstance(op, ops.Input) and op.label.startswith(HERE)


def _is_shown(case: Case, ran: Ran, spot: Spot) -> bool:
    """Whether values say that a place is wrong: those of its operands are right, as the proof says."""
    if spot.is_sure or spot.cut is None or ran.twin is None:
        return spot.is_sure
    nodes = case.sequential.nodes[spot.cut.sequential], case.program.graphs[0].nodes[spot.cut.place[0]]
    search = search_trial(ran.twin, ran.result) if type(nodes[0].op) is type(nodes[1].op) else None
    return search is not None and search.holding.holds(spot.cut.sequential, spot.cut.place) is None


def _notes(found: Sequence[Finding]) -> tuple[str, ...]:
    if len(found) < 2:
        return ()
    return ("findings after the first are what is wrong once those before them are mended",)


def _step(case: Case, proof: Proof, ran: Ran, spot: Spot, deadline: float | None, number: int) -> _Next:
    """Mend a failure by a repair that was proved, else take the tensor there as right."""
    mended = _repair(case, proof, ran, spot, deadline, number)
    if mended is not None:
        return _Next(replace(case, program=drop_extra_output(mended.repair.program)), mended.proof, mended)
    if spot.finding.kind == "wrong_placement":
        expected = {name: p for name, p in case.expected.items() if name not in spot.outputs}
        rest = replace(case, expected=expected)
        return _Next(rest, proof_of(rest, rest.program, deadline))
    late = deadline is not None and time.monotonic() > deadline
    if late or spot.cut is None or (spot.divergence is not None and spot.divergence.cause in _ONLY_OTHERS):
        return _Next(None)
    rest = from_there(case, spot.cut, number)
    return _Next(rest, None if rest is None else proof_of(rest, rest.program, deadline))


def _repair(case: Case, proof: Proof, ran: Ran, spot: Spot, deadline: float | None, number: int) -> Mended | None:
    """A repair after which all that is wrong because of a place is right, else one after which that place is."""
    if spot.cut is None or not number:
        whole = proved_repair(case, proof.failed, spot.repairs, spot.outputs, deadline)
        if whole is not None or spot.cut is None:
            return whole
        return _repair_there(case, proof, ran, spot, spot.cut, deadline)
    # Behind another failure there are likely more: most repairs make the place right and not yet the outputs.
    there = _repair_there(case, proof, ran, spot, spot.cut, deadline)
    if there is not None and (len(proof.failed) == 1 or set(there.proof.failed) < set(proof.failed)):
        return there
    return proved_repair(case, proof.failed, spot.repairs, spot.outputs, deadline) or there


def _repair_there(case: Case, proof: Proof, ran: Ran, spot: Spot, cut: Cut, deadline: float | None) -> Mended | None:
    """A repair with which the ranks hold what they should at the place, in all layers if it helps there too."""
    at, ran_at = up_to(case, ran, cut)
    likely: Iterator[Repair] = iter(())
    if spot.search is not None and spot.divergence is not None:
        likely = like_counterpart(at.sequential, at.program, spot.search, spot.divergence)
    likely = chain(likely, nearby_attributes(at.sequential, at.program, cut.sequential, cut.place))
    repairs = chain(likely, nearby(at, ran_at, spot.sites, [HERE]))
    there = proved_repair(at, [*proof.failed, HERE], repairs, [HERE], deadline)
    if there is None or not there.proof.failed:
        return there
    return everywhere(at, there, deadline) or there


def _findings(case: Case, proof: Proof, ran: Ran, spots: Sequence[Spot]) -> list[Finding]:
    """The findings of one run: its places, and outputs that no place explains."""
    localiser = Localiser(proof.lifter, proof.sequential, proof.ranks)
    places = [spot.finding.where for spot in spots]
    whys = [why_not(localiser, where.rank, where.distributed) for where in places]
    told = [replace(spot.finding, why_not=why) for spot, why in zip(spots, whys, strict=True)]
    found = [spot.finding if spot.finding.kind in _CAUSES else one for spot, one in zip(spots, told, strict=True)]
    if not ran.is_different:
        found = [replace(finding, kind="not_proved") for finding in found]
    told = {name for spot in spots for name in spot.outputs}
    found.extend(output_finding(proof.relations[name]) for name in ran.wrong_of(proof.failed) if name not in told)
    example = ran.result.counterexample
    shown = [spot.outputs for spot in spots]
    small = smallest(case, ran) if example is not None else None
    for number, finding in enumerate(found):
        if number == 0 and small is not None:
            found[number] = replace(finding, counterexample=small)
        elif example is not None and number < len(shown) and example.output in shown[number]:
            found[number] = replace(finding, counterexample=example)
    return found


def _merge(first: Sequence[Finding], rest: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings of one kind at one source line as one, which names the modules of the others."""
    found: dict[tuple[object, ...], Finding] = {}
    for number, finding in enumerate((*first, *rest)):
        line = _line(finding.distributed)
        key = (finding.kind, line, finding.suggestion) if line is not None and number < len(first) else (number,)
        known = found.get(key)
        if known is None:
            found[key] = finding
            continue
        path = finding.distributed.module_path if finding.distributed is not None else ""
        more = [name for name in (path, *finding.also) if name and name not in known.also]
        found[key] = replace(known, also=(*known.also, *more))
    return tuple(found.values())


def _line(span: SourceSpan | None) -> SourceSpan | None:
    """A span without its module; None where it has no line or no module, so that nothing else is the same place."""
    if span is None or not span.file or not span.module_path:
        return None
    return replace(span, module_path="")
