"""``rewright env``: what XLA's passes would do to a module, to be chosen by hand or by an agent."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from rewright.cli.commands import audit
from rewright.env.agents import AGENTS
from rewright.env.certificate import certify, save
from rewright.env.dryrun import dry_run
from rewright.env.enzyme import patterns as enzyme_patterns
from rewright.env.episode import Episode, Settings
from rewright.env.evidence import Evidence, evidence_for
from rewright.env.page import trajectory_page
from rewright.env.proposers import DEFAULT
from rewright.env.repairs import runnable
from rewright.env.rollouts import Task, roll_out, split_names
from rewright.env.session import Session
from rewright.env.written import listing
from rewright.env.xla.targets import TARGETS
from rewright.env.xla.worker import XlaError
from rewright.ir.errors import RewrightError

_HELP = (
    "a number chooses, l N: list from N on, n: next round, u: undo, p N: proof, p: all proofs, w FILE: write, "
    "c FILE: certificate, h FILE: page, q: quit"
)
_LISTED = 40
"""Alternatives on one screen."""

Passes = Annotated[
    str, typer.Option(metavar="NAMES", help="Passes of XLA:CPU, rules, rule:NAME, general-fusion, with commas.")
]
File = Annotated[Path, typer.Argument(metavar="FILE", help="HLO text, HloModuleProto (.pb) or StableHLO (.mlir).")]


def build_env_app() -> typer.Typer:
    """The commands below ``rewright env``."""
    from rewright.cli.env_bench import bench

    app = typer.Typer(help="Rewrites of an HLO module as alternatives to choose.", rich_markup_mode=None)
    app.command("passes")(passes)
    app.command("patterns")(patterns)
    app.command("play")(play)
    app.command("compare")(compare)
    app.command("bench")(bench)
    app.command("audit")(audit)
    return app


def passes(
    path: File,
    target: Annotated[
        str,
        typer.Option(metavar="GPU", help=f"XLA:GPU instead, for {', '.join(TARGETS)} or a .txtpb file; no GPU needed."),
    ] = "",
) -> int:
    """List what each pass of XLA:CPU's pipeline does to a module, or of XLA:GPU's for a named device."""
    with Session() as session:
        module = runnable(session, session.load(path))
        print(f"{module.name}: {module.instruction_count} instructions")
        for change in session.gpu_changes(module, target) if target else session.changes(module):
            before, after = change.before.instruction_count, change.after.instruction_count
            where = f"{change.pipeline}, iteration {change.iteration}"
            print(f"{change.name:32} {before:5} -> {after:5} instructions  [{where}]")
    return 0


def patterns(path: File) -> int:
    """List which of Enzyme-JAX's patterns match a module, each alone, and what is known of their sites."""
    with Session() as session:
        base = session.canonical(runnable(session, session.load(path)))
        known = enzyme_patterns(session)
        fired = 0
        for pattern in known:
            try:
                run = dry_run(session, base, [f"enzyme:{pattern.name}"])
            except XlaError as error:
                print(f"{pattern.name:40} {error}")
                continue
            own = [n for n, a in enumerate(run.graph.alternatives) if a.provenance.name == pattern.name]
            if own:
                fired += 1
                found = Counter(evidence_for(run.graph, n, run.tests[n]).status for n in own)
                print(f"{pattern.name:40} {', '.join(f'{count} {status}' for status, count in found.items())}")
        print(f"{fired} of {len(known)} patterns match")
    return 0


def play(path: File, names: Passes = DEFAULT) -> int:
    """Choose rewrites one by one: list them, choose, see cost and proof, undo."""
    passes = split_names(names)
    if not passes:
        raise RewrightError("no pass is named; give --names at least one")
    with Session() as session:
        module = runnable(session, session.load(path))
        states = [Episode(session, module, Settings(passes))]
        start = states[0].cost.seconds
        print(f"{_HELP}\n{_screen(states[-1], start)}")
        while True:
            line = sys.stdin.readline()
            word = line.strip()
            if not line or word == "q":
                return 0
            before = states[-1]
            try:
                _turn(states, word, start)
            except RewrightError as error:
                print(f"no: {error}")
            except OSError as error:
                print(f"no: cannot write {error.filename}: {error.strerror}; name another file")
            if states[-1] is not before:
                print(_screen(states[-1], start))


