"""Public bug reports on models, each with a right and a wrong pair: ``python -m bench.bugs [NAME ..]``.

The right pair has to be proved and the wrong one refuted, with the operator that is wrong among the first two findings;
*named* says which finding that is. A difference of casts alone is none of functions, and is proved with a note.
Exit status 1 where that is not so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence

import torch

from bench.tables import print_table
from rewright.equiv.engine import Equivalence
from tests.equiv.listed_bugs import BUGS, Bug, RankBug, named

COLUMNS = ["bug", "thread", "type", "right pair", "wrong pair", "named", "kind", "left", "right", "seconds"]
MOST = 2
"""So many findings are looked at."""


def rows(names: Sequence[str], missed: list[str]) -> Iterator[list[object]]:
    """A row for each bug and type of numbers; bugs that are not told, or not named, are added to ``missed``."""
    for name, bug in BUGS.items():
        if names and not any(part in name for part in names):
            continue
        for dtype in (torch.float32, torch.bfloat16):
            start = time.perf_counter()
            right, wrong = bug.pair(dtype, wrong=False), bug.pair(dtype, wrong=True)
            seconds = time.perf_counter() - start
            number = named(bug, wrong.findings)
            if not _is_told(bug, right, wrong, number):
                missed.append(name)
            finding = wrong.findings[0] if wrong.findings else None
            told = [finding.kind, finding.sequential, finding.distributed] if finding else [_note(wrong), "", ""]
            kind = str(dtype).removeprefix("torch.")
            yield [name, bug.threads, kind, right.status, wrong.status, number or "", *told, seconds]


def _is_told(bug: Bug | RankBug, right: Equivalence, wrong: Equivalence, number: int) -> bool:
    if not bug.is_wrong:
        return right.status == wrong.status == "proved"
    return right.status == "proved" and wrong.status == "refuted" and 1 <= number <= MOST


def _note(verdict: Equivalence) -> str:
    """The first place where two programs that are one function round differently."""
    notes = (note.partition(";")[0] for note in verdict.notes if note.startswith("precision"))
    return next(notes, "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of bugs; all of them by default")
    missed: list[str] = []
    print_table(COLUMNS, rows(parser.parse_args().names, missed))
    for name in missed:
        print(f"missed: {name}", file=sys.stderr)
    sys.exit(bool(missed))
