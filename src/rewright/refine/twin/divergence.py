"""Where two programs part, by values: which sequential tensors the ranks hold, and the first that they do not."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from rewright import ops
from rewright.ir.placement import Placement
from rewright.ops.base import Array
from rewright.refine.editing import Site, sites
from rewright.refine.twin.placing import TOLERANCE, fitting
from rewright.refine.twin.twin import Trial, Twin

MOST_CANDIDATES = 12
"""Rank tensors that are compared element by element with one sequential tensor."""


@dataclass(frozen=True)
class Held:
    """Rank tensors that together are one sequential tensor."""

    site: Site
    placement: Placement


@dataclass(frozen=True)
class Divergence:
    """The first sequential tensor on the way to a wrong output that the ranks do not hold.

    ``site`` is the first place of the rank programs that reads tensors which are right and computes one that is not
    any sequential tensor, else the last place that is right; None where there is none.
    """

    sequential: int
    site: Site | None


def correspondences(twin: Twin, trial: Trial) -> dict[int, Held]:
    """For every sequential node whose value the ranks hold: where, and how it is placed.

    ``trial`` has to keep the values of all nodes, as :func:`run_all` does.
    """
    index = _Index(twin, trial)
    found: dict[int, Held] = {}
    for position, value in trial.sequential.values.items():
        held = index.find(value)
        if held is not None:
            found[position] = held
    return found


def run_all(twin: Twin, seed: int = 0, trial: int = 0) -> Trial | None:
    """One trial that keeps the values of all nodes, or None where a program fails."""
    keep = [frozenset(range(len(graph))) for graph in twin.program.graphs]
    ran = twin.run_trial(seed, trial, keep, frozenset(range(len(twin.sequential))))
    return ran if isinstance(ran, Trial) else None


def first_divergence(twin: Twin, wrong_outputs: Sequence[str], seed: int = 0) -> Divergence | None:
    """Follow wrong outputs back to where the values were last right, or None where a program fails.

    Args:
        wrong_outputs: names of outputs that are known to differ.
        seed: determines the inputs.
    """
    trial = run_all(twin, seed)
    if trial is None:
        return None
    held = correspondences(twin, trial)
    nodes = twin.sequential.nodes
    stack = [twin.sequential.outputs[name] for name in wrong_outputs]
    unmatched: set[int] = set()
    while stack:
        position = stack.pop()
        if position not in unmatched and (position not in held or not unmatched):
            unmatched.add(position)
            stack.extend(p for p in nodes[position].operands if p not in held)
    if not unmatched:
        return None
    first = min(unmatched)
    right = [held[p].site for p in (first, *nodes[first].operands) if p in held]
    site = _first_wrong_site(twin, held, right)
    if site is None and right:
        site = max(right, key=lambda place: place[0])
    return Divergence(first, site)


def _first_wrong_site(twin: Twin, held: dict[int, Held], right: Sequence[Site]) -> Site | None:
    known = {tuple(h.site.items()) for h in held.values()}
    starts = {tuple(site.items()) for site in right}
    for site in sites(twin.program):
        if tuple(site.items()) in known or len(site) != len(twin.program.graphs):
            continue
        arity = min(len(twin.program.graphs[rank].nodes[p].operands) for rank, p in site.items())
        for i in range(arity):
            read = tuple((rank, twin.program.graphs[rank].nodes[p].operands[i]) for rank, p in site.items())
            if read in starts:
                return site
    return None


class _Index:
    """Rank tensors by the sums of their elements, over one rank or over the ranks of some mesh axes."""

    def __init__(self, twin: Twin, trial: Trial) -> None:
        self.mesh = twin.program.mesh
        self.trial = trial
        entries: list[tuple[float, int]] = []
        self.sites = [site for site in sites(twin.program) if len(site) == len(twin.program.graphs)]
        names = [name for name, _ in self.mesh.axes]
        groups = {self.mesh.group(0, chosen) for n in range(len(names) + 1) for chosen in combinations(names, n)}
        for number, site in enumerate(self.sites):
            if isinstance(twin.program.graphs[0].nodes[site[0]].op, ops.Send):
                continue
            sums = [_sum(execution.values[site[rank]]) for rank, execution in enumerate(trial.ranks)]
            entries.extend((total, number) for total in {sum(sums[rank] for rank in group) for group in groups})
        self.entries = sorted(entry for entry in entries if np.isfinite(entry[0]))
        self.keys = [total for total, _ in self.entries]

    def find(self, value: Array) -> Held | None:
        """The first rank tensors that fit a global tensor under some placement."""
        for number in islice(self._near(value), MOST_CANDIDATES):
            site = self.sites[number]
            local = [execution.values[site[rank]] for rank, execution in enumerate(self.trial.ranks)]
            if local[0].ndim != value.ndim or (local[0].dtype.kind != value.dtype.kind):
                continue
            placement = fitting(value, local, self.mesh)
            if placement is not None:
                return Held(site, placement)
        return None

    def _near(self, value: Array) -> Iterator[int]:
        total = _sum(value)
        margin = TOLERANCE * max(float(np.abs(value.astype(np.float64)).sum()), 1e-30)
        if np.isfinite(total) and np.isfinite(margin):
            low, high = bisect_left(self.keys, total - margin), bisect_right(self.keys, total + margin)
            yield from dict.fromkeys(sorted(number for _, number in self.entries[low:high]))


def _sum(value: Array) -> float:
    with np.errstate(all="ignore"):
        return float(value.astype(np.float64).sum())