def _screen(episode: Episode, start: float, first: int = 0) -> str:
    listed = range(len(episode.run))[first : first + _LISTED]
    lines = listing(episode, listed)
    if left := len(episode.run) - first - len(listed):
        lines.append(f"      {left} more; l {first + len(listed)} lists on")
    share = 100 * episode.cost.seconds / max(start, 1e-12)
    size = episode.current.instruction_count
    lines.append(f"round {len(episode.past)}: {size} instructions, {share:.1f}% of the estimated cost")
    return "\n".join(lines)


def _turn(states: list[Episode], word: str, start: float) -> None:
    """What one line does: it prints an answer, or a state is entered or left."""
    episode = states[-1]
    command, _, given = word.partition(" ")
    if command == "u" and not given:
        if len(states) > 1:
            states.pop()
    elif command == "l":
        print(_screen(episode, start, _number(given, episode) if given else 0))
    elif command == "p":
        for number in [_number(given, episode)] if given else range(len(episode.run)):
            print(f"{number:3} {_evidence(episode, number)}")
    elif command == "n" and not given:
        if not episode.chosen:
            raise RewrightError("choose something first; the next round starts from what was chosen")
        states.append(episode.fork())
        states[-1].next_round()
    elif command in _WRITERS and given:
        _WRITERS[command](episode, given.strip())
    elif not given and word.isdigit():
        other, number = episode.fork(), _number(word, episode)
        if not other.choose(number):
            raise RewrightError(f"alternative {word} overlaps with a choice, closes a cycle, or was refuted")
        states.append(other)
        print(_evidence(other, number))
    else:
        raise RewrightError(_HELP)


def _number(text: str, episode: Episode) -> int:
    """The number of an alternative; raises RewrightError where there is none of it."""
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) < len(episode.run):
        return int(text)
    raise RewrightError(f"there is no alternative {text:.20}; there are {len(episode.run)}, from 0 on")


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8")
    print(f"wrote {path}")


def _certify(episode: Episode, path: str) -> None:
    own = certify(episode)
    save(own, path)
    if own.proved:
        print(f"proved ({own.grade}); rewright audit {path} checks it again")
    else:
        print(f"wrote {path}: proved in part")
    for line in own.open:
        print(f"only tested: {line}")


_WRITERS: Mapping[str, Callable[[Episode, str], None]] = {
    "w": lambda episode, path: _write(path, episode.session.text(episode.current)),
    "c": lambda episode, path: _certify(episode, path),
    "h": lambda episode, path: _write(path, trajectory_page(episode)),
}


def _evidence(episode: Episode, number: int) -> Evidence:
    test = episode.run.tests[number] if episode.run.tests else None
    return evidence_for(episode.run.graph, number, test)


def compare(
    path: File,
    names: Passes = DEFAULT,
    rounds: Annotated[int, typer.Option(metavar="N", min=5, help="Runs of each module.")] = 30,
    seed: int = 0,
) -> int:
    """Let every agent play, and measure what it chose against XLA's own decisions.

    All other passes of XLA run on both sides, fusion among them.
    """
    with Session() as session:
        module = runnable(session, session.load(path))
        task = Task(module.name, module.proto, split_names(names), tuple(AGENTS), rounds=rounds)
        print("agent         cost  equal  speed-up over XLA's decisions (95%)")
        for name in AGENTS:
            own = roll_out(session, module, task, name, seed)
            found = own.measured
            assert found is not None
            interval = f"{found.speedup:.2f} ({found.low:.2f} to {found.high:.2f})"
            equal = {True: "yes", False: "NO", None: "?"}[own.equal]
            print(f"{name:12} {own.cost:5.2f}  {equal:5}  {interval}, noise floor {found.noise:.1%}")
    return 0
