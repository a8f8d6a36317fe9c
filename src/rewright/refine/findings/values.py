"""What values say of a sequential program and its ranks, from a run of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from rewright.blame.divergence import Search
from rewright.blame.editing import Site
from rewright.blame.holding import Holding
from rewright.blame.repairs import Repair, candidates, confirm_repairs
from rewright.interp.trial import Trial
from rewright.ir.placement import Placement
from rewright.refine.case import Case, Ran
from rewright.refine.relations.solving import cuts
from rewright.refine.twin.twin import Twin, TwinResult


def holding_of(twin: Twin, trial: Trial) -> Holding:
    """Which sequential tensors the ranks hold in a trial that kept all values."""
    shapes = {name: trial.sequential.values[p].shape for name, p in twin.sequential.inputs.items()}
    inputs = {**cuts(twin.solved, shapes, twin.program.mesh.size), **twin.program.inputs}
    return Holding(twin.sequential, twin.program, trial, inputs)


def search_trial(twin: Twin, result: TwinResult, seed: int = 0) -> Search | None:
    """The search over the trial in which a comparison found a difference, None where no values can be looked at."""
    trial = twin.run_all(seed, max(result.trials, 1) - 1)
    if isinstance(trial, TwinResult):
        return None

    def is_right(output: str, expected: Placement | None, other: Trial) -> bool:
        return twin.judge(other, {} if expected is None else {output: expected}, [output]).agrees is True

    return Search(holding_of(twin, trial), is_right)


_MOST_REPAIRS = 20
"""Candidates that are tried at one place; each costs about as much as a run of the twin."""


def nearby(case: Case, ran: Ran, sites: Iterable[Site], outputs: Sequence[str]) -> Iterator[Repair]:
    """The most plausible edits at each of some sites that all ranks have; the twin sorts out those that do not help."""
    twin = ran.twin
    for site in sites:
        if len(site) < len(case.program.graphs):
            continue
        if twin is None:
            yield from islice(candidates(case.program, site), _MOST_REPAIRS)
        else:
            agrees = partial(twin.agrees_with, expect=case.expected, outputs=outputs)
            yield from confirm_repairs(case.program, twin.program, site, agrees, _MOST_REPAIRS)
