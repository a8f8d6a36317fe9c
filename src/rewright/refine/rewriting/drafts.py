"""A program that is rewritten step by step, with what each step put in the place of what.

A rewrite proposes; it is not trusted. Every step is written down as parts that take the place of nodes, and a proof
has to say of each why it computes the same (``evidence``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rewright import ops
from rewright.analysis.ends import Bound
from rewright.analysis.moving import LAYING_OUT
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.printing import print_attributes
from rewright.ir.rebuilding import Maker, kept_places, remove_dead_nodes, with_places
from rewright.ops.facts import Facts
from rewright.proof.rewriting.laws import LAWS, as_maker
from rewright.proof.rewriting.laws import Maker as MakerByLaw
from rewright.proof.rewriting.parts import copy_nodes
from rewright.proof.rewriting.splices import NOWHERE, Within
from rewright.proof.rewriting.stages import Put, with_parts
from rewright.proof.rewriting.within import facts_within
from rewright.proof.wrapping import insert_wrapping


@dataclass(frozen=True)
class Change:
    """Parts that took the place of nodes of a program, all at once, and the law that says so, if one does."""

    before: Graph
    puts: Mapping[int, Put]
    law: str = ""
    within: Within = NOWHERE
    """What is assumed of numbers of the program."""

    def facts(self, *, counts: bool) -> Sequence[Facts]:
        """What every node of the program may be wherever it is defined, as the checker knows it."""
        return facts_within(self.before, self.within, counts=counts)


@dataclass(frozen=True)
class Draft:
    """A program, and how it came about."""

    graph: Graph
    changes: tuple[Change, ...] = ()
    counted_after: int | None = None
    """The number of changes before arithmetic of short integers was written out; None where it was not yet."""

    def rebuild(self, make: Maker, law: str = "", within: Within = NOWHERE) -> Draft:
        """The program with some nodes made anew, as :func:`rewright.ir.rebuilding.rebuild` has it."""
        after, places = with_places(self.graph, make)
        puts = dict(_puts(self.graph, after, places))
        if not puts:
            return self
        change = Change(self.graph, puts, law, within)
        return replace(self, graph=with_parts(self.graph, puts), changes=(*self.changes, change))

    def by_law(self, name: str, law: MakerByLaw | None = None, positions: Collection[int] | None = None) -> Draft:
        """The program with nodes made as a law says, those at ``positions`` alone where they are given.

        ``law`` is that of this program, if it is known already.
        """
        make = law or LAWS[name](self.graph, self.facts)
        return self.rebuild(as_maker(self.graph, make, positions), name)

    @cached_property
    def facts(self) -> Sequence[Facts]:
        """What every node may be wherever the program is defined, as the checker knows it."""
        return facts_within(self.graph, NOWHERE, counts=self.counted_after is not None)

    def remove_dead_nodes(self) -> Draft:
        """The program without nodes that neither an output nor another rank needs."""
        return replace(self, graph=remove_dead_nodes(self.graph))

    def insert_wrapping(self, ranges: Mapping[str, Bound] | None) -> Draft:
        """The program with arithmetic of short integers written out; as it is where there are no ``ranges``."""
        graph = self.graph if ranges is None else insert_wrapping(self.graph, ranges)
        return replace(self, graph=graph, counted_after=len(self.changes))


def graphs_of(drafts: Iterable[Draft]) -> list[Graph]:
    """The programs as they are."""
    return [draft.graph for draft in drafts]


def _puts(before: Graph, after: Graph, places: Mapping[int, int]) -> Iterator[tuple[int, Put]]:
    """The nodes that were made anew and are still read, with what was put in the place of each."""
    live, read = kept_places(before), kept_places(after)
    held: dict[int, list[int]] = {}
    for position, place in places.items():
        held.setdefault(place, []).append(position)
    scalars = _scalars(after)
    for position in sorted(live):
        place = places[position]
        if place in read and not _is_copied(before.nodes[position], after.nodes[place], places):
            yield position, _part(after, place, position, held, scalars)


def _is_copied(old: Node, new: Node, places: Mapping[int, int]) -> bool:
    if old.op != new.op or new.operands != tuple(places[p] for p in old.operands):
        return False
    # 1 and true are equal in Python, and so are 0.0 and -0.0, and are other attributes.
    is_table = isinstance(old.op, ops.Constant) and old.op is not new.op
    return not is_table or print_attributes(old.op) == print_attributes(new.op)


def _scalars(graph: Graph) -> list[bool]:
    """For every node whether it is one number, or the index along an axis, laid out."""
    found: list[bool] = []
    for node in graph.nodes:
        is_number = ops.splat(node.op) is not None or isinstance(node.op, ops.Iota)
        found.append(is_number or (isinstance(node.op, LAYING_OUT) and found[node.operands[0]]))
    return found


def _part(after: Graph, place: int, position: int, held: Mapping[int, Sequence[int]], scalars: Sequence[bool]) -> Put:
    """What was put in, up to nodes that hold values of earlier nodes; numbers and indices are always a part of it."""
    inside, leaves = set[int](), dict[int, int]()
    stack = [place]
    while stack:
        own = stack.pop()
        if own in inside or own in leaves:
            continue
        before = [p for p in held.get(own, ()) if p < position]
        if before and not scalars[own]:
            leaves[own] = before[-1]
            continue
        inside.add(own)
        stack.extend(after.nodes[own].operands)
    builder, places = GraphBuilder("part"), dict[int, int]()
    names: dict[str, int] = {}
    for number, own in enumerate(sorted(leaves)):
        name = f"a{number}"
        places[own] = builder.input(name, ops.Input(name, after.nodes[own].type))
        names[name] = leaves[own]
    copy_nodes(builder, after, _operands_first(after, place, inside), places)
    builder.output("result", places[place])
    return Put(builder.build(), names)


def _operands_first(graph: Graph, root: int, inside: Collection[int]) -> list[int]:
    """The nodes of a part in an order that only depends on what it computes: parts that are equal have equal places."""
    order, done, stack = list[int](), set[int](), [(root, False)]
    while stack:
        position, is_read = stack.pop()
        if position in done or position not in inside:
            continue
        if is_read:
            done.add(position)
            order.append(position)
        else:
            stack.append((position, True))
            stack.extend((operand, False) for operand in reversed(graph.nodes[position].operands))
    return order


__all__ = ["Change", "Draft", "graphs_of"]
