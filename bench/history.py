"""Public bugs of distributed programs, before and after their fix: ``python -m bench.history [NAME ..]``.

Every program of ``zoo.patterns`` is proved as it should be, audited, and refuted as it was. *Line* is how far the line
that the first finding names is from the one that was mended, and *repair* is what the finding proposes; a repair was
proved before it is printed. Exit status 1 where a program is not told, or a line is off by more than three.
"""

from __future__ import annotations

import argparse
import importlib
import linecache
import pkgutil
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import rewright as rw
import zoo.patterns
from bench.tables import print_table
from rewright.ir.errors import RewrightError
from rewright.refine.verdict import Finding, Verdict
from zoo.patterns import PATTERNS, Pattern

COLUMNS = ["bug", "threads", "mesh", "wrong in", "before", "line", "finding", "repair", "after", "evidence", "seconds"]
MOST = 3
"""A line that is farther off than this does not tell where the bug is."""
FILES = {
    Path(str(module.__file__)).name: str(module.__file__)
    for found in pkgutil.iter_modules(zoo.patterns.__path__)
    for module in [importlib.import_module(f"zoo.patterns.{found.name}")]
}


def verdict(pattern: Pattern, *, wrong: bool) -> Verdict:
    """Whether the ranks compute what one device does."""
    sequential = rw.capture(*pattern.sequential())
    program = rw.capture_ranks(lambda mesh: pattern.parallel(mesh, wrong), pattern.mesh)
    return rw.refine(sequential, program, relations=pattern.stated(wrong), audit=not wrong)


def distance(pattern: Pattern, finding: Finding) -> int | None:
    """How many lines the place of a bug is from the nearest line that a finding names; None in another file."""
    near = [
        abs(line - own)
        for file, line in named_lines(finding)
        for own, text in enumerate(linecache.getlines(file), 1)
        if pattern.place in text
    ]
    return min(near, default=None)


def named_lines(finding: Finding) -> set[tuple[str, int]]:
    """File and number of the lines that a finding names, of both programs."""
    places = re.findall(r"(\w+\.py):(\d+)", finding.message)
    told = {(FILES[file], int(line)) for file, line in places if file in FILES}
    return told | {(span.file, span.line) for span in (finding.sequential, finding.distributed) if span is not None}


def row(name: str, pattern: Pattern) -> tuple[list[object], bool]:
    """A row of the table, and whether the bug is told."""
    start = time.perf_counter()
    mesh = " x ".join(f"{axis} {size}" for axis, size in pattern.mesh.items())
    head: list[object] = [name, ", ".join(pattern.references), mesh, "gradient" if pattern.gradient else "value"]
    try:
        before, after = verdict(pattern, wrong=True), verdict(pattern, wrong=False)
    except RewrightError as error:
        return [*head, "error", "", str(error), "", "", "", time.perf_counter() - start], False
    finding = before.findings[0] if before.findings else None
    off = None if finding is None else distance(pattern, finding)
    told = before.status == "refuted" and after.status == "proved" and off is not None and off <= MOST
    seconds = time.perf_counter() - start
    said = [before.status, off, finding and finding.kind, finding and finding.suggestion]
    return [*head, *said, after.status, after.evidence, seconds], told


def rows(names: Sequence[str], missed: list[str]) -> Iterator[list[object]]:
    """All rows, as they are measured; bugs that are not told are added to ``missed``."""
    for name, pattern in PATTERNS.items():
        if not names or any(part in name for part in names):
            found, told = row(name, pattern)
            missed += [] if told else [name]
            yield found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of bugs; all of them by default")
    missed: list[str] = []
    print_table(COLUMNS, rows(parser.parse_args().names, missed))
    print(f"\nnot told: {', '.join(missed) or 'none'}")
    sys.exit(bool(missed))
