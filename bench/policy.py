"""Search agents and a learned policy against XLA's own decisions on modules not trained on: ``make bench-agents``.

The policy is a small graph network trained by masked PPO (Huang and Ontañón, "A Closer Look at Invalid Action Masking
in Policy Gradient Algorithms", FLAIRS 2022) of sb3-contrib, which is needed here only: ``pip install sb3-contrib``;
``--steps 0`` leaves it out.

Three games. In the first an agent decides for some passes of XLA and for the rules, and all other passes run on what it
chose: what it decides for does not run late in XLA's pipeline either. In the second (``--then-xla``) all passes
run on it, so that who chooses nothing ends where XLA does. In the third (``--after-xla``) it goes on from what all of
XLA's passes made, fusing what they left apart. The estimated cost of the two modules at the end is compared, and with
``--rounds`` their run times.

An agent may end dearer than XLA: nothing in a game of free choices keeps it from that. Both are shown: the choice as it
is, and what is left of it where XLA's own result is kept unless the choice has the lower estimated cost and gives the
same outputs. Some sites of XLA's passes are no equations when taken one by one, and change the outputs; ``--tested``
finds them before they are offered.

It ends in time: an agent has ``--budget`` seconds for a module, and training ``--training`` seconds. All of it takes
long still: with ``--keep FOLDER`` the policy is saved while it is trained, and what an agent made of a module is not
made again, so that a run that was ended goes on from there.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

from bench.kept import Kept
from bench.tables import print_table
from rewright.env.agents import AGENTS
from rewright.env.chart import Bar, chart
from rewright.env.datasets import FOLDER, FUNCTIONS, Entry, dataset
from rewright.env.environment import DEFAULT_PASSES, HloRewrite
from rewright.env.episode import Episode
from rewright.env.module import HloModule
from rewright.env.proposers import FUSION, RULES
from rewright.env.rollouts import Rollout, Task, geometric_mean, play_episode, roll_out, start
from rewright.env.session import Session
from rewright.ir.errors import RewrightError

HELD_OUT = ("block", "rotary", "cross-entropy", "recurrent", "layer-norm")
"""JAX functions that no policy is trained on."""
PASSES = (*DEFAULT_PASSES, RULES)
AFTER_XLA = (FUSION, RULES)
NOTHING = "no choice"
"""An agent that chooses nothing: after XLA's passes it is XLA against itself, and what it gains is noise."""
LEARNED = "learned"
MOST = 260
_SIZE = 32
_BATCH = 256
"""Steps of training between two updates of the policy."""


def entries(session: Session, folder: Path | None) -> tuple[list[Entry], list[Entry]]:
    """Modules to train on and modules to compare on: functions by name, files of a folder by turns."""
    found = dataset(session, "jax", MOST)
    files = dataset(session, f"{FOLDER}{folder}", MOST) if folder is not None else []
    files = [entry for entry in files if entry.module.instruction_count > 12]
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


def train(
    session: Session,
    modules: Sequence[HloModule],
    task: Task,
    steps: int,
    seed: int,
    kept: Kept,
    seconds: float = math.inf,
) -> Any:
    """A policy that was trained on some modules, for some steps or seconds.

    What is kept of an earlier run that was ended is trained on, in a new episode.
    """
    until = time.monotonic() + seconds
    torch: Any = import_module("torch")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    learner: Any = import_module("sb3_contrib").MaskablePPO
    env = environment(session, modules, task)
    keywords = {"features_extractor_class": policy_network(torch), "net_arch": [64]}
    model = learner.load(kept.policy, env=env) if kept.policy is not None and kept.policy.exists() else None
    if model is None or model.num_timesteps > steps:
        model = learner("MultiInputPolicy", env, n_steps=_BATCH, batch_size=64, policy_kwargs=keywords, seed=seed)
    while model.num_timesteps < steps and time.monotonic() < until and not kept.is_trained(steps, seconds):
        model.learn(min(_BATCH, steps - model.num_timesteps), reset_num_timesteps=False)
        print(f"{model.num_timesteps} of {steps} steps of training", file=sys.stderr, flush=True)
        if kept.policy is not None:
            model.save(kept.policy)
    kept.end_training(steps, seconds)
    return model


