"""One lowering of one trace for all its ranks: what is the same for all of them is lowered once.

One rank is lowered as any program is. A node whose arguments are others on other ranks is lowered for each of these
too, in a copy of all that the lowering knows, and has to add nodes of the same types, or fewer. Of those that then
differ it is noted which rank has which. Whenever lowering a later node looks at one of them, or would take it for an
equal one, that node is lowered for each rank as well. A rank that fits no longer is left out: it has to be lowered by
itself.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import torch.fx
from torch.utils import _pytree as pytree

from rewright.frontends.aten.views import Storage, Tensor
from rewright.frontends.torch.alike.known import (
    Added,
    BuilderMark,
    RankBuilder,
    RankContext,
    Table,
    Variant,
    Watch,
    first_entries,
)
from rewright.frontends.torch.alike.numbers import Arguments, arguments_at
from rewright.frontends.torch.lower import finish, run
from rewright.frontends.torch.lower.walk import Walk
from rewright.frontends.torch.traced import TracedProgram
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node


class _Walk(Walk):
    """The lowering of one rank, beside which others keep step."""

    def __init__(
        self, context: RankContext, traced: TracedProgram, others: Mapping[int, TracedProgram], arguments: Arguments
    ) -> None:
        super().__init__(context, traced.spans, {})
        self.context, self.builder, self.watch = context, context.builder, context.builder.watch
        self.programs, self.arguments = others, arguments
        self.ranks = {rank: Variant() for rank in others}
        """Those that keep step."""
        self.valued: set[torch.fx.Node] = set()
        """Nodes whose values are others on other ranks."""

    def run(self, module: torch.fx.GraphModule, arguments: Sequence[Any]) -> Any:
        """Lower all nodes; afterwards it is told whether somebody looks at where ranks differ."""
        result = super().run(module, arguments)
        self.watch.was_seen = not self.valued.isdisjoint(_output_of(module).all_input_nodes)
        return result

    def lowered_at(self, node: torch.fx.Node) -> Any:
        if not self.ranks:
            return super().lowered_at(node)
        mark = _Mark.of(self, node)
        self.watch.was_seen = False
        result = super().lowered_at(node)
        if not self.watch.was_seen and node not in self.arguments and self.valued.isdisjoint(node.all_input_nodes):
            return result
        mine, after = _Outcome.since(mark, self, result, mark.builder[1]), mark.again()
        for rank in list(self.ranks):
            theirs = self._at(rank, node, mark, mine)
            if theirs is None:
                del self.ranks[rank]
            else:
                self._note(rank, node, theirs, mine, mark.builder[0])
        after.restore()
        return result

    def _at(self, rank: int, node: torch.fx.Node, mark: _Mark, mine: _Outcome) -> _Outcome | None:
        """What another rank makes of a node; None where that does not fit."""
        rank_only = self.ranks[rank]
        values = [rank_only.values.get(operand, self.values.get(operand)) for operand in node.all_input_nodes]
        given = mark.of_values(values)
        found = self._run_at(rank, node, mark, given, mine, [])
        lacking = len(mine.added.nodes) - len(found.added.nodes) if found is not None else 0
        if found is not None and lacking > 0:  # what follows has its place all the same
            given.restore()
            found = self._run_at(rank, node, mark, given, mine, mine.added.nodes[:lacking])
        if found is None or not found.fits(mine) or found.writes(given, rank_only.memory, mine):
            return None
        given.restore(rank_only.memory)
        known = {storage for storage, _, _ in given.storages}
        rank_only.memory |= {tensor.storage for tensor in _chain([found.result])} - known
        return found

    def _run_at(
        self, rank: int, node: torch.fx.Node, mark: _Mark, given: _Mark, mine: _Outcome, before: Sequence[Node]
    ) -> _Outcome | None:
        """What a rank makes of a node, after some nodes that it does not read; None where it makes nothing of it."""
        own = self.ranks[rank]
        builder = self.builder.of(own, mark.builder, mine.added, before)
        context = self.context.of(builder, self.programs[rank].groups, rank, mark.context)
        walk = Walk(context, self.spans, first_entries(self.constants, mark.constants))
        walk.values = cast("Any", ChainMap({}, own.values, self.values))
        walk.asserted, walk.in_flight = self.asserted[: mark.asserted], first_entries(self.in_flight, mark.in_flight)
        mark.restore()
        try:
            with arguments_at(rank, {node: self.arguments[node]} if node in self.arguments else {}):
                return _Outcome.since(given, walk, walk.lowered_at(node), 0)
        except RewrightError:
            return None

    def _note(self, rank: int, node: torch.fx.Node, theirs: _Outcome, mine: _Outcome, start: int) -> None:
        own = self.ranks[rank]
        pairs = enumerate(zip(theirs.added.nodes, mine.added.nodes, strict=False), start)
        nodes = {place: other for place, (other, ours) in pairs if not _is_equal(other, ours)}
        others = theirs.added.forms
        forms = {place: others.get(place) for place, form in mine.added.forms.items() if form != others.get(place)}
        keys, ours = theirs.added.shared, mine.added.shared
        lacks = {key for key, place in ours.items() if keys.get(key) != place}
        shared = {key: place for key, place in keys.items() if ours.get(key) != place}
        own.nodes |= nodes
        own.forms |= forms
        own.lacks |= lacks
        own.shared |= shared
        end = start + len(mine.added.nodes)
        self.watch.positions |= nodes.keys() | forms.keys() | set(range(start + len(theirs.added.nodes), end))
        self.watch.keys |= lacks | shared.keys()
        if not _is_value(theirs.result, mine.result):
            own.values[node] = theirs.result
            self.valued.add(node)


@dataclass(frozen=True)
class _Mark:
    """What was known before a node, with all the tensors that it can read or write."""

    builder: BuilderMark
    context: tuple[int, int, Counter[str]]
    tensors: list[tuple[Tensor, int, int]]
    storages: list[tuple[Storage, int, int]]
    in_flight: int
    asserted: int
    constants: int

    @staticmethod
    def of(walk: _Walk, node: torch.fx.Node) -> _Mark:
        counts = len(walk.in_flight), len(walk.asserted), len(walk.constants)
        empty = _Mark(walk.builder.mark(), walk.context.mark(), [], [], *counts)
        return empty.of_values([walk.values.get(operand) for operand in node.all_input_nodes])

    def of_values(self, values: Sequence[Any]) -> _Mark:
        """The same, with the tensors that these values are and see."""
        tensors = list(_chain(values))
        storages = {id(tensor.storage): tensor.storage for tensor in tensors}
        return replace(
            self,
            tensors=[(tensor, *tensor.seen) for tensor in tensors],
            storages=[(storage, storage.position, storage.version) for storage in storages.values()],
        )

    def again(self) -> _Mark:
        """The same tensors, as they are now."""
        tensors = [(tensor, *tensor.seen) for tensor, _, _ in self.tensors]
        storages = [(storage, storage.position, storage.version) for storage, _, _ in self.storages]
        return replace(self, tensors=tensors, storages=storages)

    def restore(self, kept: Set[Storage] = frozenset()) -> None:
        """Have tensors be as they were, but for what some memory holds."""
        for tensor, version, position in self.tensors:
            tensor.seen = version, position
        for storage, position, version in self.storages:
            if storage not in kept:
                storage.position, storage.version = position, version


@dataclass(frozen=True)
class _Outcome:
    """What lowering a node came to."""

    added: Added
    context: tuple[Any, ...]
    storages: dict[int, tuple[int, int]]
    """What is in memory, by which."""
    result: Any

    @staticmethod
    def since(mark: _Mark, walk: Walk, result: Any, shared: int) -> _Outcome:
        builder, context = cast("RankBuilder", walk.c.b), cast("RankContext", walk.c)
        known = (*context.all(), walk.constants, walk.in_flight, walk.asserted)
        copied = tuple(copy(part) for part in known)
        storages = {id(storage): (storage.position, storage.version) for storage, _, _ in mark.storages}
        return _Outcome(builder.since(mark.builder[0], shared), copied, storages, result)

    def writes(self, given: _Mark, own: Set[Storage], mine: _Outcome) -> bool:
        """Whether it wrote to memory that the first rank has too, and does not see here."""
        others = [part for part in given.storages if part[0] not in own and id(part[0]) not in mine.storages]
        return any(self.storages[id(storage)] != (position, version) for storage, position, version in others)

    def fits(self, other: _Outcome) -> bool:
        """Whether ranks go on alike from here."""
        common = self.storages.keys() & other.storages.keys()
        same = all(self.storages[memory] == other.storages[memory] for memory in common)
        return same and self.context == other.context and self.added.fits(other.added)


def lower_alike(programs: Mapping[int, TracedProgram], arguments: Arguments, first: int) -> dict[int, Graph]:
    """The graphs of the ranks that are lowered together with one of them; those of others are left out.

    ``arguments`` are those of the nodes in which ranks differ, with numbers for all ranks; the nodes themselves have
    those of the rank that is lowered. Raises as lowering that rank does.
    """
    traced = programs[first]
    watch = Watch()
    builder = RankBuilder(watch, Table(watch.look), Table(watch.compare))
    context = RankContext(builder, traced.groups, first)
    walk = _Walk(context, traced, {rank: program for rank, program in programs.items() if rank != first}, arguments)
    run(walk, traced)
    graphs = {first: finish(builder.build(), context, traced)}
    for rank, own in walk.ranks.items() if not watch.was_seen else ():
        graphs[rank] = finish(builder.graph_of(own), context, programs[rank])
    return graphs


def _output_of(module: torch.fx.GraphModule) -> torch.fx.Node:
    return next(iter(reversed(module.graph.nodes)))


def _chain(values: Sequence[Any]) -> Iterator[Tensor]:
    seen: set[int] = set()
    for value in pytree.tree_leaves(values):
        while isinstance(value, Tensor) and id(value) not in seen:
            seen.add(id(value))
            yield value
            value = value.parent


def _is_value(theirs: Any, mine: Any) -> bool:
    """Whether two values are the same to whoever reads them."""
    if theirs is mine:
        return True
    if isinstance(mine, Tensor):
        if not isinstance(theirs, Tensor):
            return False
        if mine.parent is None or theirs.parent is None:
            return mine.parent is theirs.parent and mine.storage.position == theirs.storage.position
        return mine.step == theirs.step and _is_value(theirs.parent, mine.parent)
    if isinstance(mine, (list, tuple)):
        every = cast("Sequence[Any]", mine)
        others = cast("Sequence[Any]", theirs) if type(theirs) is type(cast("object", mine)) else ()
        return len(others) == len(every) and all(map(_is_value, others, every))
    return type(theirs) is type(mine) and theirs == mine


def _is_equal(node: Node, other: Node) -> bool:
    """Whether nodes are the same, signs of zeros included."""
    return node == other and repr(node.op) == repr(other.op)


__all__ = ["lower_alike"]
