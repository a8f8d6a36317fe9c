"""What a mutant is, and the interface of the families that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rewright.analysis.moving import laid_out
from rewright.blame.editing import Replacement, Site, edit_program, sites
from rewright.ir.errors import TypeMismatch
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.placement import RankProgram
from rewright.ir.types import SourceSpan


@dataclass(frozen=True)
class Mutant:
    """A rank program with one bug, on all ranks or on one.

    ``positions`` are those of the changed result in the mutated program, by rank; ``original`` those of the node
    that was changed, in the program it came from.
    """

    kind: str
    description: str
    ranks: tuple[int, ...]
    site: SourceSpan
    positions: Site
    original: Site
    program: RankProgram


@dataclass(frozen=True)
class Place:
    """A place in a program where a family may put a bug."""

    program: RankProgram
    site: Site
    users: tuple[tuple[tuple[int, ...], ...], ...]
    """For every rank and node the positions of its readers."""

    @property
    def rank(self) -> int:
        """The rank that represents the others."""
        return min(self.site)

    @property
    def graph(self) -> Graph:
        """The program of that rank."""
        return self.program.graphs[self.rank]

    @property
    def node(self) -> Node:
        """The node on that rank."""
        return self.graph.nodes[self.site[self.rank]]

    def operand(self, index: int) -> Node:
        """An operand of the node on that rank."""
        return self.graph.nodes[self.node.operands[index]]

    def source(self, index: int) -> Node:
        """What an operand of the node on that rank lays out."""
        return self.graph.nodes[laid_out(self.graph, self.node.operands[index])]

    def readers(self) -> list[Node]:
        """The nodes that read the result on that rank."""
        return [self.graph.nodes[p] for p in self.users[self.rank][self.site[self.rank]]]

    def readers_behind(self, transparent: type[Operator]) -> list[Node]:
        """The nodes that read the result, directly or through operators of one kind."""
        found: list[Node] = []
        stack = [self.site[self.rank]]
        while stack:
            for position in self.users[self.rank][stack.pop()]:
                node = self.graph.nodes[position]
                if isinstance(node.op, transparent):
                    stack.append(position)
                else:
                    found.append(node)
        return found


Bug = tuple[str, str, Replacement]
"""Kind, description, and what to build in the place of the node."""
Family = Callable[[Place], Iterator[Bug]]


def places(program: RankProgram) -> Iterator[Place]:
    """Every place of a program whose node can matter to an output or a collective."""
    users = tuple(tuple(tuple(found) for found in graph.users()) for graph in program.graphs)
    live = [graph.live() for graph in program.graphs]
    for site in sites(program):
        if all(position in live[rank] for rank, position in site.items()):
            yield Place(program, site, users)


def apply(place: Place, kind: str, description: str, build: Replacement, only: int | None = None) -> Mutant | None:
    """The mutant, or None where the change does not type-check; ``only`` restricts it to one rank."""
    site = place.site if only is None else {only: place.site[only]}
    try:
        program, positions = edit_program(place.program, site, build)
    except TypeMismatch:
        return None
    where = f" on rank {only}" if only is not None else ""
    return Mutant(kind, description + where, tuple(site), place.node.span, positions, site, program)
