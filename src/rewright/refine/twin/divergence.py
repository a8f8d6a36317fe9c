"""Where two programs part, by values: which sequential tensors the ranks hold, and the first that they do not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.operator import Operator
from rewright.ir.placement import Placement
from rewright.ops.base import Array
from rewright.refine.editing import Site, sites
from rewright.refine.twin.placing import TOLERANCE, compare, fitting
from rewright.refine.twin.twin import Trial, Twin, TwinResult

MOST_CANDIDATES = 32
"""Rank tensors that are compared element by element with one sequential tensor."""


@dataclass(frozen=True)
class Held:
    """Rank tensors that together are one sequential tensor."""

    site: Site
    placement: Placement
    number: int
    """Of the place, in the order of the program."""


@dataclass(frozen=True)
class Divergence:
    """The first sequential tensor on the way to a wrong output that the ranks do not hold.

    ``site`` is the first place of the rank programs that reads tensors which are right and computes one that is not
    any sequential tensor, else the last place that is right; ``end`` the next place behind it with the operator of
    the sequential node. What is wrong lies at one of them, or between. None where there is no such place;
    ``sequential`` is None where the ranks failed at ``site``.
    """

    sequential: int | None
    site: Site | None
    end: Site | None = None


_LAYOUT = (ops.Reshape, ops.Transpose, ops.BroadcastInDim, ops.Convert, ops.Constant, ops.Iota)
"""Operators whose results are right where their operands are, whether the other program has such a tensor or not."""


def run_all(twin: Twin, seed: int = 0, trial: int = 0) -> Trial | TwinResult:
    """One trial that keeps the values of all nodes, or the result where a program fails."""
    keep = [frozenset(range(len(graph))) for graph in twin.program.graphs]
    return twin.run_trial(seed, trial, keep, frozenset(range(len(twin.sequential))))


def correspondences(twin: Twin, trial: Trial) -> dict[int, Held]:
    """For every sequential node whose value the ranks hold: the first place that does, and how it is placed.

    ``trial`` has to keep the values of all nodes, as :func:`run_all` does.
    """
    index = _Index(twin, trial)
    found: dict[int, Held] = {}
    for position, value in trial.sequential.values.items():
        held = next(index.find(value), None)
        if held is not None:
            found[position] = held
    return found


def first_divergence(twin: Twin, wrong_outputs: Sequence[str], seed: int = 0) -> Divergence | None:
    """Follow wrong outputs back to where the values were last right, or None where that cannot be told.

    Args:
        wrong_outputs: names of outputs that are known to differ.
        seed: determines the inputs.
    """
    for number in range(twin.draws.trials):
        trial = run_all(twin, seed, number)
        if isinstance(trial, TwinResult):
            if trial.failed_at is None:
                return None
            rank, position = trial.failed_at
            place = next((site for site in sites(twin.program) if site.get(rank) == position), {rank: position})
            return Divergence(None, place)
        found = _Parting(twin, trial).find(wrong_outputs)
        if found is not None:
            return found
    return None


class _Parting:
    """One trial, with all places of both programs whose values the other program has."""

    def __init__(self, twin: Twin, trial: Trial) -> None:
        self.nodes = twin.sequential.nodes
        self.outputs = twin.sequential.outputs
        self.program = twin.program
        self.trial = trial
        self.index = _Index(twin, trial)
        self.held: dict[int, list[int]] = {}
        """For every sequential node the numbers of the places that hold its value."""
        self.matched: set[int] = set()
        inputs = {position: name for name, position in twin.sequential.inputs.items()}
        for position, value in trial.sequential.values.items():
            numbers = [held.number for held in islice(self.index.find(value), MOST_CANDIDATES)]
            if position in inputs:
                # Inputs are right by definition, in whatever way the ranks hold them.
                numbers.append(self.index.number_of_input(inputs[position]))
            if numbers:
                self.held[position] = numbers
                self.matched.update(numbers)
        self.operands = [self._operands(site) for site in self.index.sites]
        self.right = self._right()

    def find(self, wrong_outputs: Sequence[str]) -> Divergence | None:
        """The earliest wrong tensor on the way to the outputs, if an output is wrong in this trial."""
        known = self._known()
        unmatched = {self.outputs[name] for name in wrong_outputs if not self._is_right(name)}
        stack = [operand for position in unmatched for operand in self.nodes[position].operands]
        while stack:
            position = stack.pop()
            if position not in known and position not in unmatched:
                unmatched.add(position)
                stack.extend(self.nodes[position].operands)
        if not unmatched:
            return None
        first = min(unmatched)
        operator = type(self.nodes[first].op)
        sources = [n for p in (*self.nodes[first].operands, first) for n in self._holders(p) if n >= 0]
        site = self._first_wrong(sources, operator)
        if site is None:
            return Divergence(first, self.index.sites[max(sources)] if sources else None)
        return Divergence(first, self.index.sites[site], self._next_like(site, operator))

    def _is_right(self, name: str) -> bool:
        """Whether the ranks hold an output in this trial, and as the program says where it says so."""
        value = self.trial.sequential.outputs[name]
        local = [execution.outputs.get(name) for execution in self.trial.ranks]
        held = [tensor for tensor in local if tensor is not None]
        expected = self.program.outputs.get(name)
        if len(held) != len(local):
            return False
        if expected is None:
            return fitting(value, held, self.program.mesh) is not None
        try:
            worst = compare(value, held, expected, self.program.mesh)
        except RewrightError:
            return False
        return worst is None or worst.is_rounding

    def _known(self) -> set[int]:
        """Sequential nodes that the ranks hold, or that only lay out what they hold."""
        known: set[int] = set()
        for position, node in enumerate(self.nodes):
            if position in self.held or (isinstance(node.op, _LAYOUT) and known.issuperset(node.operands)):
                known.add(position)
        return known

    def _holders(self, position: int) -> list[int]:
        """Places that hold a sequential tensor, or what it only lays out."""
        found = list(self.held.get(position, ()))
        node = self.nodes[position]
        if not found and isinstance(node.op, _LAYOUT):
            found = [number for operand in node.operands for number in self._holders(operand)]
        return found

    def _operands(self, site: Site) -> list[int]:
        """Numbers of the places that a place reads; -1 for one that does not exist on all ranks."""
        graphs = self.program.graphs
        arity = min(len(graphs[rank].nodes[p].operands) for rank, p in site.items())
        read = [tuple((r, graphs[r].nodes[p].operands[i]) for r, p in site.items()) for i in range(arity)]
        return [self.index.numbers.get(place, -1) for place in read]

    def _right(self) -> list[bool]:
        right: list[bool] = []
        for number, site in enumerate(self.index.sites):
            layout = isinstance(self.program.graphs[0].nodes[site[0]].op, _LAYOUT)
            operands = [n for n in self.operands[number] if n >= 0]
            right.append(number in self.matched or (layout and all(n < number and right[n] for n in operands)))
        return right

    def _operator(self, number: int) -> type[Operator]:
        return type(self.program.graphs[0].nodes[self.index.sites[number][0]].op)

    def _first_wrong(self, sources: Sequence[int], operator: type[Operator]) -> int | None:
        """The first wrong place that reads only right ones.

        Preferred are those that read a source (through layout), then those with the given operator.
        """
        reached = set(sources)
        best: tuple[int, int] | None = None
        for number, operands in enumerate(self.operands):
            reads = not reached.isdisjoint(operands)
            if self.right[number]:
                if reads and number not in self.matched:
                    reached.add(number)
                continue
            if not all(n >= 0 and self.right[n] for n in operands):
                continue
            rank = 2 * (not reads) + (self._operator(number) is not operator)
            if rank < 3 and (best is None or rank < best[0]):
                best = rank, number
        return best[1] if best else None

    def _next_like(self, start: int, operator: type[Operator]) -> Site | None:
        """The first place behind a wrong one, through wrong ones, that has an operator."""
        reached = {start}
        for number in range(start, len(self.operands)):
            if number == start or (not self.right[number] and not reached.isdisjoint(self.operands[number])):
                if self._operator(number) is operator:
                    return self.index.sites[number]
                reached.add(number)
        return None


class _Index:
    """Rank tensors by the sums of their elements, over one rank or over the ranks of some mesh axes."""

    def __init__(self, twin: Twin, trial: Trial) -> None:
        self.mesh = twin.program.mesh
        self.trial = trial
        entries: list[tuple[float, int]] = []
        self.graphs = twin.program.graphs
        self.sites = [site for site in sites(twin.program) if len(site) == len(self.graphs)]
        self.numbers = {tuple(site.items()): number for number, site in enumerate(self.sites)}
        names = [name for name, _ in self.mesh.axes]
        groups = {self.mesh.group(0, chosen) for n in range(len(names) + 1) for chosen in combinations(names, n)}
        for number, site in enumerate(self.sites):
            if isinstance(twin.program.graphs[0].nodes[site[0]].op, ops.Send):
                continue
            sums = [_sum(execution.values[site[rank]]) for rank, execution in enumerate(trial.ranks)]
            entries.extend((total, number) for total in {sum(sums[rank] for rank in group) for group in groups})
        self.entries = sorted(entry for entry in entries if np.isfinite(entry[0]))
        self.keys = [total for total, _ in self.entries]

    def number_of_input(self, name: str) -> int:
        """The place of an input, -1 where it is not one place on all ranks."""
        return self.numbers.get(tuple((r, g.inputs.get(name, -1)) for r, g in enumerate(self.graphs)), -1)

    def find(self, value: Array) -> Iterator[Held]:
        """Rank tensors that fit a global tensor under some placement, in the order of the program."""
        for number in islice(self._near(value), MOST_CANDIDATES):
            site = self.sites[number]
            local = [execution.values[site[rank]] for rank, execution in enumerate(self.trial.ranks)]
            if local[0].ndim != value.ndim or local[0].dtype.kind != value.dtype.kind:
                continue
            placement = fitting(value, local, self.mesh)
            if placement is not None:
                yield Held(site, placement, number)

    def _near(self, value: Array) -> Iterator[int]:
        total = _sum(value)
        margin = TOLERANCE * max(float(np.abs(value.astype(np.float64)).sum()), 1e-30)
        if np.isfinite(total) and np.isfinite(margin):
            low, high = bisect_left(self.keys, total - margin), bisect_right(self.keys, total + margin)
            yield from dict.fromkeys(sorted(number for _, number in self.entries[low:high]))


def _sum(value: Array) -> float:
    with np.errstate(all="ignore"):
        return float(value.astype(np.float64).sum())
