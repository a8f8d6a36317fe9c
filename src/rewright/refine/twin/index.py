"""Rank tensors by the sum of their elements, so that whoever holds a given tensor is found without comparing all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np

from rewright import ops
from rewright.ir.placement import Placement
from rewright.ops.base import Array
from rewright.refine.blame.editing import Site, sites
from rewright.refine.twin.placing import TOLERANCE, fitting
from rewright.refine.twin.twin import Trial, Twin

MOST_CANDIDATES = 32
"""Rank tensors that are compared element by element with one sequential tensor."""


@dataclass(frozen=True)
class Held:
    """Rank tensors that together are one sequential tensor."""

    site: Site
    placement: Placement


class TensorIndex:
    """The tensors of all ranks in one trial that kept them, by sums over one rank or over the ranks of mesh axes."""

    def __init__(self, twin: Twin, trial: Trial) -> None:
        self.mesh = twin.program.mesh
        self.trial = trial
        self.sites = [site for site in sites(twin.program) if len(site) == len(twin.program.graphs)]
        names = [name for name, _ in self.mesh.axes]
        groups = {self.mesh.group(0, chosen) for n in range(len(names) + 1) for chosen in combinations(names, n)}
        entries: list[tuple[float, int]] = []
        for number, site in enumerate(self.sites):
            if isinstance(twin.program.graphs[0].nodes[site[0]].op, ops.Send):
                continue
            sums = [_sum(execution.values[site[rank]]) for rank, execution in enumerate(trial.ranks)]
            entries.extend((total, number) for total in {sum(sums[rank] for rank in group) for group in groups})
        self.entries = sorted(entry for entry in entries if np.isfinite(entry[0]))
        self.keys = [total for total, _ in self.entries]

    def find(self, value: Array) -> Iterator[Held]:
        """Rank tensors that fit a global tensor under some placement, in the order of the program."""
        for number in islice(self._near(value), MOST_CANDIDATES):
            site = self.sites[number]
            local = [execution.values[site[rank]] for rank, execution in enumerate(self.trial.ranks)]
            if local[0].ndim != value.ndim or local[0].dtype.kind != value.dtype.kind:
                continue
            placement = fitting(value, local, self.mesh)
            if placement is not None:
                yield Held(site, placement)

    def _near(self, value: Array) -> Iterator[int]:
        total = _sum(value)
        margin = TOLERANCE * max(float(np.abs(value.astype(np.float64)).sum()), 1e-30)
        if np.isfinite(total) and np.isfinite(margin):
            low, high = bisect_left(self.keys, total - margin), bisect_right(self.keys, total + margin)
            yield from dict.fromkeys(sorted(number for _, number in self.entries[low:high]))


def _sum(value: Array) -> float:
    with np.errstate(all="ignore"):
        return float(value.astype(np.float64).sum())
