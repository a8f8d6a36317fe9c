"""Programs after all their stages, each step of which was checked, and what that takes for granted.

Rewritings in front of a proof are replayed by :func:`replay`, and what they decide of numbers in range, which comes
last, by :func:`narrow_programs`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright.analysis.ends import Bound
from rewright.analysis.obligations import Obligation, obligations, sentences
from rewright.analysis.values import Assumed
from rewright.ir.errors import Refused, RewrightError
from rewright.ir.graph import Graph
from rewright.proof.rewriting.evidence import NUMBERS, Checked
from rewright.proof.rewriting.filled import why_not as why_not_filled
from rewright.proof.rewriting.numbers.closed import taken_sentences
from rewright.proof.rewriting.splices import Rewriting, Stage, Within
from rewright.proof.rewriting.stages import spliced_with_places, why_not
from rewright.proof.rewriting.within import known, without
from rewright.proof.rewriting.within import sentences as said_of
from rewright.proof.rewriting.within import why_not as why_not_within
from rewright.proof.rewriting.worn import Worn
from rewright.proof.wrapping import insert_wrapping


@dataclass(frozen=True)
class Replayed:
    """A program as it was rewritten."""

    written: Graph
    """Before arithmetic of short integers was written out."""
    graphs: tuple[Graph, ...]
    """As it was captured, after each step, and as it is in the end."""

    @property
    def graph(self) -> Graph:
        """As it is in the end."""
        return self.graphs[-1]


def replay(graph: Graph, rewriting: Rewriting, ranges: Mapping[str, Bound], checked: Checked) -> Replayed:
    """A program after the stages of two implementations; ``ranges`` are bounds of inputs.

    Raises Refused for a step that does not follow, and where one assumes anything: that comes later.
    """
    if any(stage.within for stage in (*rewriting.before, *rewriting.after)):
        raise Refused("a stage assumes that numbers are in range before tensors that were not captured are matched")
    worn, graphs = Worn(graph), [graph]
    for number, stage in enumerate(rewriting.before):
        graphs.append(_apply(graphs[-1], stage, f"stage {number}", checked, worn, counts=False))
    written = graphs[-1]
    graphs.append(insert_wrapping(written, ranges))
    worn.carried_over(graphs[-1])
    for number, stage in enumerate(rewriting.after, start=len(rewriting.before)):
        graphs.append(_apply(graphs[-1], stage, f"stage {number}", checked, worn, counts=True))
    return Replayed(written, tuple(graphs))


def _apply(graph: Graph, stage: Stage, where: str, checked: Checked, worn: Worn, *, counts: bool) -> Graph:
    for number, lemma in enumerate(stage.lemmas):
        why = checked.why_not(lemma, counts=counts)
        if why is not None:
            raise Refused(f"lemma {number} of {where} is not proved: {why}")
    why = why_not(graph, stage, counts=counts)
    if why is not None:
        raise Refused(f"{where}: {why}")
    try:
        made, places = spliced_with_places(graph, stage)
    except RewrightError as error:
        raise Refused(f"{where} makes no program: {error}") from None
    why = why_not_filled(graph, stage, checked.taken)
    if why is not None:
        raise Refused(f"{where}: {why}")
    if not worn.follow(stage, checked.taken, made, places):
        raise Refused(f"{where}: what rounding made of a number is rounded again and again")
    return made


@dataclass(frozen=True)
class Narrowed:
    """Programs where numbers are in range, and what that assumes, in words."""

    graphs: tuple[Graph, ...]
    taken: tuple[str, ...] = ()


def narrow_programs(
    graphs: Sequence[Graph], rewritings: Sequence[Rewriting], held: Collection[str], checked: Checked, *, counts: bool
) -> Narrowed:
    """Programs after what their stages decide of numbers that are in range, the sequential one first.

    ``held`` are the inputs of which ranks have numbers that the sequential program has, and no addends of these. With
    ``counts`` short integers have no end. Raises Refused for a step that does not follow.
    """
    if not rewritings:
        return Narrowed(tuple(graphs))
    if len(rewritings) != len(graphs):
        raise Refused(f"the certificate says of {len(rewritings)} programs how they were rewritten")
    steps, needed = list[Transition](), set[str]()
    worn = [Worn(graph) for graph in graphs]
    for number in range(max(len(rewriting.narrowing) for rewriting in rewritings)):
        stages = [dict(enumerate(rewriting.narrowing)).get(number, _NO_STAGE) for rewriting in rewritings]
        for program, (graph, stage) in enumerate(zip(graphs, stages, strict=True)):
            why = why_not_within(graph, stage.within, held if program else graph.inputs)
            if why is not None:
                raise Refused(f"what stage {number} of program {program} assumes makes no sense: {why}")
        pairs = enumerate(zip(graphs, stages, worn, strict=True))
        where = "stage {0} of program {1}"
        after = [_apply(g, s, where.format(number, k), checked, w, counts=counts) for k, (g, s, w) in pairs]
        for graph, stage in zip(graphs, stages, strict=True):
            needed |= _needed(graph, stage, needed, counts)
        steps.append(Transition(graphs, [stage.within for stage in stages], after))
        graphs = after
    for step in steps:
        for graph, own in zip(step.before, step.within, strict=True):
            for text in said_of(graph, own):
                if text not in needed:
                    raise Refused(f"the certificate assumes what no step needs: {text}")
    numbers = premises([Rewriting(narrowing=rewriting.narrowing) for rewriting in rewritings], checked)
    return Narrowed(tuple(graphs), tuple(dict.fromkeys((*stage_assumptions(steps), *numbers))))


def _needed(graph: Graph, stage: Stage, known_before: Collection[str], counts: bool) -> set[str]:
    """What a stage assumes that some step of it needs, but for what is known to be needed."""
    asked = [text for text in said_of(graph, stage.within) if text not in known_before]
    less = {text: replace(stage, within=without(graph, stage.within, text)) for text in asked}
    return {text for text, own in less.items() if why_not(graph, own, counts=counts) is not None}


@dataclass(frozen=True)
class Transition:
    """Programs before and after one stage of each, and what these assume of the programs before."""

    before: Sequence[Graph]
    within: Sequence[Within]
    after: Sequence[Graph]


def stage_assumptions(steps: Sequence[Transition]) -> tuple[str, ...]:
    """What stages take for granted, in words; raises Refused where no input meets it."""
    found = [text for s in steps for graph, own in zip(s.before, s.within, strict=True) for text in said_of(graph, own)]
    conditions: list[Obligation] = []
    for step in steps:
        pairs = zip(step.before, step.within, strict=True)
        conditions += lost_needs(step.before, step.after, [known(graph, own) for graph, own in pairs])
    violated = next((one for one in conditions if one.is_violated), None)
    if violated is not None:
        raise Refused(f"the proof rests on a condition that cannot hold: {sentences([violated])[0]}")
    return tuple(dict.fromkeys((*found, *sentences(conditions))))


_NO_STAGE = Stage((), ())


def premises(rewritings: Sequence[Rewriting], checked: Checked) -> tuple[str, ...]:
    """What the lemmas of programs take for granted, in words."""
    lemmas = (lemma for rewriting in rewritings for lemma in rewriting.lemmas if lemma.evidence == NUMBERS)
    return taken_sentences(one for lemma in lemmas for one in checked.taken.get(lemma.key, ()))


def lost_needs(before: Sequence[Graph], after: Sequence[Graph], assumed: Sequence[Assumed] = ()) -> list[Obligation]:
    """Conditions of programs as they were captured that are none of what they were rewritten to.

    A step holds where both programs are defined: what the second one no longer needs is still needed for it, unless it
    follows from what is ``assumed`` of nodes of the first one.
    """
    left = {_key(one) for one in obligations(after)}
    return [one for one in obligations(before, taken=assumed) if _key(one) not in left]


def passing(programs: Sequence[Replayed]) -> list[Obligation]:
    """Conditions of programs on their way alone, at places where no program has them at first or in the end.

    A step is right where the programs before and after it are defined. A comparison that a step puts in and the next
    one decides may hold of all numbers, and not of the infinity that it is about: raises Refused for a condition that
    nowhere is one of the programs, and for one that cannot hold.
    """
    ways = [[g for g, last in zip(one.graphs, (None, *one.graphs), strict=False) if g is not last] for one in programs]
    every = [[way[min(number, len(way) - 1)] for way in ways] for number in range(max(map(len, ways)))]
    own = [one for graphs in (every[0], every[-1]) for one in obligations(graphs)]
    known, kinds = {_key(one) for one in own}, {_key(one)[:2] for one in own}
    found = [one for graphs in every[1:-1] for one in obligations(graphs) if _key(one) not in known]
    for one in found:
        if one.is_violated or _key(one)[:2] not in kinds:
            raise Refused(f"a step rests on a condition that is none of its programs: {one}")
    return found


def _key(one: Obligation) -> tuple[str, str, str]:
    return one.node.op.name, one.condition, str(one.node.span)


__all__ = [
    "Narrowed",
    "Replayed",
    "Transition",
    "lost_needs",
    "narrow_programs",
    "passing",
    "premises",
    "replay",
    "sentences",
    "stage_assumptions",
]
