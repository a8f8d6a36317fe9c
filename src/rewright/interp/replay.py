"""The ranks run again with other values in one place: only what these change, and what an output is made of.

A run of eight ranks takes two thousand operators each. Where one of them is given another tensor, the loss may need
thirty of them again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewright import ops
from rewright.analysis.meetings import LocalNode, Schedule, match_collectives
from rewright.interp.collectives import simulate
from rewright.interp.machine import Floating
from rewright.interp.trial import Execution
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ops.base import Array, TensorOperator

_REALS = Floating()


@dataclass(frozen=True)
class Change:
    """Another value of a node, for one of its readers alone where that is given."""

    position: int
    value: Array
    reader: int | None = None


class Replay:
    """Runs of the ranks that differ from one that kept the values of all nodes."""

    def __init__(self, graphs: Sequence[Graph], before: Sequence[Execution], schedule: Schedule | None = None) -> None:
        self._graphs, self._before = graphs, before
        self._schedule = match_collectives(graphs) if schedule is None else schedule
        self._slices: dict[str, list[tuple[tuple[int, int], ...]]] = {}

    def run(self, output: str, changes: Sequence[Change]) -> list[Execution]:
        """The output of every rank that has it, with one change on each rank.

        Raises RewrightError where an operator cannot be executed on the values that it meets.
        """
        again = _Again(self._graphs, self._before, changes)
        for members in self._slice(output):
            if any(again.is_stale(rank, position) for rank, position in members):
                again.compute(members)
        return [
            Execution({output: again.value(rank, graph.outputs[output])} if output in graph.outputs else {})
            for rank, graph in enumerate(self._graphs)
        ]

    def _slice(self, output: str) -> list[tuple[tuple[int, int], ...]]:
        """The backward slice of an output over all ranks, in the order of the schedule: nodes that meet together."""
        if output not in self._slices:
            needed = {(r, graph.outputs[output]) for r, graph in enumerate(self._graphs) if output in graph.outputs}
            found: list[tuple[tuple[int, int], ...]] = []
            for step in reversed(self._schedule):
                members = ((step.rank, step.position),) if isinstance(step, LocalNode) else tuple(step.nodes)
                if needed.isdisjoint(members):
                    continue
                found.append(members)
                needed.update(members)
                needed.update((r, operand) for r, p in members for operand in self._graphs[r].nodes[p].operands)
            self._slices[output] = found[::-1]
        return self._slices[output]


class _Again:
    """One run: values that differ from those before, by rank and position."""

    def __init__(self, graphs: Sequence[Graph], before: Sequence[Execution], changes: Sequence[Change]) -> None:
        self._graphs, self._before, self._changes = graphs, before, changes
        self._values = [{one.position: one.value} if one.reader is None else {} for one in changes]

    def value(self, rank: int, position: int) -> Array:
        """What a node has in this run."""
        own = self._values[rank]
        return own[position] if position in own else self._before[rank].values[position]

    def is_stale(self, rank: int, position: int) -> bool:
        """Whether a node, which was given no value itself, reads anything that differs."""
        own, change = self._values[rank], self._changes[rank]
        if change.reader == position:
            return True
        return position not in own and any(p in own for p in self._graphs[rank].nodes[position].operands)

    def compute(self, members: Sequence[tuple[int, int]]) -> None:
        """Evaluate a node, or nodes that meet; those with given values keep them."""
        results = [self._apply(*members[0])] if len(members) == 1 else self._meet(members)
        for (rank, position), result in zip(members, results, strict=True):
            change = self._changes[rank]
            if change.position != position or change.reader is not None:
                self._values[rank][position] = result

    def _operands(self, rank: int, position: int) -> list[Array]:
        change = self._changes[rank]
        return [
            change.value if (change.reader, change.position) == (position, p) else self.value(rank, p)
            for p in self._graphs[rank].nodes[position].operands
        ]

    def _apply(self, rank: int, position: int) -> Array:
        nodes = self._graphs[rank].nodes
        op, operands = nodes[position].op, self._operands(rank, position)
        if isinstance(op, ops.Send):
            return operands[0]
        if not isinstance(op, TensorOperator):
            raise RewrightError(f"{op.name} at {nodes[position].span} has no execution")
        return _REALS.apply(op, [nodes[p].type for p in nodes[position].operands], operands)

    def _meet(self, members: Sequence[tuple[int, int]]) -> list[Array]:
        first, position = members[0]
        nodes = [self._graphs[r].nodes[p] for r, p in members]
        if isinstance(nodes[0].op, ops.Send):
            return [self.value(first, position)] * len(members)
        return simulate(nodes, [r for r, _ in members], [self._operands(r, p)[0] for r, p in members])
