"""Programs after all their stages, each step of which was checked, and what that takes for granted.

Rewritings in front of a proof are replayed by :func:`replayed`, and what they decide of numbers in range, which comes
last, by :func:`narrowed`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rewright.analysis.ends import Bound
from rewright.analysis.obligations import Obligation, obligations, sentences
from rewright.analysis.values import Assumed
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.proof.ledger import Refused
from rewright.proof.rewriting.evidence import Checked
from rewright.proof.rewriting.numbers import said
from rewright.proof.rewriting.stages import Rewriting, Stage, spliced, why_not
from rewright.proof.rewriting.within import Within, known, without
from rewright.proof.rewriting.within import sentences as said_of
from rewright.proof.rewriting.within import why_not as why_not_within
from rewright.proof.wrapping import counted


@dataclass(frozen=True)
class Replayed:
    """A program as it was rewritten."""

    written: Graph
    """Before arithmetic of short integers was written out."""
    graph: Graph


def replayed(graph: Graph, rewriting: Rewriting, ranges: Mapping[str, Bound], checked: Checked) -> Replayed:
    """A program after the stages of two implementations; ``ranges`` are bounds of inputs.

    Raises Refused for a step that does not follow, and where one assumes anything: that comes later.
    """
    if any(stage.within for stage in (*rewriting.before, *rewriting.after)):
        raise Refused("a stage assumes that numbers are in range before tensors that were not captured are matched")
    for number, stage in enumerate(rewriting.before):
        graph = _applied(graph, stage, f"stage {number}", checked, counts=False)
    written, graph = graph, counted(graph, ranges)
    for number, stage in enumerate(rewriting.after, start=len(rewriting.before)):
        graph = _applied(graph, stage, f"stage {number}", checked, counts=True)
    return Replayed(written, graph)


def _applied(graph: Graph, stage: Stage, where: str, checked: Checked, *, counts: bool) -> Graph:
    for number, lemma in enumerate(stage.lemmas):
        why = checked.why_not(lemma, counts=counts)
        if why is not None:
            raise Refused(f"lemma {number} of {where} is not proved: {why}")
    why = why_not(graph, stage)
    if why is not None:
        raise Refused(f"{where}: {why}")
    try:
        return spliced(graph, stage)
    except RewrightError as error:
        raise Refused(f"{where} makes no program: {error}") from None


@dataclass(frozen=True)
class Narrowed:
    """Programs where numbers are in range, and what that assumes, in words."""

    graphs: tuple[Graph, ...]
    taken: tuple[str, ...] = ()


def narrowed(
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
    steps, needed = list[Step](), set[str]()
    for number in range(max(len(rewriting.narrowing) for rewriting in rewritings)):
        stages = [dict(enumerate(rewriting.narrowing)).get(number, _NO_STAGE) for rewriting in rewritings]
        for program, (graph, stage) in enumerate(zip(graphs, stages, strict=True)):
            why = why_not_within(graph, stage.within, held if program else graph.inputs)
            if why is not None:
                raise Refused(f"what stage {number} of program {program} assumes makes no sense: {why}")
        pairs = enumerate(zip(graphs, stages, strict=True))
        after = [_applied(g, s, f"stage {number} of program {k}", checked, counts=counts) for k, (g, s) in pairs]
        for graph, stage in zip(graphs, stages, strict=True):
            needed |= _needed(graph, stage, needed)
        steps.append(Step(graphs, [stage.within for stage in stages], after))
        graphs = after
    for step in steps:
        for graph, own in zip(step.before, step.within, strict=True):
            for text in said_of(graph, own):
                if text not in needed:
                    raise Refused(f"the certificate assumes what no step needs: {text}")
    numbers = taken([Rewriting(narrowing=rewriting.narrowing) for rewriting in rewritings], checked)
    return Narrowed(tuple(graphs), tuple(dict.fromkeys((*assumed(steps), *numbers))))


def _needed(graph: Graph, stage: Stage, known_before: Collection[str]) -> set[str]:
    """What a stage assumes that some step of it needs, but for what is known to be needed."""
    asked = [text for text in said_of(graph, stage.within) if text not in known_before]
    less = {text: replace(stage, within=without(graph, stage.within, text)) for text in asked}
    return {text for text, own in less.items() if why_not(graph, own) is not None}


@dataclass(frozen=True)
class Step:
    """Programs before and after one stage of each, and what these assume of the programs before."""

    before: Sequence[Graph]
    within: Sequence[Within]
    after: Sequence[Graph]


def assumed(steps: Sequence[Step]) -> tuple[str, ...]:
    """What stages take for granted, in words; raises Refused where no input meets it."""
    found = [text for s in steps for graph, own in zip(s.before, s.within, strict=True) for text in said_of(graph, own)]
    conditions: list[Obligation] = []
    for step in steps:
        pairs = zip(step.before, step.within, strict=True)
        conditions += removed(step.before, step.after, [known(graph, own) for graph, own in pairs])
    violated = next((one for one in conditions if one.is_violated), None)
    if violated is not None:
        raise Refused(f"the proof rests on a condition that cannot hold: {sentences([violated])[0]}")
    return tuple(dict.fromkeys((*found, *sentences(conditions))))


_NO_STAGE = Stage((), ())


def taken(rewritings: Sequence[Rewriting], checked: Checked) -> tuple[str, ...]:
    """What the lemmas of programs take for granted, in words."""
    lemmas = (lemma for rewriting in rewritings for lemma in rewriting.lemmas)
    return said(one for lemma in lemmas for one in checked.taken.get(lemma.key, ()))


def removed(before: Sequence[Graph], after: Sequence[Graph], assumed: Sequence[Assumed] = ()) -> list[Obligation]:
    """Conditions of programs as they were captured that are none of what they were rewritten to.

    A step holds where both programs are defined: what the second one no longer needs is still needed for it, unless it
    follows from what is ``assumed`` of nodes of the first one.
    """
    left = {_key(one) for one in obligations(after)}
    return [one for one in obligations(before, taken=assumed) if _key(one) not in left]


def _key(one: Obligation) -> tuple[str, str, str]:
    return one.node.op.name, one.condition, str(one.node.span)


__all__ = ["Narrowed", "Replayed", "Step", "assumed", "narrowed", "removed", "replayed", "sentences", "taken"]
