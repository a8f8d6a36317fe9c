"""Agents: always the first, at random, greedy by cost, a beam, a tree search, and extraction from an e-graph.

All of them end in time: what one has when the clock (``time.monotonic``) shows ``until`` is its end. An agent looks at
the clock between two dry runs and two choices, so that it is late by one of them at most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from rewright.env.combine import combine
from rewright.env.episode import Episode

MOST_ROUNDS = 6


class Agent(Protocol):
    """Plays an episode to its end, or until a time, and returns it."""

    def __call__(self, episode: Episode, random: np.random.Generator, until: float = math.inf) -> Episode: ...


def _is_over(until: float) -> bool:
    return time.monotonic() >= until


def always_first(episode: Episode, random: np.random.Generator, until: float = math.inf) -> Episode:
    """Every alternative that can be chosen, in order, round by round: what XLA's passes do."""
    for _ in range(MOST_ROUNDS):
        for number in range(len(episode.run)):
            if not _is_over(until):
                episode.choose(number)
        if not episode.chosen or _is_over(until) or not episode.next_round():
            break
    return episode


def uniform(episode: Episode, random: np.random.Generator, until: float = math.inf) -> Episode:
    """Each alternative with probability one half."""
    for _ in range(MOST_ROUNDS):
        for number in range(len(episode.run)):
            if random.random() < 0.5 and not _is_over(until):
                episode.choose(number)
        if not episode.chosen or _is_over(until) or not episode.next_round():
            break
    return episode


def greedy(episode: Episode, random: np.random.Generator, until: float = math.inf) -> Episode:
    """The alternative that lowers the estimated cost most, as long as one does."""
    for _ in range(MOST_ROUNDS):
        while (best := _best(episode, until)) is not None:
            episode = best
        if not episode.chosen or _is_over(until) or not episode.next_round():
            break
    return episode


def _best(episode: Episode, until: float) -> Episode | None:
    """The cheapest state one choice away; None where none is cheaper."""
    best, lowest = None, episode.cost.seconds
    for number, free in enumerate(episode.mask()):
        if free and not _is_over(until):
            other = episode.fork()
            if other.choose(number) and other.cost.seconds < lowest * (1 - 1e-9):
                best, lowest = other, other.cost.seconds
    return best


def beam(episode: Episode, random: np.random.Generator, until: float = math.inf, width: int = 3) -> Episode:
    """The cheapest few states, each carried on; a state may get dearer before it gets cheaper."""
    states = [episode]
    best = episode.fork()
    for _ in range(4 * MOST_ROUNDS):
        grown: list[Episode] = []
        for state in states:
            grown += _next_states(state, until)
        distinct = {other.current.digest: other for other in grown}
        states = sorted(distinct.values(), key=lambda s: s.cost.seconds)[:width]
        if not states:
            break
        if states[0].cost.seconds < best.cost.seconds:
            best = states[0].fork()
    return best


def _next_states(state: Episode, until: float) -> list[Episode]:
    found: list[Episode] = []
    for number, free in enumerate(state.mask()):
        other = state.fork()
        if free and not _is_over(until) and other.choose(number):
            found.append(other)
    if not found and state.chosen and not _is_over(until):
        other = state.fork()
        if other.next_round():
            found.append(other)
    return found


@dataclass
class _Branch:
    """A state of the tree search: how often it was visited, and what came of it."""

    state: Episode
    visits: int = 0
    total: float = 0.0
    children: list[_Branch] = field(default_factory=list["_Branch"])
    expanded: bool = False


def tree_search(episode: Episode, random: np.random.Generator, until: float = math.inf, visits: int = 60) -> Episode:
    """Monte Carlo tree search with the UCT rule (Kocsis and Szepesvari, ECML 2006); the best state seen is returned."""
    start = max(episode.cost.seconds, 1e-12)
    root, best = _Branch(episode), episode.fork()
    for _ in range(visits):
        if _is_over(until):
            break
        path = [root]
        while path[-1].expanded and path[-1].children:
            path.append(max(path[-1].children, key=lambda child: _bound(child, path[-1].visits)))
        leaf = path[-1]
        if not leaf.expanded:
            leaf.children, leaf.expanded = [_Branch(state) for state in _next_states(leaf.state, until)], True
        end = _rollout(leaf.state.fork(), random, until)
        if end.cost.seconds < best.cost.seconds:
            best = end
        for branch in path:
            branch.visits += 1
            branch.total += 1 - end.cost.seconds / start
    return best


def _bound(branch: _Branch, parent: int) -> float:
    if not branch.visits:
        return math.inf
    return branch.total / branch.visits + 0.3 * math.sqrt(math.log(parent + 1) / branch.visits)


def _rollout(state: Episode, random: np.random.Generator, until: float) -> Episode:
    """Choices at random to the end of the round; the cheapest state on the way."""
    best = state.fork()
    for number in random.permutation(len(state.run)).tolist():
        if not _is_over(until) and state.choose(number) and state.cost.seconds < best.cost.seconds:
            best = state.fork()
    return best


def extraction(episode: Episode, random: np.random.Generator, until: float = math.inf) -> Episode:
    """The cheapest program of an e-graph with the alternatives of all passes, round by round."""
    for _ in range(MOST_ROUNDS):
        if _is_over(until):
            break
        found = combine(episode.run)
        if found.way == "as it was":
            break
        episode = episode.fork()
        episode.current = found.module.replaced(found.module.program)
        if _is_over(until) or not episode.next_round():
            break
    return episode


AGENTS: Mapping[str, Agent] = {
    "always-first": always_first,
    "uniform": uniform,
    "greedy": greedy,
    "beam": beam,
    "tree-search": tree_search,
    "e-graph": extraction,
}
"""All agents by name."""
