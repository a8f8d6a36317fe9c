"""How often numbers of a program became what is only as good as them.

A rounded constant may stand for another one, and a computed table for a held one that is a little off. Each such step
is as small as a sentence says that it is, and many of them lead anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewright.ir.graph import Graph
from rewright.proof.rewriting.numbers.taken import Kind, Taken
from rewright.proof.rewriting.splices import Stage

MOST = 4
"""Steps of rounding that one number may go through."""
_FAR: Kind = "moved"
"""A step that is larger than single precision has it, which is the first one of a number or none."""
_DRIFTS: frozenset[Kind] = frozenset({"cut", "scalars", "tables", "root", "inverse", _FAR})


class Worn:
    """For every node of a program how many steps of rounding it, or something that it is made of, went through."""

    def __init__(self, graph: Graph) -> None:
        self._times = [0] * len(graph.nodes)

    def follow(
        self, stage: Stage, taken: Mapping[str, Sequence[Taken]], made: Graph, places: Mapping[int, int]
    ) -> bool:
        """Go on to the program that a stage made; whether no number went through too many steps.

        ``places`` says where the nodes from before are, or what was put in for them.
        """
        kinds = {s.position: {one.kind for one in taken.get(s.lemma, ())} for s in stage.splices}
        drifting = {position: found & _DRIFTS for position, found in kinds.items() if found & _DRIFTS}
        own: dict[int, int] = {}
        for old, place in places.items():
            own[place] = max(own.get(place, 0), self._times[old] + (old in drifting))
        is_fine = all(self._times[position] < (1 if _FAR in found else MOST) for position, found in drifting.items())
        self._times = _spread(made, own)
        return is_fine

    def carried_over(self, made: Graph) -> None:
        """Go on to the program with remainders written out, of which no float has been made yet."""
        worst = max(self._times, default=0)
        self._times = self._times if len(made.nodes) == len(self._times) else [worst] * len(made.nodes)


def _spread(graph: Graph, own: Mapping[int, int]) -> list[int]:
    """For every node the most of what is said of it and of what it is made of.

    What was put in for a node is in front of the place that is said to be its own, and is worn as that is.
    """
    said, after = [0] * len(graph.nodes), 0
    for position in reversed(range(len(graph.nodes))):
        after = said[position] = own.get(position, after)
    found: list[int] = []
    for position, node in enumerate(graph.nodes):
        found.append(max((said[position], *(found[p] for p in node.operands))))
    return found
