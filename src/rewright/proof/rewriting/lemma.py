"""Equations between small programs that stand in the place of one another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields

from rewright.ir.digest import digest, node_digests
from rewright.ir.expression import expression
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ops.collectives import Collective
from rewright.ops.facts import UNKNOWN, Facts
from rewright.ops.leaf import Input

Given = tuple[tuple[str, Facts], ...]
"""By input of a lemma what all elements of it may be; the checker reads that off the program."""
Inner = tuple[tuple[str, int], ...]
"""By input of the left side the node of the right side that it is: both sides read a choice, say, and one looks in."""


@dataclass(frozen=True)
class Lemma:
    """Two small programs over the same inputs, and how it is known that they compute the same.

    ``x / x == 1`` holds where ``x`` is above zero, which ``given`` says. An input may be read by one side alone.
    """

    name: str
    left: Graph
    """What is put in."""
    right: Graph
    """What was there."""
    evidence: str
    places: tuple[tuple[str, str], ...] = ()
    """Source lines of both sides, wherever it was used."""
    given: Given = ()
    inner: Inner = ()

    @property
    def key(self) -> str:
        """A digest of what it says."""
        return key_of(self.left, self.right, self.given, self.inner)

    @property
    def whole(self) -> Graph:
        """The left side over the inputs of the right one; raises RewrightError for ``inner`` that does not fit."""
        return composed(self.left, self.right, self.inner) if self.inner else self.left

    @property
    def statement(self) -> str:
        """What it says, as an equation over the inputs of both sides."""
        return " == ".join(expression(side, next(iter(side.outputs))) for side in (self.left, self.right))

    def facts(self, side: Graph) -> Mapping[str, Facts]:
        """What is given of the inputs of one side."""
        known = dict(self.given)
        return {name: known.get(name, UNKNOWN) for name in side.inputs}


def key_of(left: Graph, right: Graph, given: Given = (), inner: Inner = ()) -> str:
    """A digest of the statement that two programs compute the same."""
    if not given and not inner:
        return digest(left) + digest(right)
    known = [[name, *_facts_text(facts)] for name, facts in given]
    inside = [[name, node_digests(right)[position].hex()] for name, position in inner]
    return digest(left) + digest(right) + json.dumps([known, inside])


def _facts_text(facts: Facts) -> list[str]:
    """All that facts say, to the last digit."""
    return [repr(getattr(facts, one.name)) for one in fields(Facts)]


def is_well_formed(graph: Graph) -> bool:
    """Whether what a side reads are its inputs, each under its own name, and nothing comes from other ranks.

    What proves a lemma goes by the names in the operators, and what makes use of it by those of the graph.
    """
    read = {(p, node.op.label) for p, node in enumerate(graph.nodes) if isinstance(node.op, Input)}
    named = {(position, name) for name, position in graph.inputs.items()}
    return read == named and not any(isinstance(node.op, Collective) for node in graph.nodes)


def composed(left: Graph, right: Graph, inner: Inner) -> Graph:
    """A program with some of its inputs computed as nodes of another one are."""
    builder, names = GraphBuilder(left.name), dict[int, str]()
    own: dict[int, int] = {}
    positions = dict(inner)
    for position in sorted(right.ancestors(positions.values())):
        node = right.nodes[position]
        if isinstance(node.op, Input):
            own[position] = builder.input(node.op.label, node.op)
            names[own[position]] = node.op.label
        else:
            own[position] = builder.add(node.op, *(own[p] for p in node.operands))
    known = {name: place for place, name in names.items()}
    places: dict[int, int] = {}
    labels = {position: name for name, position in left.inputs.items()}
    for position, node in enumerate(left.nodes):
        name = labels.get(position)
        if name is None:
            places[position] = builder.add(node.op, *(places[p] for p in node.operands))
        elif name in positions:
            places[position] = own[positions[name]]
        else:
            places[position] = known[name] if name in known else builder.input(name, node.op)
    for name, position in left.outputs.items():
        builder.output(name, places[position])
    return builder.build()
