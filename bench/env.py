"""What the environment does with a folder of modules: coverage of passes, and steps per second: ``make bench-env``.

Coverage: every run of every pass in XLA's own pipeline is split into sites. With all sites chosen the result must be
XLA's (fingerprints after dead-code elimination), and random subsets must give the outputs of the original.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from bench.memory import of_xla, resident
from bench.tables import print_table
from rewright.env.datasets import dataset
from rewright.env.dryrun import DryRun, dry_change, dry_run
from rewright.env.environment import HloRewrite
from rewright.env.evidence import evidence_for
from rewright.env.module import HloModule
from rewright.env.passes import AFTER_LAYOUTS
from rewright.env.repairs import runnable
from rewright.env.session import Change, Session
from rewright.env.testing import compare_modules
from rewright.env.xla.worker import XlaTimeout
from rewright.frontends.hlo.module import Instruction
from rewright.ir.errors import RewrightError

LATE = (AFTER_LAYOUTS, "after_layout_assignment", "HLO_passes_after_layout_assignment")
"""Pipelines whose modules do not enter XLA again: their sites are proved, or not known."""
MOST_ELEMENTS = 500_000
"""Elements of the inputs of a module whose sites are run; those of larger ones are proved, or not known."""
LARGE = "jax:stack"
"""A module of about 1,000 instructions, whatever the folder holds."""
SMALL = 200
"""A module below as many instructions is small: a hundred steps per second are expected of it."""
SOUND = ("algsimp", "cse", "reshape-mover", "constant_folding", "simplify-while-loops", "call-inliner")


@dataclass
class Row:
    """One line of the coverage table."""

    modules: set[str] = field(default_factory=set[str])
    steps: int = 0
    same: int = 0
    sites: int = 0
    evidence: Counter[str] = field(default_factory=Counter[str])
    """Sites by status, those that are proved by grade."""


@dataclass
class Coverage:
    """The table, and what has to be listed below it."""

    rows: dict[str, Row] = field(default_factory=dict[str, Row])
    exceptions: list[str] = field(default_factory=list[str])
    subsets: Counter[str] = field(default_factory=Counter[str])
    tested: bool = True

    def add(self, session: Session, title: str, change: Change, number: int, seconds: float) -> None:
        """One run of a pass: is all of it XLA's result, and what is known of each site."""
        small = sum(shape.elements for shape in change.before.parameter_shapes()) <= MOST_ELEMENTS
        run = dry_change(session, change, tested=self.tested and small and change.pipeline not in LATE)
        row = self.rows.setdefault(change.name, Row())
        row.modules.add(title)
        row.steps += 1
        row.sites += len(run)
        everything = HloModule(run.graph.apply(range(len(run))))
        if session.fingerprint(everything) == session.fingerprint(change.after.pruned()):
            row.same += 1
        else:
            self.exceptions.append(f"{title}, step {number} {change.name}: {len(run)} sites; {_reason(change)}")
        for site in range(len(run)):
            test = run.tests[site] if run.tests else None
            own = evidence_for(run.graph, site, test, seconds)
            row.evidence[own.grade or own.status] += 1
            if own.status == "refuted":
                self.exceptions.append(f"{title}, step {number} {change.name}, site {site}: {own}")


def _reason(change: Change) -> str:
    before, after = change.before.program.main, change.after.program.main
    same = before.signature == after.signature and [p.shape_proto for p in before.parameters()] == [
        p.shape_proto for p in after.parameters()
    ]
    if not same:
        return "layouts of parameters or of the result change, which are no values"
    if _in_any_order(change.before) == _in_any_order(change.after):
        return "instructions have to wait for others, which are no values"
    return "differs"


def _in_any_order(module: HloModule) -> dict[str, dict[str, Instruction]]:
    """The computations of a module without what says only when an instruction runs."""
    return {
        name: {i.name: replace(i, controls=()) for i in computation.instructions.values()}
        for name, computation in module.program.computations.items()
    }


def modules(session: Session, folder: Path, most: int) -> list[tuple[str, HloModule]]:
    """The modules of a folder that are small enough, smallest first."""
    found: list[tuple[str, HloModule]] = []
    for path in sorted(folder.rglob("*.txt")):
        module = runnable(session, session.load(path))
        if module.instruction_count <= most:
            found.append((f"{path.parent.name}/{path.stem}", module))
    return sorted(found, key=lambda entry: entry[1].instruction_count)


def coverage(
    session: Session, entries: Sequence[tuple[str, HloModule]], seconds: float, tested: bool, target: str = ""
) -> Coverage:
    """The coverage of all runs of all passes."""
    found, started = Coverage(tested=tested), time.perf_counter()
    for title, module in entries:
        try:
            changes = session.gpu_changes(module, target) if target else session.changes(module)
            for number, change in enumerate(changes):
                found.add(session, title, change, number, seconds)
            if tested:
                _subsets(session, found, title, module)
        except RewrightError as error:
            found.exceptions.append(f"{title}: {error}")
        seconds_so_far = time.perf_counter() - started
        print(f"{title}: {module.instruction_count} instructions, {seconds_so_far:.0f} s", file=sys.stderr, flush=True)
    return found


