"""``rewright refine --matrix``: claims are worked on in parallel, and printed as they finish."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from rewright.cli.matrix.table import Task, read_tasks
from rewright.cli.matrix.work import Outcome, run_task
from rewright.cli.outputs import Outputs
from rewright.ir.errors import RewrightError
from rewright.refine.verdict import Evidence, Verdict
from rewright.report import Claim, print_verdict, read_verdict
from rewright.report.terminal import headline
from rewright.workers import Failure, run_all, workers_named

_STATUS = {"proved": 0, "refuted": 1, "unknown": 2, "error": 3, "vacuous": 4}
_SEVERITY = ("error", "refuted", "unknown", "vacuous", "proved")
_COLOURS = {
    "proved": "bold green",
    "refuted": "bold red",
    "unknown": "bold yellow",
    "vacuous": "bold yellow",
    "error": "bold red",
}


@dataclass(frozen=True)
class Options:
    """How a matrix is worked on."""

    executor: str = "local"
    jobs: int = 1
    cache: Path | None = None
    budget: float | None = None
    audit: bool | None = None
    as_json: bool = False
    allow_vacuous: bool = False
    require_collectives: bool = False


def run_matrix(path: Path, options: Options, outputs: Outputs) -> int:
    """Work on all claims of a file; the exit status is that of the worst of them. Raises RewrightError."""
    tasks = [_with(task, options) for task in read_tasks(path)]
    workers = workers_named(options.executor, options.jobs, run_task)
    found: dict[str, tuple[Claim, Outcome]] = {}
    for outcome in _show(tasks, run_all(tasks, workers)):
        claim = claim_of(outcome)
        found[outcome.name] = claim, outcome
        if not options.as_json:
            _tell(claim, outcome)
    ordered = [found[task.name] for task in tasks if task.name in found]
    claims = [claim for claim, _ in ordered]
    outputs.write(claims, f"{path.name}: {len(claims)} claims")
    if options.as_json:
        sys.stdout.write(json.dumps(_document(ordered), indent=2, allow_nan=False) + "\n")
    else:
        _end(ordered)
    worst = next((status for status in _SEVERITY if any(claim.status == status for claim in claims)), "proved")
    return _STATUS[worst]


def claim_of(outcome: Outcome) -> Claim:
    """What the reports need; a document that is none becomes an error."""
    empty = Verdict("unknown", Evidence.ASSUMED, reason=outcome.error)
    if outcome.error:
        return Claim(outcome.name, empty, outcome.seconds, error=outcome.error)
    try:
        verdict = read_verdict(outcome.document)
    except RewrightError as error:
        return Claim(outcome.name, empty, outcome.seconds, error=str(error))
    return Claim(outcome.name, verdict, outcome.seconds, outcome.drawings)


def _with(task: Task, options: Options) -> Task:
    cache = "" if options.cache is None else str(options.cache.resolve())
    budget = task.budget if task.budget is not None else options.budget
    content = {"allow_vacuous": options.allow_vacuous, "require_collectives": options.require_collectives}
    return replace(task, cache=cache, budget=budget, audit=options.audit, **content)


def _show(tasks: list[Task], outcomes: Iterable[tuple[Task, Outcome | Failure]]) -> Iterator[Outcome]:
    """The outcomes, with a bar on stderr where that is a terminal."""
    columns = SpinnerColumn(), TextColumn("claims"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    shown = Console(stderr=True)
    with Progress(*columns, console=shown, transient=True, disable=not sys.stderr.isatty()) as bar:
        number = bar.add_task("claims", total=len(tasks))
        for task, outcome in outcomes:
            bar.advance(number)
            yield Outcome(task.name, error=outcome.why) if isinstance(outcome, Failure) else outcome


def _tell(claim: Claim, outcome: Outcome) -> None:
    """One line for a claim, on stderr: the report comes at the end."""
    line = Text(f"{claim.status:8}", _COLOURS[claim.status]).append(f" {claim.name}", "not bold default")
    line.append(f"  {claim.seconds:.1f} s{', as before' if outcome.cached else ''}", "not bold dim")
    Console(stderr=True).print(line, soft_wrap=True, highlight=False)


def _end(ordered: list[tuple[Claim, Outcome]]) -> None:
    """The report: what is not proved in full, then a line for each claim."""
    console = Console()
    for claim, _ in ordered:
        if claim.status in ("refuted", "unknown", "vacuous"):
            print_verdict(claim.verdict, console, claim.name)
            console.print()
    for claim, outcome in ordered:
        line = Text(f"{claim.status:8}", _COLOURS[claim.status]).append(f" {claim.name}", "not bold default")
        proof = {Evidence.PROVED: " (audited)", Evidence.TESTED: " (not audited)"}.get(claim.verdict.evidence, "")
        said = claim.error or headline(claim.verdict) + (proof if claim.status == "proved" else "")
        line.append(f": {said}{' (as before)' if outcome.cached else ''}", "not bold default")
        console.print(line, soft_wrap=True, highlight=False)
    counts = {status: sum(claim.status == status for claim, _ in ordered) for status in _STATUS}
    kept = sum(outcome.cached for _, outcome in ordered)
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    console.print(f"{len(ordered)} claims: {told}; {kept} as before", soft_wrap=True, highlight=False)


def _document(ordered: list[tuple[Claim, Outcome]]) -> dict[str, Any]:
    return {
        "schema": 1,
        "claims": [
            {
                "name": claim.name,
                "status": claim.status,
                "seconds": round(claim.seconds, 3),
                "cached": outcome.cached,
                "error": claim.error,
                "report": outcome.document or None,
            }
            for claim, outcome in ordered
        ],
    }
