"""From a proof that failed to the places where the programs part, and what may mend them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from rewright import ops
from rewright.blame.counterparts import replacements
from rewright.blame.divergence import CONVINCING, Divergence, Search
from rewright.blame.editing import Site, site_of
from rewright.blame.localise import Localiser, Parting
from rewright.blame.repairs import Repair, apply_edits
from rewright.blame.slips import slips
from rewright.blame.wording import Teller, describe_node, describe_output
from rewright.ir.graph import NO_SPAN
from rewright.ir.operator import call_operator
from rewright.ir.types import SourceSpan
from rewright.refine.case import Case, Ran
from rewright.refine.findings.cuts import Cut, cut_by_shapes, cut_by_values
from rewright.refine.findings.labels import Label, deciding_label
from rewright.refine.findings.scales import GRADIENT, common_scale, loss_places, rescale_loss, scale_message
from rewright.refine.findings.values import nearby, search_trial
from rewright.refine.proof import Proof
from rewright.refine.relations.unwritten import readings
from rewright.refine.twin.twin import Twin
from rewright.refine.verdict import Finding, OutputRelation, Where

_MOST_PLACES = 3
"""Later places usually follow from the first; only a readable number of them is reported."""
_MOST_SLIPS = 96


@dataclass(frozen=True)
class Spot:
    """A place where the programs part, the outputs that are wrong because of it, and what may mend it."""

    finding: Finding
    outputs: tuple[str, ...]
    repairs: Iterable[Repair]
    sites: tuple[Site, ...] = ()
    is_sure: bool = False
    """Whether values showed the place, and not only where the proof stops."""
    cut: Cut | None = None
    """What the ranks should hold there, where that has a name."""
    divergence: Divergence | None = None
    search: Search | None = None
    is_end: bool = False
    """Whether no place was found, and this is only where an output comes from."""


def spots_of(case: Case, proof: Proof, ran: Ran) -> list[Spot]:
    """The places where the programs part, as far as one run shows them, the most important first."""
    label = deciding_label(case, ran)
    if label is not None and label.how:
        return [_at_label(case, proof, ran, label)]
    spots = _spots_of(case, proof, ran)
    if label is not None and spots:
        first = spots[0].finding
        spots[0] = replace(spots[0], finding=replace(first, message=f"{first.message}; {label.text}"))
    return spots


def _spots_of(case: Case, proof: Proof, ran: Ran) -> list[Spot]:
    spots = list(_by_memory(case, proof, ran)) or list(spots_by_values(case, proof, ran))
    told = {name for spot in spots for name in spot.outputs}
    rest = [name for name in ran.wrong_of(proof.failed) if name not in told]
    spots.extend(_by_terms(case, proof, ran, rest)[:_MOST_PLACES])
    if spots and spots[0].is_end:
        spots = [*spots_by_values(case, proof, ran, guess=True)] or spots
    scaled = _by_scale(case, proof, ran, spots)
    if scaled is not None:
        return [scaled]
    if spots and ran.is_different and ran.twin is not None and not spots[0].is_sure:
        spots[0] = _at_slip(case, ran, ran.twin, spots[0]) or spots[0]
    return spots


def _by_memory(case: Case, proof: Proof, ran: Ran) -> Iterator[Spot]:
    """Where ranks read memory before it is written, if outputs change with what is in it."""
    spoiled = [] if ran.twin is None else ran.twin.spoiled_outputs()
    outputs = tuple(name for name in _by_importance(proof.failed) if name in spoiled)
    for reading in readings(case.program, outputs)[:_MOST_PLACES] if outputs else ():
        message = f"{reading} ({ran.describe(outputs, case.program.mesh)})"
        wanted, held = "what is written there", "what was there before, or a part of both"
        where = Where(None, reading.rank, reading.position)
        finding = Finding(reading.kind, message, None, reading.place, wanted, held, None, None, where=where)
        repair = reading.add_waits(case.program)
        yield Spot(finding, outputs, () if repair is None else (repair,), is_sure=True)


def _at_label(case: Case, proof: Proof, ran: Ran, label: Label) -> Spot:
    """A label that only one of the programs leaves out."""
    outputs = tuple(_by_importance(ran.wrong_of(proof.failed)))
    message = f"{label.message} ({ran.describe(outputs, case.program.mesh)})"
    return Spot(_finding(case, label.where, "ignored_label", message, "", ""), outputs, (), is_sure=True)


def spots_by_values(case: Case, proof: Proof, ran: Ran, *, guess: bool = False) -> Iterator[Spot]:
    """Where the values part, for every independent place that convinces, or that is the best guess."""
    if not ran.is_different or ran.twin is None:
        return
    search = search_trial(ran.twin, ran.result)
    expected = ran.expected_outputs(case)
    remaining = [name for name in _by_importance(proof.failed) if name in ran.result.wrong_outputs]
    for _ in range(_MOST_PLACES):
        found = search.first(remaining, expected, guess=guess) if search is not None and remaining else None
        if found is None or search is None or found.cost > CONVINCING:
            return
        reached = search.places.leads_to(found.place)
        outputs = [name for name in _by_importance(ran.wrong_of(proof.failed)) if name in reached]
        if not set(outputs) & set(remaining):
            return
        remaining = [name for name in remaining if name not in outputs]
        spot = _spot_by_values(case, ran, search, found, outputs)
        if guess and not found.is_shown:
            message = f"{spot.finding.message}; a guess: other places were not ruled out"
            spot = replace(spot, finding=replace(spot.finding, message=message))
        relation = proof.relations[found.output]
        asked_otherwise = found.cause == "output" and relation.placement and "Partial" not in relation.placement
        yield _placed_otherwise(spot, relation) if asked_otherwise else spot


def _spot_by_values(case: Case, ran: Ran, search: Search, found: Divergence, outputs: Sequence[str]) -> Spot:
    expected = ran.expected_outputs(case)
    told = Teller(search).tell(found)
    wanted = str(expected[found.output]) if found.cause == "output" and found.output in expected else told.expected
    sites = [dict(enumerate(place)) for place in told.places]
    repairs = chain(replacements(case.sequential, case.program, search, found), nearby(case, ran, sites, outputs))
    where = Where(told.position, told.rank, told.shown[told.rank])
    finding = _finding(
        case, where, told.kind, f"{told.message} ({ran.describe(outputs, case.program.mesh)})", wanted, told.found
    )
    sure = found.is_shown and found.cause != "moved"
    return Spot(finding, tuple(outputs), repairs, tuple(sites), sure, cut_by_values(case, search, found), found, search)


def _by_scale(case: Case, proof: Proof, ran: Ran, spots: Sequence[Spot]) -> Spot | None:
    """The loss, where all gradients are wrong by one number and no line of the forward program was found for it."""
    held = next((spot.finding.distributed for spot in spots if spot.is_sure), None)
    factor = common_scale(case, proof, ran)
    where = None if factor is None or (held is not None and not held.backward) else loss_places(case)
    if factor is None or where is None:
        return None
    outputs = [name for name in ran.wrong_of(proof.failed) if name.startswith(GRADIENT)]
    message = scale_message(case, factor, where, outputs)
    wanted, found = "the scale of the loss on one device", f"{factor} times that"
    finding = _finding(case, where, "wrong_scale", message, wanted, found)
    assert finding.distributed is not None
    finding = replace(finding, distributed=finding.distributed.forward)
    return Spot(finding, tuple(outputs), rescale_loss(case.program, factor, where, outputs), is_sure=True)


def _placed_otherwise(spot: Spot, relation: OutputRelation) -> Spot:
    """An output that is right, and held otherwise than was asked for: what was asked may be what is wrong."""
    message = (
        f"the ranks hold output {relation.name} as {relation.placement}, which is right, and {relation.expected} was "
        "expected; correct the expectation, or the last collective"
    )
    finding = replace(spot.finding, kind="wrong_placement", message=message, found=relation.placement)
    return replace(spot, finding=finding, cut=None)


def _by_terms(case: Case, proof: Proof, ran: Ran, names: Sequence[str]) -> list[Spot]:
    """Where the proof stops: the first operators whose results are no part of anything in the sequential program."""
    localiser = Localiser(proof.lifter, proof.sequential, proof.ranks)
    places: dict[tuple[SourceSpan, str], tuple[Parting, list[str]]] = {}
    for output in _by_importance(names):
        partings = localiser.partings(output)
        if partings:
            first = partings[0]
            places.setdefault((first.node.span, first.node.op.name), (first, []))[1].append(output)
    ordered = sorted(places.values(), key=lambda item: item[0].position)
    return [
        _spot_by_terms(case, ran, proof.relations[names[0]], localiser, parting, names) for parting, names in ordered
    ]


def _spot_by_terms(
    case: Case, ran: Ran, relation: OutputRelation, localiser: Localiser, parting: Parting, outputs: Sequence[str]
) -> Spot:
    origin = localiser.origin(parting)
    partial = bool(parting.partial) or "Partial" in relation.placement
    mail = next((m for one in (parting, origin) if one and (m := localiser.message_of(one.rank, one.position))), None)
    if mail is not None and origin is not None:
        origin, partial = None, False  # what one rank makes of a message is no addend that others have the rest of
    what = describe_node(parting.node)
    is_summed = partial and bool(parting.partial) and localiser.is_everywhere(parting.rank, parting.partial[0])
    if is_summed:
        partial = False
        message = (
            f"rank {parting.rank} computes the {what} from a sum over the ranks that one device does not have: "
            "terms are missing, are counted twice, or are others"
        )
    elif parting.is_end and "Partial" not in relation.placement:
        origin, partial = None, False
        message = (
            f"no operator was found that is wrong by itself on the way to the {what}: all that it is made of is "
            "also in the sequential program, so that a factor is wrong, or what is added to what"
        )
    elif mail is not None and not partial:
        message = f"rank {parting.rank} computes the {what}, and the sequential program has no such result"
    elif origin is not None:
        read = f"the sum at {origin.node.span}, which nothing adds up before"
        message = f"rank {parting.rank} computes the {what} from {read}"
    elif parting.partial and partial:
        message = f"rank {parting.rank} computes the {what} from a sum over ranks that nothing adds up before"
    elif partial:
        message = f"the sum at {parting.node.span} is never added up over the ranks"
    else:
        message = f"rank {parting.rank} computes the {what} from tensors that are right, and its result is not"
    if mail is not None:
        receiving, sender, sending = mail
        message += f"; it is made of what rank {sender} sent at {sending.span} and rank {parting.rank} received at "
        message += str(receiving.span)
    shown = origin or parting
    kind, held = "wrong_value", "no part of a tensor of the sequential program"
    if is_summed:
        kind = "wrong_sum"
    if partial:
        kind, held = "missing_reduction", 'Partial("sum")'
    where, wanted = Where(shown.counterpart, shown.rank, shown.position), relation.expected or "Replicate()"
    finding = _finding(case, where, kind, f"{message} ({ran.describe(outputs, case.program.mesh)})", wanted, held)
    sites = [site_of(case.program, place.rank, place.position) for place in (origin, parting) if place is not None]
    cut = cut_by_shapes(case, parting.counterpart, sites[-1])
    return Spot(
        finding, tuple(outputs), nearby(case, ran, sites, outputs), tuple(sites), cut=cut, is_end=parting.is_end
    )


def _finding(case: Case, where: Where, kind: str, message: str, expected: str, found: str) -> Finding:
    """A finding with the lines of the nodes that it is about."""
    assert where.distributed is not None
    wanted = NO_SPAN if where.sequential is None else case.sequential.nodes[where.sequential].span
    held = case.program.graphs[where.rank].nodes[where.distributed].span
    return Finding(kind, message, None if wanted == NO_SPAN else wanted, held, expected, found, None, None, where=where)


def _at_slip(case: Case, ran: Ran, twin: Twin, spot: Spot) -> Spot | None:
    """The finding at a bound that is off by one, or at another slip, where a small change makes the outputs right."""
    tried = ((edit, edit.apply(twin.program)) for edit in slips(case.program, spot.sites))
    fitting = islice(((edit, small) for edit, small in tried if small is not None), _MOST_SLIPS)
    found = next((edit for edit, small in fitting if twin.agrees_with(small, case.expected, spot.outputs)), None)
    if found is None:
        return None
    rank, position = min(found.site.items())
    node = case.program.graphs[rank].nodes[position]
    what = f"constant {node.op.values[0]}" if isinstance(node.op, ops.Constant) else call_operator(node.op)
    where = "all ranks" if len(found.site) == len(case.program.graphs) else f"rank {rank}"
    if isinstance(node.op, ops.Concatenate):
        said = "wrong_value", f"joins its operands in the wrong order on {where}", "every element in its place", ""
    else:
        held = "an index at the edge of a shard on no rank, or on two"
        said = "off_by_one", f"is off by one on {where}", "every index on one rank", held
    kind, wrong, expected, held = said
    message = f"the {what} at {node.span} {wrong} ({ran.describe(spot.outputs, case.program.mesh)})"
    at = replace(spot.finding.where, rank=rank, distributed=position)
    finding = replace(spot.finding, kind=kind, message=message, distributed=node.span, where=at)
    finding = replace(finding, expected=expected, found=held)
    return Spot(finding, spot.outputs, apply_edits(case.program, [found]), (found.site,), True)


def _by_importance(failed: Sequence[str]) -> list[str]:
    """Forward outputs first: a wrong forward value makes gradients wrong too."""
    return sorted(failed, key=lambda name: name.startswith("grad:"))


def output_finding(relation: OutputRelation) -> Finding:
    what = f"is {relation.placement}, and" if relation.placement else "is not related, and"
    return Finding(
        "wrong_placement" if relation.placement else "not_related",
        f"{describe_output(relation.name)} {what} should be {relation.expected or 'related'}",
        None,
        None,
        relation.expected or "",
        relation.placement,
        None,
        None,
    )
