"""What a refutation costs beside the proof: ``python -m bench.refutations [NAME ..]``.

One injected bug of each kind in each program, with findings and proved repairs; CPU seconds of this process. A person
meets the wrong program first, so that the worst case counts.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from bench.distributed import Claim, claims
from bench.mutants import generate
from bench.mutants.score import settled
from bench.tables import print_table
from rewright.ir.errors import RewrightError
from rewright.ir.placement import RankProgram
from rewright.refine.engine import answer

COLUMNS = ("program", "proof s", "refuted", "median s", "worst s", "worst kind", "other", "worst s")


def seconds_of(made: Claim, program: RankProgram) -> tuple[str, float]:
    """The status of a verdict, and what it took."""
    start = time.process_time()
    try:
        status = answer(made.sequential, program).status
    except RewrightError:
        status = "refused"
    return status, time.process_time() - start


def row(name: str, made: Claim) -> list[object]:
    """A row of the table: refutations, and verdicts that are proofs or unknown."""
    seconds_of(made, made.program)  # what is loaded on first use is no part of it
    _, proof = seconds_of(made, made.program)
    refuted: list[tuple[float, str]] = []
    others: list[float] = []
    for mutant in generate(made.program, 0, 1):
        status, seconds = seconds_of(made, mutant.program)
        if status == "refuted":
            refuted.append((seconds, mutant.kind))
        else:
            others.append(seconds)
    worst, kind = max(refuted, default=(0.0, ""))
    median = statistics.median(seconds for seconds, _ in refuted) if refuted else 0.0
    return [name, proof, len(refuted), median, worst, kind, len(others), max(others, default=0.0)]


def rows(names: Sequence[str]) -> Iterator[list[object]]:
    """A row for each program whose name fits a pattern."""
    for name, capture in claims():
        if not names or any(fnmatchcase(name, pattern) for pattern in names):
            yield row(name, settled(name, capture()))


if __name__ == "__main__":
    print_table(COLUMNS, rows(sys.argv[1:]))
