"""What a lowering knows of a program, as one rank has it, and what other ranks have that is not that.

A builder and a context of the first rank tell when something is looked at that ranks differ in; ``of`` makes those of
another rank, with what was known at some point of the first rank's lowering.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch.fx

from rewright import ops
from rewright.frontends.aten.context import Communicator, Context
from rewright.frontends.aten.views import Storage
from rewright.ir.graph import Graph, Node
from rewright.ops.reference.affine import Affine
from rewright.ops.reference.simplifying import SimplifyingBuilder

Key = tuple[Any, tuple[int, ...]]
BuilderMark = tuple[int, int, frozenset[int]]


@dataclass
class Variant:
    """What another rank has that is not the first one's."""

    nodes: dict[int, Node] = field(default_factory=dict[int, Node])
    forms: dict[int, Affine | None] = field(default_factory=dict[int, "Affine | None"])
    lacks: set[Key] = field(default_factory=set[Key])
    shared: dict[Key, int] = field(default_factory=dict[Key, int])
    values: dict[torch.fx.Node, Any] = field(default_factory=dict[torch.fx.Node, Any])
    memory: set[Storage] = field(default_factory=set[Storage])
    """What only it writes to."""


@dataclass
class Watch:
    """Where ranks differ, and whether somebody has looked there."""

    positions: set[int] = field(default_factory=set[int])
    keys: set[Key] = field(default_factory=set[Key])
    was_seen: bool = False

    def look(self, position: int) -> None:
        """Note that a node is looked at."""
        self.was_seen |= position in self.positions

    def compare(self, key: Key) -> None:
        """Note that an equal node is looked for."""
        self.was_seen |= key in self.keys


class Table(dict[Any, Any]):
    """What a builder knows by key, none of it None: it tells what is asked for, and has more below what it holds."""

    def __init__(self, look: Callable[[Any], None] | None = None, below: Callable[[Any], Any] | None = None) -> None:
        self.look, self.below = look, below

    def get(self, key: Any, default: Any = None) -> Any:
        if self.look is not None:
            self.look(key)
        found = super().get(key)
        if found is None and self.below is not None:
            found = self.below(key)
        return default if found is None else found

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def own(self, key: Any) -> Any:
        """What it holds itself."""
        return super().get(key)


class RankBuilder(SimplifyingBuilder):
    """A builder that tells when nodes are looked at that ranks differ in."""

    def __init__(self, watch: Watch, forms: Table, shared: Table) -> None:
        super().__init__()
        self.watch = watch
        self._forms = self.forms = forms
        self._shared = self.common = shared

    def node(self, position: int) -> Node:
        self.watch.look(position)
        return super().node(position)

    def mark(self) -> BuilderMark:
        """How much there is."""
        return len(self._nodes), len(self._shared), frozenset(self.superseded)

    def of(self, rank: Variant, mark: BuilderMark, mine: Added, before: Sequence[Node]) -> RankBuilder:
        """What there was, as another rank has it, with further nodes at its end."""
        start = mark[0]

        def form(place: int) -> Any:
            return rank.forms[place] if place in rank.forms else self.forms.own(place) if place < start else None

        def shared(key: Key) -> int | None:
            if key in rank.shared:
                return rank.shared[key]
            return None if key in rank.lacks or key in mine.shared else self.common.own(key)

        found = RankBuilder(Watch(), Table(below=form), Table(below=shared))
        found.span = self.span
        found._nodes, found._inputs = [*self.nodes_of(rank)[:start], *before], dict(self._inputs)
        found.superseded = set(mark[2])
        return found

    def nodes_of(self, rank: Variant) -> list[Node]:
        """The nodes as another rank has them."""
        found = list(self._nodes)
        for position, node in rank.nodes.items():
            found[position] = node
        return found

    def graph_of(self, rank: Variant) -> Graph:
        """The graph as another rank has it."""
        return Graph(tuple(self.nodes_of(rank)), dict(self._inputs), dict(self._outputs), self.name)

    def since(self, start: int, shared_before: int) -> Added:
        """What was added from a node on, and after so many entries for what is shared."""
        forms = {place: self.forms.own(place) for place in range(start, len(self._nodes))}
        shared = dict(islice(reversed(self._shared.items()), len(self._shared) - shared_before))
        return Added(self._nodes[start:], forms, shared, frozenset(self.superseded))


@dataclass(frozen=True)
class Added:
    """What lowering a node added to a builder."""

    nodes: list[Node]
    forms: dict[int, Any]
    shared: dict[Key, int]
    superseded: frozenset[int]

    def fits(self, other: Added) -> bool:
        """Whether these can stand where the other's are: of the same types, and fewer only if nobody misses those."""
        pairs = zip(self.nodes, other.nodes, strict=False)
        more = other.nodes[len(self.nodes) :]
        return (
            self.superseded == other.superseded
            and len(self.nodes) <= len(other.nodes)
            and all(mine.type == theirs.type for mine, theirs in pairs)
            and not any(isinstance(node.op, ops.Collective) for node in more)
        )


class RankContext(Context):
    """A context that tells when it is asked which rank this is."""

    def __init__(self, builder: RankBuilder, groups: Mapping[str, Communicator], rank: int) -> None:
        self.builder = builder
        self._rank = rank
        super().__init__(builder, _Groups(groups, builder.watch), rank)

    @property
    def rank(self) -> int:
        """The rank."""
        self.builder.watch.was_seen = True
        return self._rank

    @rank.setter
    def rank(self, rank: int) -> None:
        self._rank = rank

    def mark(self) -> tuple[int, int, Counter[str]]:
        """How much there is."""
        return len(self.assumptions), len(self.ties), self._sites.copy()

    def of(
        self, builder: RankBuilder, groups: Mapping[str, Communicator], rank: int, mark: tuple[int, int, Counter[str]]
    ) -> RankContext:
        """A copy of what there was, for another rank."""
        found = RankContext(builder, groups, rank)
        found.assumptions, found.ties = first_entries(self.assumptions, mark[0]), first_entries(self.ties, mark[1])
        found._sites = mark[2].copy()
        return found

    def all(self) -> tuple[Any, ...]:
        """All that is known besides the graph."""
        return self.assumptions, self.ties, self._sites


class _Groups(dict[str, Communicator]):
    """Process groups, of which those of one rank are each rank's own."""

    def __init__(self, groups: Mapping[str, Communicator], watch: Watch) -> None:
        super().__init__(groups)
        self.watch = watch

    def __getitem__(self, name: str) -> Communicator:
        found = super().__getitem__(name)
        self.watch.was_seen |= len(found.ranks) == 1
        return found


def first_entries(table: Mapping[Any, Any], count: int) -> dict[Any, Any]:
    """The first entries of a table, in the order in which they were made."""
    return dict(islice(table.items(), count))
