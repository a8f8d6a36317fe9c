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
from rewright.proof.rewriting.stages import Rewriting, Stage, spliced_with_places, why_not
from rewright.proof.rewriting.worn import Worn
from rewright.proof.wrapping import counted


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


def replayed(graph: Graph, rewriting: Rewriting, ranges: Mapping[str, Bound], checked: Checked) -> Replayed:
    """A program after its stages; ``ranges`` are bounds of inputs. Raises Refused for a step that does not follow."""
    worn, graphs = Worn(graph), [graph]
    for number, stage in enumerate(rewriting.before):
        graphs.append(_applied(graphs[-1], stage, f"stage {number}", checked, worn, counts=False))
    written = graphs[-1]
    graphs.append(counted(written, ranges))
    worn.carried_over(graphs[-1])
    for number, stage in enumerate(rewriting.after, start=len(rewriting.before)):
        graphs.append(_applied(graphs[-1], stage, f"stage {number}", checked, worn, counts=True))
    return Replayed(written, tuple(graphs))


def _applied(graph: Graph, stage: Stage, where: str, checked: Checked, worn: Worn, *, counts: bool) -> Graph:
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
    if not worn.by(stage, checked.taken, made, places):
        raise Refused(f"{where}: what rounding made of a number is rounded again and again")
    return made


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


__all__ = ["Replayed", "passing", "removed", "replayed", "sentences", "taken"]