def environment(session: Session, modules: Sequence[HloModule], task: Task) -> HloRewrite:
    """The environment that the policy is for; sizes do not depend on the modules."""
    sizes: dict[str, Any] = {"most_alternatives": 64, "most_nodes": 2 * MOST + 128, "most_steps": 60}
    return HloRewrite(list(modules), task.passes, session=session, tested=task.tested, **sizes)


def play(session: Session, model: Any, module: HloModule, task: Task) -> Episode:
    """What the policy chooses for a module in the time that an agent has: the cheapest state on its way."""
    until = time.monotonic() + task.budget
    env = environment(session, [module], task)
    seen, _ = env.reset(seed=0)
    ended = cut = False
    best = env.episode.fork()
    while not (ended or cut or time.monotonic() >= until):
        action, _ = model.predict(seen, action_masks=env.action_masks(), deterministic=True)
        seen, _, ended, cut, _ = env.step(int(action))
        best = min(best, env.episode.fork(), key=lambda episode: episode.cost.seconds)
    return best


@dataclass
class Results:
    """What each agent made of each module, and what could not be played."""

    rollouts: dict[str, dict[str, Rollout]] = field(default_factory=dict[str, dict[str, Rollout]])
    """By module, then by agent."""
    errors: list[str] = field(default_factory=list[str])

    def of(self, agent: str) -> list[Rollout]:
        """What an agent made of all modules that every agent played."""
        return [found[agent] for found in self.rollouts.values()]

    @property
    def agents(self) -> list[str]:
        """The agents in their order."""
        return list(next(iter(self.rollouts.values()), {}))


def compare(session: Session, held: Sequence[Entry], task: Task, model: Any, seed: int, kept: Kept) -> Results:
    """Let every agent play on every module; a module that XLA refuses is a line of its own."""
    found = Results()
    names = [NOTHING, *task.agents, *([LEARNED] if model is not None else [])]
    for entry in held:
        own: dict[str, Rollout] = {}
        try:
            for name in names:
                one = kept.read(entry.title, name)
                if one is None:
                    one = _played(session, entry.module, task, name, seed, model)
                    kept.write(entry.title, one)
                own[name] = one
        except RewrightError as error:
            found.errors.append(f"{entry.title}: {error}")
            continue
        found.rollouts[entry.title] = own
        print(f"{entry.title}: {', '.join(f'{n} {o.gain:.3f}' for n, o in own.items())}", file=sys.stderr, flush=True)
    return found


def _played(session: Session, module: HloModule, task: Task, name: str, seed: int, model: Any) -> Rollout:
    """What one agent makes of one module; raises RewrightError where XLA refuses it."""
    if name == NOTHING:
        return play_episode(session, task, name, seed, start(session, module, task))
    if name == LEARNED:
        first = start(session, module, task).original
        return play_episode(session, task, name, seed, play(session, model, first, task))
    return roll_out(session, module, task, name, seed)


def interval(ratios: Sequence[float]) -> str:
    """The geometric mean with the middle 95% of resampled modules."""
    mean, low, high = geometric_mean(ratios)
    return f"{mean:.3f} ({low:.3f} to {high:.3f})"


COLUMNS = ("agent", "cost", "cheaper", "dearer", "cost, XLA's kept", "outputs differ")
TIMED = ("run time", "faster", "slower", "run time, XLA's kept", "noise floor")


