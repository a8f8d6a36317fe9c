"""``rewright env bench``: agents on many modules, against XLA's own decisions."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from rewright.env.chart import Bar, chart
from rewright.env.datasets import FOLDER, Entry, dataset, is_dataset
from rewright.env.proposers import DEFAULT
from rewright.env.repairs import runnable
from rewright.env.rollouts import Outcome, Rollout, Task, check_names, geometric_mean, run_rollouts, split_names
from rewright.env.session import Session
from rewright.ir.errors import RewrightError
from rewright.workers import Failure, run_all, workers_named


def bench(
    source: Annotated[
        str, typer.Argument(metavar="MODULES", help="A folder, a file, or a data set: jax, jax:NAME, folder:PATH.")
    ],
    names: Annotated[str, typer.Option(metavar="NAMES", help="What the agents decide, with commas.")] = DEFAULT,
    agents: Annotated[str, typer.Option(metavar="NAMES", help="Who plays, with commas.")] = "greedy,e-graph",
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="How often each agent plays.")] = 1,
    rounds: Annotated[int, typer.Option(metavar="N", min=0, help="Measured runs of each module; 0: none.")] = 0,
    most: Annotated[int, typer.Option(metavar="N", min=0, help="Instructions of a module at most; 0: any.")] = 400,
    after_xla: Annotated[
        bool, typer.Option("--after-xla", help="Go on from XLA's own result, with general-fusion say; nothing follows.")
    ] = False,
    budget: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Of an agent for a module; 0: any.")] = 0,
    untested: Annotated[bool, typer.Option(help="Offer what is neither proved nor run, too.")] = False,
    executor: Annotated[str, typer.Option(metavar="local|ray", help="Processes, or a Ray cluster.")] = "local",
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Modules at a time.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Trajectories, results and a chart.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False,
) -> int:
    """Let agents play on many modules and compare what they choose with XLA's own decisions.

    Status 1 where a choice gives other outputs than the original, 2 where XLA refuses a module.
    """
    passes, players = split_names(names), split_names(agents)
    check_names(passes, players, after_xla)
    with Session() as session:
        entries = _entries(session, source, most)
    if out is not None:
        _make_folder(out)
    tested, until = not untested, budget or math.inf
    each = Task("", b"", passes, players, seeds, rounds, tested, after_xla=after_xla, budget=until)
    tasks = [replace(each, name=entry.title, proto=entry.module.proto) for entry in entries]
    found: list[Outcome] = []
    for outcome in _outcomes(tasks, executor, jobs):
        found.append(outcome)
        print(_describe(outcome), file=sys.stderr if as_json else sys.stdout, flush=True)
    order = {task.name: place for place, task in enumerate(tasks)}
    found.sort(key=lambda outcome: order[outcome.name])
    if out is not None:
        _write(out, found)
    print(json.dumps(_document(found), indent=1) if as_json else "\n".join(_summary(found)))
    played = [one for outcome in found for one in outcome.rollouts]
    return 1 if any(one.equal is False for one in played) else 2 if any(outcome.error for outcome in found) else 0


def _entries(session: Session, source: str, most: int) -> list[Entry]:
    path = Path(source)
    if path.is_file():
        return [Entry(path.name, runnable(session, session.load(path)))]
    found = dataset(session, source if is_dataset(source) else f"{FOLDER}{source}", most)
    if not found:
        raise RewrightError(f"{source} holds no module of at most {most} instructions; raise --most")
    return found


def _outcomes(tasks: Sequence[Task], executor: str, jobs: int) -> Iterator[Outcome]:
    for task, outcome in run_all(tasks, workers_named(executor, jobs, run_rollouts)):
        yield Outcome(task.name, error=outcome.why) if isinstance(outcome, Failure) else outcome


def _describe(outcome: Outcome) -> str:
    if outcome.error:
        return f"{outcome.name}: {outcome.error}"
    lines = [f"{outcome.name}: {outcome.instructions} instructions"]
    for one in outcome.rollouts:
        equal = {True: "equal", False: "OTHER OUTPUTS", None: "not run"}[one.equal]
        line = f"  {one.agent:13} {one.steps:4} steps, {one.proved:4} proved; cost {one.cost:.2f}, gain {one.gain:.3f}"
        time = one.measured
        speed = f", speed-up {time.speedup:.2f} ({time.low:.2f} to {time.high:.2f})" if time is not None else ""
        lines.append(f"{line}; {equal}{speed}")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Row:
    agent: str
    gains: tuple[float, ...]
    kept: tuple[float, ...]
    speedups: tuple[float, ...]


def _rows(found: Sequence[Outcome]) -> list[_Row]:
    by_agent: dict[str, list[Rollout]] = {}
    for outcome in found:
        for one in outcome.rollouts:
            by_agent.setdefault(one.agent, []).append(one)
    return [
        _Row(
            agent,
            tuple(o.gain for o in own),
            tuple(o.gain_kept for o in own),
            tuple(o.measured.speedup for o in own if o.measured is not None),
        )
        for agent, own in by_agent.items()
    ]


def _summary(found: Sequence[Outcome]) -> list[str]:
    lines = [
        f"{len(found)} modules; geometric means (95%), above 1 is better than XLA's own decisions; "
        "kept: XLA's own result where a choice is not cheaper"
    ]
    for row in _rows(found):
        for what, values in (("gain", row.gains), ("kept", row.kept), ("speed-up", row.speedups)):
            if values:
                mean, low, high = geometric_mean(values)
                lines.append(f"{row.agent:13} {what:8} {mean:.3f} ({low:.3f} to {high:.3f})")
    return lines


def _document(found: Sequence[Outcome]) -> Mapping[str, object]:
    means = {
        row.agent: dict(zip(("mean", "low", "high"), geometric_mean(row.gains), strict=True)) for row in _rows(found)
    }
    return {"modules": [outcome.to_json() for outcome in found], "gain": means}


def _make_folder(folder: Path) -> None:
    """Make a folder, before anything is played; raises RewrightError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RewrightError(f"cannot write to {folder}: {error.strerror}; name another folder") from None


def _write(folder: Path, found: Sequence[Outcome]) -> None:
    """``results.json``, ``gain.svg``, and ``MODULE.AGENT.SEED.json`` for every trajectory that can be run again."""
    try:
        (folder / "results.json").write_text(json.dumps(_document(found), indent=1), encoding="utf-8")
        bars = [Bar(row.agent, row.gains, geometric_mean(row.gains)) for row in _rows(found)]
        drawn = chart("Estimated cost of XLA's own decisions over that of the agent's", bars)
        (folder / "gain.svg").write_text(drawn, encoding="utf-8")
        for outcome in found:
            for one in outcome.rollouts:
                if one.trajectory is not None:
                    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in outcome.name)
                    path = folder / f"{plain}.{one.agent}.{one.seed}.json"
                    path.write_text(json.dumps(one.trajectory, indent=1), encoding="utf-8")
    except OSError as error:
        raise RewrightError(f"cannot write to {folder}: {error.strerror}; name another folder") from None
