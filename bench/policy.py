"""A policy learned on some modules, and search, against XLA's own decisions on others: ``python -m bench.policy``.

The policy is a small graph network trained by masked PPO (Huang and Ontañón, "A Closer Look at Invalid Action Masking
in Policy Gradient Algorithms", FLAIRS 2022) of sb3-contrib, which is needed here only: ``pip install sb3-contrib``.

An agent decides for some passes of XLA and for the rules; all other passes then run on what it chose, fusion among
them. What is compared is the estimated cost of the two modules at the end.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from bench.tables import print_table
from rewright.env.agents import AGENTS
from rewright.env.datasets import FOLDER, FUNCTIONS, Entry, dataset
from rewright.env.environment import DEFAULT_PASSES, HloRewrite
from rewright.env.episode import Episode, Settings
from rewright.env.module import HloModule
from rewright.env.rollouts import gain, geometric_mean
from rewright.env.session import Session

HELD_OUT = ("block", "rotary", "cross-entropy", "recurrent", "layer-norm")
"""JAX functions that no policy is trained on."""
PASSES = (*DEFAULT_PASSES, "rules")
MOST = 260
_SIZE = 32


def entries(session: Session, folder: Path | None) -> tuple[list[Entry], list[Entry]]:
    """Modules to train on and modules to compare on: functions by name, files of a folder by turns."""
    found = dataset(session, "jax", MOST)
    files = dataset(session, f"{FOLDER}{folder}", MOST) if folder is not None else []
    files = [entry for entry in files if entry.module.instruction_count > 12 and not entry.module.elided()]
    held = [entry for entry in found if entry.title.removeprefix("jax:") in HELD_OUT] + files[::2]
    return [entry for entry in [*found, *files[1::2]] if entry not in held], held


def policy_network(torch: Any) -> type:
    """A features extractor: two rounds of messages along edges, then a row for each alternative and one for all."""
    base: Any = import_module("stable_baselines3.common.torch_layers").BaseFeaturesExtractor

    class Network(base):  # type: ignore[misc]
        def __init__(self, space: Any) -> None:
            most, features = space["alternatives"].shape
            super().__init__(space, _SIZE + 8 * most)
            self.first = torch.nn.Linear(space["nodes"].shape[1], _SIZE)
            self.messages = torch.nn.ModuleList([torch.nn.Linear(2 * _SIZE, _SIZE) for _ in range(2)])
            self.row = torch.nn.Linear(_SIZE + features, 8)

        def forward(self, seen: dict[str, Any]) -> Any:
            nodes = torch.tanh(self.first(seen["nodes"])) * seen["node_mask"].unsqueeze(-1)
            sources, targets = seen["edges"].long().unbind(-1)
            weight = seen["edge_mask"].unsqueeze(-1)
            for layer in self.messages:
                sent = nodes.gather(1, sources.unsqueeze(-1).expand(-1, -1, _SIZE)) * weight
                heard = torch.zeros_like(nodes).scatter_add(1, targets.unsqueeze(-1).expand(-1, -1, _SIZE), sent)
                nodes = torch.tanh(layer(torch.cat([nodes, heard], -1)))
            rows = seen["alternatives"]
            places = rows[..., :1].long().clamp(0, nodes.shape[1] - 1).expand(-1, -1, _SIZE)
            own = torch.tanh(self.row(torch.cat([nodes.gather(1, places), torch.log1p(rows.clamp(min=0))], -1)))
            return torch.cat([nodes.mean(1), own.flatten(1)], -1)

    return Network


def train(session: Session, modules: Sequence[HloModule], steps: int, seed: int) -> Any:
    """A policy that was trained on some modules."""
    torch: Any = import_module("torch")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    learner: Any = import_module("sb3_contrib").MaskablePPO
    env = environment(session, modules)
    keywords = {"features_extractor_class": policy_network(torch), "net_arch": [64]}
    model = learner("MultiInputPolicy", env, n_steps=256, batch_size=64, policy_kwargs=keywords, seed=seed)
    return model.learn(steps)


def environment(session: Session, modules: Sequence[HloModule]) -> HloRewrite:
    """The environment that the policy is for; sizes do not depend on the modules."""
    sizes: dict[str, Any] = {"most_alternatives": 64, "most_nodes": 2 * MOST + 128, "most_steps": 60}
    return HloRewrite(list(modules), PASSES, session=session, tested=False, **sizes)


def play(session: Session, model: Any, module: HloModule) -> Episode:
    """What the policy chooses for a module."""
    env = environment(session, [module])
    seen, _ = env.reset(seed=0)
    ended = cut = False
    best = env.episode.fork()
    while not (ended or cut):
        action, _ = model.predict(seen, action_masks=env.action_masks(), deterministic=True)
        seen, _, ended, cut, _ = env.step(int(action))
        best = min(best, env.episode.fork(), key=lambda episode: episode.cost.seconds)
    return best


def interval(ratios: Sequence[float]) -> str:
    """The geometric mean with the middle 95% of resampled modules."""
    mean, low, high = geometric_mean(ratios)
    return f"{mean:.3f} ({low:.3f} to {high:.3f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, play and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="HLO texts beside the JAX functions")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", default="greedy,e-graph", help="search agents to compare with")
    given = parser.parse_args(arguments)
    with Session() as session:
        learning, held = entries(session, given.folder)
        print(f"{len(learning)} modules to learn from, {len(held)} of {len(FUNCTIONS)} functions and files held out")
        model = train(session, [entry.module for entry in learning], given.steps, given.seed)
        names = [name for name in given.agents.split(",") if name]
        table: dict[str, list[float]] = {name: [] for name in (*names, "learned")}
        rows: list[list[object]] = []
        for entry in held:
            for name in names:
                start = Episode(session, entry.module, Settings(PASSES, tested=False))
                table[name].append(gain(session, AGENTS[name](start, np.random.default_rng(given.seed))))
            table["learned"].append(gain(session, play(session, model, entry.module)))
            rows.append([entry.title, *(f"{ratios[-1]:.3f}" for ratios in table.values())])
        rows.append(["geometric mean (95%)", *(interval(ratios) for ratios in table.values())])
        print_table(["held out", *table], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
