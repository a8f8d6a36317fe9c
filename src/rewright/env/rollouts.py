"""Agents over many modules: one task for each module, which any process of any machine can work on.

A task and what came of it are plain values. Give :func:`run_rollouts` to the workers of :mod:`rewright.workers`:
processes of this machine, or a Ray cluster.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rewright.env.agents import AGENTS
from rewright.env.episode import Episode, Settings
from rewright.env.module import HloModule
from rewright.env.proposers import checked_name, hand_decided
from rewright.env.rewards import Measurement, measure, rounds_within
from rewright.env.session import REST, Session
from rewright.env.trajectory import replay
from rewright.ir.errors import RewrightError

_NO_GAIN = 1e-4
"""A cost that is lower by less is the same."""


@dataclass(frozen=True)
class Task:
    """A module and who plays on it."""

    name: str
    proto: bytes
    passes: tuple[str, ...]
    agents: tuple[str, ...]
    seeds: int = 1
    """How often each agent plays; those that draw nothing end alike."""
    rounds: int = 0
    """Runs of each module to be measured; 0 measures nothing."""
    tested: bool = True
    seconds: float = 0.5
    """For the proof of one step."""
    after_xla: bool = False
    """Whether agents go on from what XLA's own passes make of the module, and nothing runs after them."""
    budget: float = math.inf
    """Seconds that an agent has for the module: what it has by then is its end. What runs too long for as many
    seconds of measurement is not measured."""
    then_all: bool = False
    """Whether all of XLA's passes run on what is chosen, those decided by hand too: no choice is XLA's own then."""


@dataclass(frozen=True)
class Rollout:
    """What an agent made of a module."""

    agent: str
    seed: int
    steps: int
    proved: int
    cost: float
    """The estimated cost of what was chosen, over that of the module at the start."""
    gain: float
    """The cost of what XLA's own decisions lead to over that of the choice, after all other passes."""
    equal: bool | None
    """Whether the outputs are those of the original; None where the module cannot be run."""
    measured: Measurement | None
    trajectory: dict[str, Any] | None
    """To be run again by :func:`rewright.env.trajectory.replay`; None for an agent whose end is no list of choices."""

    @property
    def kept(self) -> bool:
        """Whether the choice is taken by who keeps XLA's own result unless something is cheaper, and gives the same."""
        known = self.equal if self.equal is not None else self.proved == self.steps
        return known and self.gain > 1 + _NO_GAIN

    @property
    def same(self) -> bool:
        """Whether the choice costs what XLA's own result costs."""
        return abs(self.gain - 1) <= _NO_GAIN

    @property
    def gain_kept(self) -> float:
        """The gain with XLA's own result wherever the choice is not cheaper."""
        return self.gain if self.kept else 1.0

    @property
    def speedup_kept(self) -> float | None:
        """The same of the run time: XLA's own result is as fast as itself; None where nothing was measured."""
        if self.measured is None:
            return None
        return self.measured.speedup if self.kept else 1.0


@dataclass(frozen=True)
class Outcome:
    """What came of a task, or why nothing did."""

    name: str
    instructions: int = 0
    rollouts: tuple[Rollout, ...] = ()
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values, trajectories aside: those have files of their own."""
        document = asdict(self)
        for entry in document["rollouts"]:
            entry["replays"] = entry.pop("trajectory") is not None
        return document


def split_names(text: str) -> tuple[str, ...]:
    """The names of a list that is written with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def check_names(passes: Sequence[str], agents: Sequence[str], after_xla: bool = False) -> None:
    """Raise RewrightError for a pass or an agent that does not exist, before any worker starts.

    After XLA's own passes none of them can run again.
    """
    again = hand_decided([checked_name(name) for name in passes]) if after_xla else ()
    if again:
        raise RewrightError(f"{again[0]} cannot run after XLA's passes; choose general-fusion or rules")
    for name in passes:
        checked_name(name)
    for name in agents:
        if name not in AGENTS:
            raise RewrightError(f"there is no agent {name!r:.40}; choose from {', '.join(AGENTS)}")


def run_rollouts(task: Task) -> Outcome:
    """Let every agent of a task play; a module that cannot be used, or that XLA refuses, becomes an error."""
    try:
        with Session() as session:
            module = HloModule(task.proto)
            found = [roll_out(session, module, task, name, seed) for name in task.agents for seed in range(task.seeds)]
        return Outcome(task.name, module.instruction_count, tuple(found))
    except RewrightError as error:
        return Outcome(task.name, error=" ".join(str(error).split()))


def roll_out(session: Session, module: HloModule, task: Task, agent: str, seed: int) -> Rollout:
    """One agent plays on one module; raises RewrightError where XLA refuses the module."""
    first = start(session, module, task)
    end = AGENTS[agent](first, np.random.default_rng(seed), time.monotonic() + task.budget)
    return play_episode(session, task, agent, seed, end)


def start(session: Session, module: HloModule, task: Task) -> Episode:
    """Where the agents of a task start; raises RewrightError where XLA refuses the module."""
    original = session.optimised(module) if task.after_xla else module
    return Episode(session, original, Settings(task.passes, tested=task.tested))


def play_episode(session: Session, task: Task, agent: str, seed: int, end: Episode) -> Rollout:
    """What the end of an episode is worth; raises RewrightError where XLA refuses it."""
    first = end.rounds[0].run.module
    evidence = [own for _, own in end.evidence(task.seconds)]
    # What XLA's passes have made is compiled as it is; before them, all that was not decided by hand still runs.
    decided = () if task.then_all else hand_decided(task.passes)
    after = REST + ",".join(decided) if decided else "default"
    modes = ("exact", "exact") if first.late else (after, "default")
    rounds = rounds_within(session, first, task.rounds, task.budget, modes[1]) if task.rounds else 0
    measured = measure(session, first, end.current, rounds, *modes) if rounds else None
    return Rollout(
        agent,
        seed,
        len(evidence),
        sum(own.status == "proved" for own in evidence),
        end.cost.seconds / max(first.cost.seconds, 1e-12),
        gain(session, end, decided),
        end.validate(seed).agrees,
        measured,
        _replayable(session, end, task.seconds),
    )


def gain(session: Session, episode: Episode, decided: Sequence[str]) -> float:
    """XLA's own cost over that of a choice, on which all passes but some run; more than one is better than XLA."""
    if episode.original.late:
        return episode.original.cost.seconds / max(episode.cost.seconds, 1e-12)
    default = session.optimised(episode.original).cost.seconds
    chosen = session.optimised(HloModule(episode.current.program), *decided).cost.seconds
    return default / max(chosen, 1e-12)


def _replayable(session: Session, episode: Episode, seconds: float) -> dict[str, Any] | None:
    """The trajectory, after it was run again to the same end."""
    document = episode.to_json(seconds)
    try:
        # What is said of the steps was found a moment ago.
        replay(session, document, episode.settings.patterns, seconds=0)
    except RewrightError:
        return None
    return document


def geometric_mean(ratios: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """The geometric mean of ratios, with the middle 95% of resampled ones."""
    logs = np.log(np.array(ratios))
    drawn = np.random.default_rng(seed).choice(logs, (2000, len(logs))).mean(1)
    low, high = np.exp(np.quantile(drawn, [0.025, 0.975]))
    return float(np.exp(logs.mean())), float(low), float(high)