def summary(found: Results) -> list[list[object]]:
    """A row for each agent: means over modules, and how many were faster or slower beyond the noise of their runs."""
    rows: list[list[object]] = []
    for agent in found.agents:
        own = found.of(agent)
        times = [one.measured for one in own if one.measured is not None]
        cheaper, dearer = sum(one.kept for one in own), sum(one.gain < 1 and not one.same for one in own)
        row: list[object] = [agent, interval([one.gain for one in own]), cheaper, dearer]
        row += [interval([one.gain_kept for one in own]), sum(one.equal is False for one in own)]
        if times:
            faster = sum(t.low > 1 + t.noise for t in times)
            slower = sum(t.high < 1 - t.noise for t in times)
            kept = [one.speedup_kept for one in own if one.speedup_kept is not None]
            row += [interval([t.speedup for t in times]), faster, slower, interval(kept)]
            row.append(f"{median(t.noise for t in times):.1%}")
        rows.append(row)
    return rows


def draw(found: Results, folder: Path, name: str) -> None:
    """Charts of what was gained by the cost and by the clock."""
    folder.mkdir(parents=True, exist_ok=True)
    gains = [(agent, tuple(one.gain for one in found.of(agent))) for agent in found.agents]
    times = [
        (agent, tuple(one.measured.speedup for one in found.of(agent) if one.measured is not None))
        for agent in found.agents
    ]
    for what, title, rows in (
        ("cost", "Estimated cost of XLA's own decisions over that of the agent's", gains),
        ("time", "Run time of XLA's own decisions over that of the agent's", times),
    ):
        bars = [Bar(agent, values, geometric_mean(values)) for agent, values in rows if values]
        (folder / f"{name}-{what}.svg").write_text(chart(title, bars), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, play and print the tables; the status is 1 where outputs are not those of the original."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="HLO texts beside the JAX functions")
    parser.add_argument("--steps", type=int, default=20_000, help="of training; 0: no learned policy")
    parser.add_argument("--training", type=float, default=1800.0, metavar="SECONDS", help="for training at most")
    parser.add_argument("--budget", type=float, default=30.0, metavar="SECONDS", help="of an agent for one module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0, help="measured runs of each module")
    parser.add_argument("--agents", default=",".join(AGENTS), help="search agents to compare with")
    parser.add_argument("--tested", action="store_true", help="run sites before they are offered; much slower")
    parser.add_argument("--then-xla", action="store_true", help="all of XLA's passes run on what is chosen")
    parser.add_argument("--after-xla", action="store_true", help="go on from XLA's own result, by fusion and rules")
    parser.add_argument("--out", type=Path, help="charts go there")
    parser.add_argument("--keep", type=Path, help="what is done is kept there, and a later run goes on from it")
    given = parser.parse_args(arguments)
    passes = AFTER_XLA if given.after_xla else PASSES
    names = tuple(name for name in given.agents.split(",") if name)
    with Session() as session:
        learning, held = entries(session, given.folder)
        print(f"{len(learning)} modules to learn from; {len(held)} held out, of {len(FUNCTIONS)} functions and files")
        each = (given.rounds, given.tested, 0.0, given.after_xla, given.budget, given.then_xla)
        task = Task("", b"", passes, names, 1, *each)
        prints = [session.fingerprint(entry.module) for entry in learning]
        training = (passes, given.after_xla, given.seed, prints, task.tested)
        kept = Kept(given.keep, training, (given.steps, given.rounds, given.budget, given.then_xla))
        starts = [start(session, entry.module, task).original for entry in learning] if given.steps else []
        model = train(session, starts, task, given.steps, given.seed, kept, given.training) if given.steps else None
        if model is not None:
            print(f"the policy was trained for {model.num_timesteps} steps on {len(starts)} modules")
        found = compare(session, held, task, model, given.seed, kept)
    agents = found.agents
    print_table(
        ["held out", *agents], [[t, *(f"{own[a].gain:.3f}" for a in agents)] for t, own in found.rollouts.items()]
    )
    print()
    print_table([*COLUMNS, *(TIMED if given.rounds else ())], summary(found))
    for line in found.errors:
        print(f"not played: {line}")
    if given.out is not None:
        draw(found, given.out, "after-xla" if given.after_xla else "then-xla" if given.then_xla else "decisions")
    return int(any(one.equal is False for own in found.rollouts.values() for one in own.values()))


if __name__ == "__main__":
    sys.exit(main())
