"""Injected bugs, and how many of them are refuted, near the place where they were injected.

A mutant that is proved must be a true equivalence, and one that is refuted must be none; the numeric twin decides that
with several seeds, and with integer inputs that hit every boundary value. Repairs are left out: they do not change
what is scored.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bench.distributed import Claim, claims
from bench.mutants import Mutant, generate, is_equivalent
from bench.tables import print_table
from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.placement import place
from rewright.refine import Verdict
from rewright.refine.engine import answer

NEAR = 2
"""Operators between the injected bug and the finding that still count as near."""
FAR = 1000
COLUMNS = ("mutants", "refuted", "near", "equivalent", "unknown", "wrongly proved", "wrongly refuted")


@dataclass(frozen=True)
class Judged:
    """A mutant, the columns that it counts in beside ``mutants``, and what was said about it."""

    program: str
    number: int
    kind: str
    bug: str
    status: str
    columns: tuple[str, ...]
    said: str

    @property
    def is_hit(self) -> bool:
        """Whether there is nothing to look at: refuted nearby, or a proof of what is right."""
        return self.columns == ("refuted", "near") or (self.columns == ("equivalent",) and self.status == "proved")


SECONDS = 60.0
"""A mutant without an answer by then is unknown."""


def judge(sequential: Graph, mutant: Mutant) -> tuple[str, tuple[str, ...], str]:
    """Refine a mutant: the status, the columns that it counts in, and what was said; the numeric twin has its say."""
    try:
        verdict = answer(sequential, mutant.program, budget=SECONDS, suggest=False)
    except RewrightError as error:
        # A parameter cut wrongly does not fit its placement any more: refused by name, before anything is proved.
        return "refuted", ("refuted", "near"), str(error)
    if verdict.status == "refuted":
        near = ("near",) if distance(verdict, mutant) <= NEAR else ()
        first = next(iter(verdict.findings), None)
        place = f"{first.kind} at {first.distributed}: {first.message}" if first else verdict.reason
        runs = first is None or first.kind != "collective_mismatch"
        if runs and is_equivalent(sequential, mutant, seeds=(3, 4, 5, 0, 1, 2)) is True:
            return "refuted", ("wrongly refuted",), f"{place}; {verdict.reason}"
        return "refuted", ("refuted", *near), place
    if is_equivalent(sequential, mutant) is True:
        return verdict.status, ("equivalent",), verdict.reason
    return verdict.status, ("wrongly proved" if verdict.status == "proved" else "unknown",), verdict.reason


def distance(verdict: Verdict, mutant: Mutant) -> int:
    """Operators between the first finding and the bug, along edges of either direction; large where none is found."""
    place = verdict.findings[0].distributed if verdict.findings else None
    if place is None:
        return 0 if verdict.findings and verdict.findings[0].kind == "collective_mismatch" else FAR
    best = FAR
    for rank, start in mutant.positions.items():
        graph = mutant.program.graphs[rank]
        goals = {position for position, node in enumerate(graph.nodes) if node.span == place}
        best = min(best, _steps(graph, start, goals))
    return best


def _steps(graph: Graph, start: int, goals: set[int]) -> int:
    users = graph.users()
    reached, frontier = {start}, {start}
    for steps in range(NEAR + 1):
        if reached & goals:
            return steps
        frontier = {p for at in frontier for p in (*graph.nodes[at].operands, *users[at])} - reached
        reached |= frontier
    return NEAR + 1


def judged(name: str, made: Claim, per_kind: int, seed: int, known: set[int]) -> Iterator[Judged]:
    """The mutants of a program one after the other, without those whose numbers are known."""
    for number, mutant in enumerate(generate(made.program, seed, per_kind)):
        if number not in known:
            bug = f"{mutant.description} at {mutant.site}"
            yield Judged(name, number, mutant.kind, bug, *judge(made.sequential, mutant))


class Record:
    """What was judged, kept in a file where one is named."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.entries: list[Judged] = []
        self.finished: set[str] = set()
        for line in path.read_text().splitlines() if path and path.exists() else []:
            value: dict[str, Any] = json.loads(line)
            if "finished" in value:
                self.finished.add(value["finished"])
            else:
                entry = Judged(**value)
                self.entries.append(replace(entry, columns=tuple(entry.columns)))

    def add(self, entry: Judged) -> None:
        """Keep a mutant, and say on stderr what has to be looked at."""
        self.entries.append(entry)
        self._write(asdict(entry))
        if not entry.is_hit:
            said = f"{entry.bug}: {', '.join(entry.columns)} ({entry.status}): {entry.said}"
            print(f"miss: {entry.program} {entry.number}: {entry.kind} ({said})", file=sys.stderr, flush=True)

    def finish(self, name: str) -> None:
        """Keep that all mutants of a program were judged."""
        self.finished.add(name)
        self._write({"finished": name})

    def known(self, name: str) -> set[int]:
        """Numbers of the mutants of a program that were judged."""
        return {entry.number for entry in self.entries if entry.program == name}

    def _write(self, value: object) -> None:
        if self.path:
            with self.path.open("a") as file:
                print(json.dumps(value), file=file)


