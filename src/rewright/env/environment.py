"""The Gymnasium environment: choose rewrites of an HLO module one by one, all at once, or pass by pass."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from rewright.env.certificate import Certified, certify
from rewright.env.custom import Pattern, Rewrite
from rewright.env.datasets import dataset, is_dataset
from rewright.env.episode import Episode, Settings
from rewright.env.features import EDGE_FEATURES, NODE_FEATURES, GraphFeatures, graph_features
from rewright.env.module import HloModule
from rewright.env.picture import picture
from rewright.env.proposers import checked_name
from rewright.env.repairs import runnable
from rewright.env.rewards import REWARDS, Measurement, Reward, measure, static_cost
from rewright.env.session import Session
from rewright.env.sites import Granularity
from rewright.env.trajectory import replay
from rewright.env.values import Test
from rewright.env.written import listing
from rewright.env.xla.worker import XlaError
from rewright.ir.errors import RewrightError
from rewright.proof.container import open_file, read_document, save_document
from rewright.rules.rule import Rule

Actions = Literal["sequential", "vector", "passes"]
Array = np.ndarray[Any, Any]
DEFAULT_PASSES = ("algsimp", "cse", "reshape-mover", "constant_folding")
_ALTERNATIVE_FEATURES = 6


class HloRewrite(gymnasium.Env[Any, Any]):
    """An episode starts at a module and ends with the stop action, where nothing is left to choose, or at the bound.

    Actions: ``sequential`` is ``Discrete(K + 2)``: alternative 0 to K-1, K starts the next round (another dry run of
    the module as chosen), K+1 stops. ``vector`` is ``MultiDiscrete``: for each of K slots 0 keeps what is there and n
    takes the n-th alternative, all at once, and the next round follows. ``passes`` is ``Discrete(P + 1)``: a whole
    pass, or stop. An action that is masked changes nothing.

    The reward of a step is the part of the cost at the start that it saves. With ``time`` and ``both`` the last step
    adds the logarithm of the measured speed-up.
    """

    metadata = {"render_modes": ["svg", "ansi"]}  # noqa: RUF012 - gymnasium's convention

    def __init__(
        self,
        hlo: str | os.PathLike[str] | HloModule | Sequence[str | os.PathLike[str] | HloModule],
        passes: str | Sequence[str] = DEFAULT_PASSES,
        reward: Reward = "cost",
        actions: Actions = "sequential",
        observation: Literal["arrays", "graph"] = "arrays",
        most_alternatives: int = 64,
        most_choices: int = 4,
        most_nodes: int = 0,
        most_steps: int = 200,
        granularity: Granularity = "value",
        tested: bool = True,
        patterns: Sequence[Pattern] = (),
        render_mode: str | None = None,
        session: Session | None = None,
    ) -> None:
        _check("reward", reward, REWARDS)
        _check("actions", actions, ("sequential", "vector", "passes"))
        _check("observation", observation, ("arrays", "graph"))
        _check("granularity", granularity, ("value", "use"))
        sizes = {"most_alternatives": most_alternatives, "most_choices": most_choices, "most_steps": most_steps}
        for name, size in sizes.items():
            if size < 1:
                raise RewrightError(f"{name} is {size}; give at least 1")
        for pattern in cast("Sequence[object]", patterns):
            if not isinstance(pattern, (Rule, Rewrite)):
                raise RewrightError(f"{pattern!r:.40} is no pattern; give a Rule or a Rewrite")
        entries: list[Any] = list(hlo) if isinstance(hlo, (list, tuple)) else [hlo]
        self.session = session or Session()
        self._own_session = session is None
        self.modules = [module for entry in entries for module in self._modules(entry)]
        if not self.modules:
            raise RewrightError("there is no module to rewrite; name at least one")
        names = passes.split(",") if isinstance(passes, str) else passes
        self.passes = tuple(checked_name(name.strip()) for name in names)
        self.reward: Reward = reward
        self.actions, self.observation, self.render_mode = actions, observation, render_mode
        self.most_alternatives, self.most_choices, self.most_steps = most_alternatives, most_choices, most_steps
        largest = max(module.instruction_count for module in self.modules)
        self.most_nodes = most_nodes or 2 * largest + most_alternatives + 64
        self.most_edges = 3 * self.most_nodes
        self.settings = Settings(self.passes, granularity, tested, patterns=tuple(patterns))
        self.action_space = self._action_space()
        self.observation_space = self._observation_space()
        self._steps, self._ended, self._baseline = 0, False, 1.0
        self._episode: Episode | None = None
        self._closed = False

    def _modules(self, entry: str | os.PathLike[str] | HloModule) -> list[HloModule]:
        """The module of a path, or all of a data set by name."""
        if isinstance(entry, str) and is_dataset(entry):
            return [own.module for own in dataset(self.session, entry)]
        return [self._module(entry)]

    def _module(self, entry: object) -> HloModule:
        """A module, or the one of a text or a path."""
        if isinstance(entry, str) and "\n" in entry:
            module = self.session.parse(entry)
        elif isinstance(entry, (str, os.PathLike)):
            module = self.session.load(cast("str | os.PathLike[str]", entry))
        elif isinstance(entry, HloModule):
            module = entry
        else:
            raise RewrightError(f"{entry!r:.40} is no module; give a path, a text or an HloModule")
        return module if module.late else runnable(self.session, module)

    # --- spaces

    def _action_space(self) -> spaces.Space[Any]:
        if self.actions == "passes":
            return spaces.Discrete(len(self.passes) + 1)
        if self.actions == "vector":
            return spaces.MultiDiscrete([self.most_choices + 1] * self.most_alternatives)
        return spaces.Discrete(self.most_alternatives + 2)

    def _observation_space(self) -> spaces.Space[Any]:
        def box(*sizes: int) -> spaces.Box:
            return spaces.Box(-np.inf, np.inf, sizes, np.float32)

        if self.observation == "graph":
            return spaces.Graph(box(len(NODE_FEATURES)), box(len(EDGE_FEATURES)))
        edges = spaces.Box(0, max(self.most_nodes - 1, 1), (self.most_edges, 2), np.int64)
        return spaces.Dict(
            {
                "nodes": box(self.most_nodes, len(NODE_FEATURES)),
                "node_mask": spaces.MultiBinary(self.most_nodes),
                "edges": edges,
                "edge_features": box(self.most_edges, len(EDGE_FEATURES)),
                "edge_mask": spaces.MultiBinary(self.most_edges),
                "alternatives": box(self.most_alternatives, _ALTERNATIVE_FEATURES),
                "action_mask": spaces.MultiBinary(self._mask_length()),
            }
        )

    def _mask_length(self) -> int:
        if self.actions == "vector":
            return self.most_alternatives * (self.most_choices + 1)
        return len(self.passes) + 1 if self.actions == "passes" else self.most_alternatives + 2

    # --- the interface of Gymnasium

    @property
    def episode(self) -> Episode:
        """The episode that is under way; raises RewrightError before the first reset, and after close."""
        self._check_open()
        if self._episode is None:
            raise RewrightError("no episode is under way; call reset first")
        return self._episode

    def _check_open(self) -> None:
        if self._closed:
            raise RewrightError("the environment was closed; make another one")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; ``options`` may hold ``module`` (its number) or ``hlo`` (a path, text or module)."""
        super().reset(seed=seed)
        self._check_open()
        given = options or {}
        if "hlo" in given:
            original = self._module(given["hlo"])
        else:
            drawn = 0 if len(self.modules) == 1 else int(self.np_random.integers(len(self.modules)))
            number: object = given.get("module", drawn)
            if not isinstance(number, int) or not 0 <= number < len(self.modules):
                raise RewrightError(f"there is no module {number!r:.40}; there are {len(self.modules)}")
            original = self.modules[number]
        self._episode = Episode(self.session, original, self.settings)
        self._steps, self._ended = 0, False
        self._baseline = max(static_cost(self.session, self._episode.run.module, self.reward), 1e-12)
        return self._observe(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action; if it is masked or XLA refuses it, nothing changes and ``info["refused"]`` says so."""
        episode = self.episode
        before = static_cost(self.session, episode.current, self.reward)
        refused = ""
        try:
            done = self._act(action)
        except RewrightError as error:
            refused, done = str(error), False
        self._steps += 1
        after = static_cost(self.session, self.episode.current, self.reward)
        value = (before - after) / self._baseline
        truncated = not done and self._steps >= self.most_steps
        info = self._info()
        if refused:
            info["refused"] = refused
        if (done or truncated) and self.reward in ("time", "both"):
            value = self._measure(value if self.reward == "both" else 0.0, info)
        self._ended = done
        return self._observe(), float(value), done, truncated, info

    def _measure(self, value: float, info: dict[str, Any]) -> float:
        try:
            found = self.measure()
        except RewrightError as error:
            info["refused"] = str(error)
            return value
        info["measurement"] = found
        return value + float(np.log(found.speedup))

    def measure(self, rounds: int = 30) -> Measurement:
        """The run time of the module as chosen against the module before any choice, each compiled as it is."""
        return measure(
            self.session,
            self.episode.past[0].run.module if self.episode.past else self.episode.run.module,
            self.episode.current,
            rounds,
        )

    # --- actions

    def _act(self, action: Any) -> bool:
        numbers = _numbers(action)
        if self.actions == "vector":
            return self._act_vector(numbers)
        if len(numbers) != 1:
            raise _Masked(f"an action is one number, and here are {len(numbers)}")
        return self._act_pass(numbers[0]) if self.actions == "passes" else self._act_single(numbers[0])

    def _act_single(self, action: int) -> bool:
        episode = self.episode
        if action == self.most_alternatives + 1:
            return True
        if action == self.most_alternatives:
            if not episode.chosen:
                raise _Masked("the next round needs a choice in this one")
            return not episode.next_round()
        if not 0 <= action < len(episode.run) or not episode.choose(action):
            raise _Masked(f"alternative {action} cannot be chosen now")
        return False

    def _act_vector(self, action: Sequence[int]) -> bool:
        episode = self.episode
        slots = episode.run.graph.slots
        if len(action) < len(slots[: self.most_alternatives]):
            raise _Masked(f"{len(action)} choices for {len(slots)} slots")
        for slot, choice in zip(slots[: self.most_alternatives], action, strict=False):
            if 0 < choice <= min(len(slot), self.most_choices):
                episode.choose(slot[choice - 1])
        if not episode.chosen:
            return True
        return not episode.next_round()

    def _act_pass(self, action: int) -> bool:
        if action == len(self.passes):
            return True
        if not 0 <= action < len(self.passes):
            raise _Masked(f"there is no pass {action}")
        episode = self.episode
        name = self.passes[action]
        for _ in range(self.settings_rounds):
            forked = episode.fork()
            forked.settings = replace(self.settings, passes=(name,), patterns=())
            forked.current = episode.current
            refused = len(episode.refused)
            forked.next_round()
            if len(forked.refused) > refused:
                # The round was taken back: what is offered is that of an earlier pass.
                raise XlaError(forked.refused[-1])
            numbers = [n for n, free in enumerate(forked.run.offered) if free]
            if not numbers:
                break
            for number in numbers:
                forked.choose(number)
            self._episode = episode = forked
        return False

    settings_rounds = 8
    """Iterations of a pass that an action of ``passes`` runs at most."""

    # --- masks and observations

    def action_masks(self) -> Array:
        """Which actions do something now; for ``vector`` one flag for each choice of each slot, in a row."""
        mask = np.zeros(self._mask_length(), dtype=np.int8)
        if self.actions == "passes":
            mask[:] = 1
            return mask
        free = self.episode.mask()
        if self.actions == "vector":
            table = mask.reshape(self.most_alternatives, self.most_choices + 1)
            table[:, 0] = 1
            for row, slot in enumerate(self.episode.run.graph.slots[: self.most_alternatives]):
                for column, number in enumerate(slot[: self.most_choices]):
                    table[row, column + 1] = free[number]
            return mask
        count = min(len(free), self.most_alternatives)
        mask[:count] = free[:count]
        mask[self.most_alternatives] = bool(self.episode.chosen)
        mask[self.most_alternatives + 1] = 1
        return mask

    def _info(self) -> dict[str, Any]:
        episode = self.episode
        return {
            "action_mask": self.action_masks(),
            "alternatives": len(episode.run),
            "chosen": episode.chosen,
            "round": len(episode.past),
            "cost": episode.cost.seconds,
            "instructions": episode.current.instruction_count,
            "left_out": max(
                len(episode.run.graph.slots if self.actions == "vector" else episode.run.graph.alternatives)
                - self.most_alternatives,
                0,
            ),
        }

    def features(self) -> GraphFeatures:
        """The alternative graph of this round as arrays, of any size."""
        return graph_features(self.episode.run.graph)

    def _observe(self) -> Any:
        found = self._features()
        if self.observation == "graph":
            links = np.stack([found.sources, found.targets], axis=1)
            return spaces.GraphInstance(_scale(found.nodes), _scale(found.edges), links)
        nodes = min(len(found.nodes), self.most_nodes)
        keep = (found.sources < nodes) & (found.targets < nodes)
        sources, targets, rows = found.sources[keep], found.targets[keep], found.edges[keep]
        edges = min(len(sources), self.most_edges)
        observation: dict[str, Array] = {
            "nodes": np.zeros((self.most_nodes, len(NODE_FEATURES)), np.float32),
            "node_mask": np.zeros(self.most_nodes, np.int8),
            "edges": np.zeros((self.most_edges, 2), np.int64),
            "edge_features": np.zeros((self.most_edges, len(EDGE_FEATURES)), np.float32),
            "edge_mask": np.zeros(self.most_edges, np.int8),
            "alternatives": self._alternatives(),
            "action_mask": self.action_masks(),
        }
        observation["nodes"][:nodes] = _scale(found.nodes[:nodes])
        observation["node_mask"][:nodes] = 1
        observation["edges"][:edges, 0], observation["edges"][:edges, 1] = sources[:edges], targets[:edges]
        observation["edge_features"][:edges] = _scale(rows[:edges])
        observation["edge_mask"][:edges] = 1
        return observation

    def _features(self) -> GraphFeatures:
        known = getattr(self, "_known_features", None)
        if known is None or known[0] is not self.episode.run:
            known = self._known_features = (self.episode.run, graph_features(self.episode.run.graph))
        return cast("tuple[Any, GraphFeatures]", known)[1]

    def _alternatives(self) -> Array:
        """By alternative: node of its slot, uses, new instructions, chosen, proposed by which pass, can be chosen."""
        found = np.zeros((self.most_alternatives, _ALTERNATIVE_FEATURES), np.float32)
        episode = self.episode
        slot_of = {n: place for place, slot in enumerate(episode.run.graph.slots) for n in slot}
        slots = self._features().slots
        mask = episode.mask()
        for number, alternative in enumerate(episode.run.graph.alternatives[: self.most_alternatives]):
            name = alternative.provenance.name
            source = self.passes.index(name) if name in self.passes else -1
            found[number] = (
                slots[slot_of[number]],
                len(alternative.uses),
                len(alternative.new),
                number in episode.chosen,
                source,
                mask[number],
            )
        return found

    # --- more than Gymnasium asks for

    def fork(self) -> HloRewrite:
        """Another environment in the same state; both share one session."""
        other = object.__new__(HloRewrite)
        other.__dict__.update(self.__dict__)
        other._own_session = False
        other._np_random = copy.deepcopy(self._np_random)
        other._episode = None if self._episode is None else self._episode.fork()
        return other

    def __deepcopy__(self, memo: object) -> HloRewrite:
        return self.fork()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an environment has a process for XLA and cannot be pickled; send the arguments that it was made with, and"
            " its trajectory (save, load); to branch off in one process, use fork() or copy.deepcopy"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trajectory so far as JSON, with the evidence of each step; raises RewrightError."""
        save_document(path, self.episode.to_json(), indent=1)

    def load(self, path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
        """Continue from a trajectory, which is run again from its original module; raises RewrightError."""
        self._episode = replay(self.session, open_file(path, read_document), self.settings.patterns)
        self._baseline = max(static_cost(self.session, self._episode.rounds[0].run.module, self.reward), 1e-12)
        return self._observe(), self._info()

    def validate(self, seed: int = 0) -> Test:
        """Whether the module as chosen gives the outputs of the original on random inputs."""
        return self.episode.validate(seed)

    def certify(self, seconds: float = 5.0) -> Certified:
        """The certificate of the trajectory so far, with the list of what was only tested."""
        return certify(self.episode, seconds)

    def render(self) -> Any:
        """The alternative graph as SVG with the chosen paths marked, or as a list of alternatives."""
        episode = self.episode
        if self.render_mode == "svg":
            return picture(episode.run.graph, episode.chosen)
        if self.render_mode == "ansi":
            return "\n".join(listing(episode, range(len(episode.run)), cost=False))
        return None

    def close(self) -> None:
        """End the worker process, where this environment started it."""
        self._closed = True
        if self._own_session:
            self.session.close()


class _Masked(RewrightError):
    """Raised for an action that does nothing now."""


def _check(what: str, given: str, known: Sequence[str]) -> None:
    """Raise RewrightError for an option that does not exist."""
    if given not in known:
        raise RewrightError(f"{what} is {given!r:.40}; choose one of {', '.join(known)}")


def _numbers(action: Any) -> list[int]:
    """The integers of an action, which may be one number or an array of them; raises _Masked for anything else."""
    found = np.asarray(action).reshape(-1)
    if found.dtype.kind not in "iu":
        raise _Masked(f"an action is made of integers, and this is {action!r:.40}")
    return [int(number) for number in found]


def _scale(values: Array) -> Array:
    """Signed logarithms: sizes range over many orders of magnitude, and small numbers stay distinct."""
    return (np.sign(values) * np.log1p(np.abs(values))).astype(np.float32)
