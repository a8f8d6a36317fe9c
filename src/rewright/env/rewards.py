"""Rewards: estimated cost, XLA's own analysis, or measured run time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rewright.env.inputs import draw_inputs
from rewright.env.module import HloModule
from rewright.env.session import Session
from rewright.ir.errors import RewrightError

Reward = Literal["cost", "analysis", "instructions", "time", "both"]
REWARDS: tuple[Reward, ...] = ("cost", "analysis", "instructions", "time", "both")
_FEWEST = 5
"""The fewest rounds whose medians are meaningful."""


@dataclass(frozen=True)
class Measurement:
    """Medians in seconds, and the ratio with a 95% interval; ``noise`` is that of the baseline against itself."""

    baseline: float
    chosen: float
    speedup: float
    low: float
    high: float
    noise: float


def static_cost(session: Session, module: HloModule, reward: Reward) -> float:
    """The cost of a module that a reward counts while nothing is measured."""
    if reward == "instructions":
        return float(module.instruction_count)
    if reward == "analysis":
        found = session.analysis(module)
        work = found.get("flops", 0.0) + 8 * found.get("transcendentals", 0.0)
        return work / 2e10 + found.get("bytes accessed", 0.0) / 1e10
    return module.cost.seconds


def measure(
    session: Session,
    baseline: HloModule,
    chosen: HloModule,
    rounds: int = 30,
    mode: str = "exact",
    baseline_mode: str = "",
) -> Measurement:
    """Run time of a module against a baseline: in turns, medians, with an interval from resampling.

    The baseline runs twice in every round: how far its two medians are apart is the noise floor. Raises RewrightError
    where a module does not run.
    """
    inputs = draw_inputs(baseline)
    other = baseline_mode or mode
    contenders = [(baseline, other), (chosen, mode), (baseline, other)]
    first, second, again = session.measure(contenders, inputs, rounds)
    if min(map(min, (first, second, again))) <= 0:
        raise RewrightError("a run took no measurable time; measure more rounds")
    old, new = statistics.median(first + again), statistics.median(second)
    low, high = _interval(first + again, second)
    noise = abs(statistics.median(first) / statistics.median(again) - 1)
    return Measurement(old, new, old / new, low, high, noise)


def rounds_within(session: Session, module: HloModule, rounds: int, seconds: float, mode: str) -> int:
    """How many rounds of a measurement fit into some seconds; 0 where it is fewer than tell anything.

    Raises RewrightError where the module does not run.
    """
    if seconds == math.inf:
        return rounds
    ((once,),) = session.measure([(module, mode)], draw_inputs(module), 1, 1)
    # Three runs in a round, and a few rounds before those that count.
    fitting = min(rounds, int(seconds / (3 * max(once, 1e-9))) - _FEWEST)
    return fitting if fitting >= min(rounds, _FEWEST) else 0


def _interval(old: Sequence[float], new: Sequence[float]) -> tuple[float, float]:
    """The middle 95% of the ratio of medians of resampled runs."""
    random = np.random.default_rng(0)
    left = np.median(random.choice(np.array(old), (400, len(old))), axis=1)
    right = np.median(random.choice(np.array(new), (400, len(new))), axis=1)
    ratios = np.quantile(left / right, [0.025, 0.975])
    return float(ratios[0]), float(ratios[1])