def fill(record: Record, names: Sequence[str], per_kind: int, seed: int, seconds: float | None) -> bool:
    """Judge what the record does not have; whether everything was judged before the time ran out."""
    stop = None if seconds is None else time.monotonic() + seconds
    for name, capture in claims():
        if name in record.finished or (names and not any(fnmatchcase(name, pattern) for pattern in names)):
            continue
        made = capture()
        made = settled(name, made)
        for entry in judged(name, made, per_kind, seed, record.known(name)):
            record.add(entry)
            if stop is not None and time.monotonic() > stop:
                return False
        record.finish(name)
    return True


def settled(name: str, made: Claim) -> Claim:
    """The claim with the placement of every output that the program without a bug is proved to have.

    Raises RewrightError where that program is not proved.
    """
    right = answer(made.sequential, made.program, suggest=False)
    if right.status != "proved":
        raise RewrightError(f"{name}: the program without a bug is {right.status}: {right.reason}; leave it out")
    program = made.program
    outputs = {
        output: place(shape_of(made.sequential, output), program.mesh, relation.placement.strip("[]").split(", "))
        for output, relation in right.relation.items()
        if relation.placement
        and "Strided" not in relation.placement  # a gradient that is expected to be held as its parameter is
        and all(output in graph.outputs for graph in program.graphs)
    }
    return Claim(made.sequential, replace(program, outputs={**outputs, **program.outputs}))


def shape_of(graph: Graph, output: str) -> Shape:
    """The shape of an output."""
    return graph.nodes[graph.outputs[output]].type.shape


def counted(entries: Sequence[Judged], *, by_kind: bool) -> dict[str, Counter[str]]:
    """How many mutants of each program, or of each kind, count in each column."""
    found: dict[str, Counter[str]] = {}
    for entry in entries:
        key = entry.kind if by_kind else entry.program
        found.setdefault(key, Counter()).update(("mutants", *entry.columns))
    return found


def rows(scores: dict[str, Counter[str]]) -> Iterator[list[object]]:
    """The rows of a table."""
    for name, counts in scores.items():
        yield [name, *(counts[column] for column in COLUMNS)]


def main(record: Record) -> int:
    """Print a table by program and one by kind of bug; 1 where a verdict is wrong."""
    programs, kinds = (counted(record.entries, by_kind=by_kind) for by_kind in (False, True))
    total = sum(programs.values(), Counter[str]())
    print_table(["program", *COLUMNS], rows(programs))
    print()
    print_table(["bug", *COLUMNS], rows({kind: kinds[kind] for kind in sorted(kinds)} | {"total": total}))
    return 1 if total["wrongly proved"] or total["wrongly refuted"] else 0