def _subsets(session: Session, found: Coverage, title: str, module: HloModule) -> None:
    """Random halves of the sites of a dry run, executed."""
    run = dry_run(session, module, SOUND)
    if not len(run):
        return
    chooser = random.Random(0)
    for _ in range(3):
        try:
            found.subsets[_subset(session, run, chooser)] += 1
        except XlaTimeout:
            found.subsets["too slow to run"] += 1
            return


def _subset(session: Session, run: DryRun, chooser: random.Random) -> str:
    chosen: list[int] = []
    for number in range(len(run)):
        if chooser.random() < 0.5 and run.offered[number] and run.graph.applicable(chosen)[number]:
            chosen.append(number)
    own = compare_modules(session, run.module, run.apply(chosen))
    return {True: "equal", False: "different", None: "not run"}[own.agrees]


@dataclass
class Walk:
    """A policy that chooses at random and starts a round where nothing is left to choose."""

    env: HloRewrite
    chooser: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    done: int = 0
    rounds: int = 0

    def step(self) -> None:
        """One action."""
        mask = self.env.action_masks().astype(bool)
        choices = np.flatnonzero(mask[:-2])
        action = int(self.chooser.choice(choices)) if len(choices) else int(np.flatnonzero(mask)[0])
        _, _, ended, _, _ = self.env.step(action)
        self.done += 1
        self.rounds += action == self.env.most_alternatives
        if ended:
            self.env.reset(seed=self.done)


def speed(session: Session, title: str, module: HloModule, steps: int, tested: bool) -> list[object]:
    """Steps per second of a walk, overall and in the quarters of it, and the memory of both processes by quarters."""
    env = HloRewrite(module, session=session, tested=tested, most_steps=10**9)
    env.reset(seed=0)
    walk, quarters, processor_quarters = Walk(env), list[str](), list[str]()
    memory = [f"{resident()} + {of_xla(session)}"]
    started, first = time.perf_counter(), _processor_seconds(session)
    for quarter in range(1, 5):
        before, since, spent = walk.done, time.perf_counter(), _processor_seconds(session)
        while walk.done < steps * quarter // 4:
            walk.step()
        done = walk.done - before
        quarters.append(f"{done / max(time.perf_counter() - since, 1e-9):.0f}")
        processor_quarters.append(f"{done / max(_processor_seconds(session) - spent, 1e-9):.0f}")
        memory.append(f"{resident()} + {of_xla(session)}")
    rate = walk.done / (time.perf_counter() - started)
    processor = walk.done / max(_processor_seconds(session) - first, 1e-9)
    own = [title, module.instruction_count, "yes" if tested else "no", walk.done, walk.rounds]
    parts = [", ".join(quarters), ", ".join(processor_quarters), ", ".join(memory[::2])]
    return [*own, f"{rate:.0f}", f"{processor:.0f}", *parts]


def _processor_seconds(session: Session) -> float:
    """Processor time of this process and of XLA's: other work on the machine does not count."""
    return time.process_time() + session.worker.call("processor_seconds")


SPEED = (
    "module",
    "instructions",
    "tested",
    "steps",
    "rounds",
    "steps/s",
    "per processor second",
    "steps/s by quarters",
    "per processor second by quarters",
    "MiB here + in XLA's process: start, half, end",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; the status is 1 where a site is refuted or a result is not XLA's for no known reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of HLO texts: its files *.txt")
    parser.add_argument("--most", type=int, default=800, help="instructions of a module at most")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=0.3, help="for one proof")
    parser.add_argument("--only", choices=("coverage", "speed"))
    parser.add_argument("--untested", action="store_true", help="run no site: each is proved, or unknown")
    parser.add_argument("--target", default="", help="a GPU that need not be there: proofs of XLA:GPU's passes alone")
    parser.add_argument("--part", default="1/1", help="k/n: every n-th module, or walk, from the k-th on")
    given = parser.parse_args(arguments)
    first, step = map(int, given.part.split("/"))
    status = 0
    with Session() as session:
        entries = modules(session, given.folder, given.most)
        if not entries:
            print(f"bench.env: {given.folder} holds no HLO text; name a folder", file=sys.stderr)
            return 3
        if given.only != "speed":
            tested = not given.untested and not given.target
            found = coverage(session, entries[first - 1 :: step], given.seconds, tested, given.target)
            status = _print_coverage(found)
        if given.only != "coverage":
            large = [(entry.title, entry.module) for entry in dataset(session, LARGE)]
            below = [entry for entry in entries if entry[1].instruction_count < SMALL]
            chosen = [below[len(below) // 2], below[-1], entries[-1], *large] if below else [entries[-1], *large]
            walks = [(*entry, given.steps, tested) for entry in chosen for tested in (False, True)]
            print_table(SPEED, [speed(session, *walk) for walk in walks[first - 1 :: step]])
    return status


def _print_coverage(found: Coverage) -> int:
    known = ("same", "move", "real", "tested", "refuted", "unknown")
    header = ("pass", "modules", "steps", "all = XLA's", "sites", *known)
    rows = [
        [name, len(row.modules), row.steps, row.same, row.sites] + [row.evidence[status] for status in known]
        for name, row in sorted(found.rows.items(), key=lambda entry: -entry[1].sites)
    ]
    print_table(header, rows)
    print(f"random halves of the sites of a dry run: {dict(found.subsets)}")
    for line in found.exceptions:
        print(f"exception: {line}")
    unexplained = [line for line in found.exceptions if "which are no values" not in line]
    return int(bool(unexplained) or found.subsets["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
