"""Rank tensors by the sum of their elements, so that whoever holds a given tensor is found without comparing all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np

from rewright import ops
from rewright.blame.editing import sites
from rewright.blame.places import Place
from rewright.interp.placing import TOLERANCE, fitting
from rewright.interp.trial import Trial
from rewright.ir.placement import Placement, RankProgram
from rewright.ops.base import Array

MOST_CANDIDATES = 32
"""Rank tensors that are compared element by element with one sequential tensor."""


class TensorIndex:
    """The tensors of all ranks in one trial that kept them, by sums over one rank or over the ranks of mesh axes."""

    def __init__(self, program: RankProgram, trial: Trial) -> None:
        self.mesh, self.trial = program.mesh, trial
        whole = [site for site in sites(program) if len(site) == len(program.graphs)]
        self.places: list[Place] = [tuple(site[rank] for rank in range(len(site))) for site in whole]
        names = [name for name, _ in self.mesh.axes]
        groups = {self.mesh.group(0, chosen) for n in range(len(names) + 1) for chosen in combinations(names, n)}
        entries: list[tuple[float, int]] = []
        for number, at in enumerate(self.places):
            if isinstance(program.graphs[0].nodes[at[0]].op, ops.Send):
                continue
            sums = [_sum(execution.values[p]) for execution, p in zip(trial.ranks, at, strict=True)]
            entries.extend((total, number) for total in {sum(sums[rank] for rank in group) for group in groups})
        self.entries = sorted(entry for entry in entries if np.isfinite(entry[0]))
        self.keys = [total for total, _ in self.entries]

    def find(self, value: Array) -> Iterator[tuple[Place, Placement]]:
        """Where the ranks hold a global tensor, and how, in the order of the program."""
        for number in islice(self._near(value), MOST_CANDIDATES):
            at = self.places[number]
            local = [execution.values[p] for execution, p in zip(self.trial.ranks, at, strict=True)]
            if local[0].ndim != value.ndim or local[0].dtype.kind != value.dtype.kind:
                continue
            placement = fitting([value], [local], self.mesh)
            if placement is not None:
                yield at, placement

    def _near(self, value: Array) -> Iterator[int]:
        total = _sum(value)
        margin = TOLERANCE * max(float(np.abs(value.astype(np.float64)).sum()), 1e-30)
        if np.isfinite(total) and np.isfinite(margin):
            low, high = bisect_left(self.keys, total - margin), bisect_right(self.keys, total + margin)
            yield from dict.fromkeys(sorted(number for _, number in self.entries[low:high]))


def _sum(value: Array) -> float:
    with np.errstate(all="ignore"):
        return float(value.astype(np.float64).sum())
