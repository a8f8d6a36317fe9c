"""What values say of a sequential program and its ranks, from a run of both."""

from __future__ import annotations

from rewright.blame.divergence import Search
from rewright.blame.holding import Holding
from rewright.interp.ranks import Trial
from rewright.ir.placement import Placement
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
