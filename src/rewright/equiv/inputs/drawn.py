"""Random numbers of two implementations: which draws of one are those of the other.

Draws from one state of a generator, after the same draws, give the same numbers: they have one name on both sides. What
else the right program draws is taken for what the left one draws at the same place of the source, or in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from rewright.equiv.inputs.weights import Definition, WeightMap, inputs_read
from rewright.ir.draws import START, beginnings, draws
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.ir.unknowns import RANDOM, unknowns, what_and_place
from rewright.proof.drawn import judge_draws
from rewright.proof.unknowns import counterparts

_SAME = "generators are in the same state where both programs begin"
GUESSED = "random numbers of the right program are those of the left one in order, where their states do not say it"


def relate_draws(weights: WeightMap, left: Graph, right: RankProgram) -> WeightMap:
    """The weight map with the draws of the right program that have other names on the left."""
    mine = _read_draws(left)
    found: dict[str, str] = {}
    shared = False
    for graph in right.graphs[:1] if len(right.graphs) == 1 else ():
        own = _read_draws(graph)
        shared = not own.keys().isdisjoint(mine)
        free = {name: what for name, what in mine.items() if name not in own}
        others = {name: what for name, what in own.items() if name not in mine}
        found = counterparts(free, others)
    known = {definition.name for definition in weights.definitions}
    more = [Definition("right", name, text, None) for name, text in found.items() if name not in known]
    more = [d for d in more if _shape(left, d.text) == _shape(right.graphs[0], d.name)]
    told = (*((_SAME,) if shared else ()), *((GUESSED,) if more else ()))
    return replace(weights, definitions=(*weights.definitions, *more), guessed=(*weights.guessed, *told))


def _shape(graph: Graph, name: str) -> object:
    return graph.nodes[graph.inputs[name]].type.shape


def _read_draws(graph: Graph) -> dict[str, str]:
    """The draws that outputs depend on, with what and where they are."""
    read = inputs_read(graph)
    return {name: what for name, what in unknowns(graph).items() if what.startswith(RANDOM) and name in read}


def fault_of_draws(left: Graph, right: RankProgram, weights: WeightMap) -> str:
    """Why random numbers cannot be related as a weight map does it; empty where they can.

    Every draw of the right program is one of the left, and another one for each.
    """
    judged = judge_draws(left, right, None)
    if judged.faults:
        return str(judged.faults[0])
    mine = unknowns(left)
    if len(right.graphs) > 1 and any(what.startswith(RANDOM) for what in mine.values()):
        return "which random numbers of several ranks are which of one program is not known here; use refine"
    for graph in right.graphs:
        own = _read_draws(graph)
        table = {d.name: d.text for d in weights.of("right") if d.name in own}
        related = [table.get(name, name) for name in own if name in table or name in mine]
        if len(set(related)) < len(related) or not all(mine.get(text, "").startswith(RANDOM) for text in related):
            return "the weight map does not relate the draws of the right program to as many of the left one"
        seeded = _seeded(left) | _seeded(graph)
        apart = [(name, text) for name, text in table.items() if name != text and not seeded.isdisjoint((name, text))]
        for name, text in apart[:1]:
            places = f"{what_and_place(mine[text])[1]} and the right one at {what_and_place(own[name])[1]}"
            return f"the left program draws at {places} from different states, and a seed that a program sets fixes one"
    drawn = {name for name, what in mine.items() if what.startswith(RANDOM)}
    made = [d for d in weights.of("left") if d.name in drawn]
    return f"the weight map makes random numbers of {made[0].text}" if made else ""


def _seeded(graph: Graph) -> set[str]:
    """The draws of a stream that the program sets the seed of."""
    found = draws(graph)
    roots = beginnings(found)
    return {draw.name for draw in found if roots[draw.after] != START}


__all__ = ["GUESSED", "fault_of_draws", "relate_draws"]
