"""Programs after all their stages, each step of which was checked, and what that takes for granted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewright.analysis.ends import Bound
from rewright.analysis.obligations import Obligation, obligations, sentences
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.proof.ledger import Refused
from rewright.proof.rewriting.evidence import Checked
from rewright.proof.rewriting.numbers import said
from rewright.proof.rewriting.stages import Rewriting, Stage, spliced, why_not
from rewright.proof.wrapping import counted


@dataclass(frozen=True)
class Replayed:
    """A program as it was rewritten."""

    written: Graph
    """Before arithmetic of short integers was written out."""
    graph: Graph


def replayed(graph: Graph, rewriting: Rewriting, ranges: Mapping[str, Bound], checked: Checked) -> Replayed:
    """A program after its stages; ``ranges`` are bounds of inputs. Raises Refused for a step that does not follow."""
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


def taken(rewritings: Sequence[Rewriting], checked: Checked) -> tuple[str, ...]:
    """What the lemmas of programs take for granted, in words."""
    lemmas = (lemma for rewriting in rewritings for lemma in rewriting.lemmas)
    return said(one for lemma in lemmas for one in checked.taken.get(lemma.key, ()))


def removed(before: Sequence[Graph], after: Sequence[Graph]) -> list[Obligation]:
    """Conditions of programs as they were captured that are none of what they were rewritten to.

    A step holds where both programs are defined: what the second one no longer needs is still needed for it.
    """
    left = {_key(one) for one in obligations(after)}
    return [one for one in obligations(before) if _key(one) not in left]


def _key(one: Obligation) -> tuple[str, str, str]:
    return one.node.op.name, one.condition, str(one.node.span)


__all__ = ["Replayed", "removed", "replayed", "sentences", "taken"]
