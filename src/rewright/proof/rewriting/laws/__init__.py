"""Laws that normal forms do not show: each makes a node of a program another way, and says why both are equal.

The same law makes a node in a whole program and in the small part of it that a lemma is about: it looks at the graph
that it is given and at the facts of its nodes, and says nothing where what it needs is not seen there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from rewright.analysis.values import Setting, facts_of
from rewright.ir.digest import digest
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder, Node, validate
from rewright.ir.rebuilding import Maker as Rebuild
from rewright.ir.rebuilding import rebuild
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws.convolutions import Convolutions
from rewright.proof.rewriting.laws.fillings import Fillings
from rewright.proof.rewriting.laws.growing import Growing
from rewright.proof.rewriting.laws.orders import Orders
from rewright.proof.rewriting.laws.picked import Picked
from rewright.proof.rewriting.laws.places import Places
from rewright.proof.rewriting.laws.repeating import Repeating
from rewright.proof.rewriting.laws.rows import Rows
from rewright.proof.rewriting.laws.unsorted import Unsorted
from rewright.proof.rewriting.lemma import Lemma, is_well_formed

Maker = Callable[[GraphBuilder, int, Mapping[int, int]], int | None]
"""Given a builder, a node and the places of earlier nodes in the builder: where the node is made another way; None
where the law says nothing of it."""
Law = Callable[[Graph, Sequence[Facts]], Maker]
"""A law of one program, whose nodes have these facts."""

LAWS: Mapping[str, Law] = MappingProxyType(
    {
        "convolutions": Convolutions,
        "fillings": Fillings,
        "growing": Growing,
        "orders": Orders,
        "picked": Picked,
        "places": Places,
        "repeating": Repeating,
        "rows": Rows,
        "unsorted": Unsorted,
    }
)
"""The laws by name."""


def as_maker(graph: Graph, law: Maker, positions: Collection[int] | None = None) -> Rebuild:
    """What rebuilds a program with nodes made as a law says, those at ``positions`` alone where they are given."""
    places: dict[int, int] = {}
    names = {position: name for name, position in graph.inputs.items()}

    def made(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        place = law(builder, position, places) if positions is None or position in positions else None
        if place is None and position in names:
            place = builder.input(names[position], node.op)
        places[position] = builder.add(node.op, *operands) if place is None else place
        return places[position]

    return made


def apply_to(graph: Graph, make: Maker, positions: Collection[int] | None = None) -> Graph:
    """The program with nodes made another way, those at ``positions`` alone where they are given."""
    return rebuild(graph, as_maker(graph, make, positions))


def remake(graph: Graph, make: Maker) -> Graph | None:
    """A program with its outputs made another way; None where nothing is."""
    found: list[int] = []

    def noted(builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        place = make(builder, position, places)
        found.extend([] if place is None else [place])
        return place

    made = apply_to(graph, noted, frozenset(graph.outputs.values()))
    return made if found else None


def follows(name: str, lemma: Lemma) -> bool:
    """Whether a law makes the left side of a lemma of its right side, of whose inputs is known what is given."""
    law = LAWS.get(name)
    if law is None or len(lemma.right.outputs) != 1 or not all(map(is_well_formed, (lemma.left, lemma.right))):
        return False
    try:
        left = lemma.whole
        validate(left)
        validate(lemma.right)
        known = facts_of(lemma.right, Setting(given=lemma.facts(lemma.right), assumes=True))
        made = remake(lemma.right, law(lemma.right, known))
    except (RewrightError, RecursionError):
        return False
    return made is not None and digest(made) == digest(left)


__all__ = ["LAWS", "Law", "Maker", "apply_to", "as_maker", "follows", "remake"]
