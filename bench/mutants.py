"""Injected bugs, and how many of them are refuted, near the place where they were injected: ``make mutants``.

A mutant that is proved must be a true equivalence; the numeric twin decides that with several seeds, and with integer
inputs that hit every boundary value. Repairs are left out: they do not change what is scored.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.programs import captured
from bench.tables import print_table
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.refine import Verdict
from rewright.refine.engine import answer
from rewright.refine.mutants import Mutant, generate, is_equivalent

PROGRAMS = (
    ("llama", "dtensor", True),
    ("llama", "dtensor_sp_loss", True),
    ("qwen3", "dtensor_sp", True),
    ("decoder", "megatron", True),
    ("decoder", "megatron_sp", True),
    ("gpt2", "dtensor", False),
    ("mixer", "all_to_all", True),
)
DEGREE = 2
NEAR = 2
"""Operators between the injected bug and the finding that still count as near."""
FAR = 1000
COLUMNS = ("mutants", "refuted", "near", "equivalent", "unknown", "wrongly proved")
HITS = ({"mutants", "refuted", "near"}, {"mutants", "equivalent"})
"""What a mutant should count as."""


@dataclass
class Score:
    """Counts over the mutants of one program or kind."""

    counts: Counter[str] = field(default_factory=Counter[str])

    def row(self, name: str) -> list[object]:
        """One row of the table."""
        return [name, *(self.counts[key] for key in COLUMNS)]


@dataclass(frozen=True)
class Judged:
    """The columns that a mutant counts in, and what was said about it."""

    columns: tuple[str, ...]
    said: str


def judge(sequential: Graph, mutant: Mutant) -> Judged:
    """Refine a mutant, and ask the numeric twin about one that is not refuted."""
    try:
        verdict = answer(sequential, mutant.program, suggest=False)
    except RewrightError as error:
        # A parameter cut wrongly does not fit its placement any more: refused by name, before anything is proved.
        return Judged(("mutants", "refuted", "near"), str(error))
    if verdict.status == "refuted":
        steps = distance(verdict, mutant)
        near = ("near",) if steps <= NEAR else ()
        first = next(iter(verdict.findings), None)
        place = f"{first.kind} at {first.distributed}: {first.message}" if first else verdict.reason
        return Judged(("mutants", "refuted", *near), place)
    same = is_equivalent(sequential, mutant)
    if same is True:
        return Judged(("mutants", "equivalent"), verdict.reason)
    return Judged(("mutants", "wrongly proved" if verdict.status == "proved" else "unknown"), verdict.reason)


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


def scored(names: Sequence[str], per_kind: int, seed: int, by_kind: dict[str, Score]) -> Iterator[list[object]]:
    """One row for each program, as it is done; the scores by kind of bug grow on the way."""
    for name, plan, backward in PROGRAMS:
        if names and name not in names:
            continue
        pair = captured(name, plan, "tiny", DEGREE, backward)
        score = Score()
        for mutant in generate(pair.distributed, seed, per_kind):
            judged = judge(pair.sequential, mutant)
            score.counts.update(judged.columns)
            by_kind.setdefault(mutant.kind, Score()).counts.update(judged.columns)
            if set(judged.columns) not in HITS:
                outcome = ", ".join(judged.columns[1:])
                where = f"{mutant.kind} ({mutant.description}) at {mutant.site}"
                print(f"miss: {name} {plan}: {where}: {outcome}: {judged.said}", file=sys.stderr, flush=True)
        yield score.row(f"{name} {plan}")


def main(names: Sequence[str], per_kind: int, seed: int) -> int:
    """Score programs and print a table by program and one by kind of bug; 1 where a wrong program was proved."""
    started = time.perf_counter()
    by_kind: dict[str, Score] = {}
    print_table(["program", *COLUMNS], scored(names, per_kind, seed, by_kind))
    print()
    total = Score(sum((score.counts for score in by_kind.values()), Counter()))
    print_table(["bug", *COLUMNS], [*(by_kind[kind].row(kind) for kind in sorted(by_kind)), total.row("total")])
    print(f"\n{time.perf_counter() - started:.0f} s")
    return 1 if total.counts["wrongly proved"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs to score; all of them by default")
    parser.add_argument("--per-kind", default=5, type=int, help="mutants of each kind for each program")
    parser.add_argument("--seed", default=0, type=int, help="which mutants are drawn")
    options = parser.parse_args()
    sys.exit(main(options.names, options.per_kind, options.seed))
