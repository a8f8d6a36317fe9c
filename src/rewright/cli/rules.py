"""``rewright rules``: what the library holds, and proofs of it or of a user's rules."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.text import Text

from rewright.cli.hints import did_you_mean
from rewright.cli.programs import check_target
from rewright.cli.progress import Progress
from rewright.cli.rule_uses import laws_of
from rewright.cli.userfile import load_module
from rewright.ir.errors import RewrightError
from rewright.rules.evidence import collect
from rewright.rules.library import EVIDENCE, TABLES, library
from rewright.rules.record import Record, load, rule_digest, save
from rewright.rules.rule import Rule
from rewright.rules.verdict import RuleVerdict, judge

STATUS = {"proved": 0, "refuted": 1, "unknown": 2}
_COLOURS = {"proved": "green", "refuted": "red", "unknown": "yellow"}

Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON on stdout.")]


def build_rules_app() -> typer.Typer:
    """The commands below ``rewright rules``."""
    app = typer.Typer(help="The rule library: list it, prove it, prove rules of your own.", rich_markup_mode=None)
    app.callback(invoke_without_command=True)(listed)
    app.command("list")(show_list)
    app.command("prove")(prove_rules)
    return app


def listed(context: typer.Context, as_json: Json = False) -> int:
    """List the rules of the library with statement, evidence and use, or prove them."""
    return show_list(as_json) if context.invoked_subcommand is None else 0


def show_list(as_json: Json = False) -> int:
    """List the rules of the library: name, statement, evidence, grade, and the laws of refine that are instances."""
    records = load(EVIDENCE)
    if as_json:
        sys.stdout.write(json.dumps([_entry(family, rule, records) for family, rule in _families()], indent=1) + "\n")
        return 0
    console = Console(highlight=False)
    for family, rules in TABLES.items():
        console.print(Text(f"{family} ({len(rules)} rules)", "bold"))
        for rule in rules:
            record = records.get(rule.name)
            known = record is not None and record.digest == rule_digest(rule)
            evidence = f"{record.tier}, {record.grade}" if record is not None and known else "no record"
            evidence += f"; {_uses(laws_of(rule))}"
            console.print(
                Text(f"  {rule.name}: ").append(rule.statement).append(f"  [{evidence}]", "dim"), soft_wrap=True
            )
    return 0


def _uses(laws: tuple[str, ...] | None) -> str:
    return "not used" if laws is None else f"refine: {', '.join(laws) or 'equal as they are'}"


def _families() -> Iterable[tuple[str, Rule]]:
    return ((family, rule) for family, rules in TABLES.items() for rule in rules)


def _entry(family: str, rule: Rule, records: dict[str, Record]) -> dict[str, Any]:
    record = records.get(rule.name)
    known = record is not None and record.digest == rule_digest(rule)
    return {
        "name": rule.name,
        "family": family,
        "statement": rule.statement,
        "provenance": rule.provenance,
        "evidence": record.tier if record is not None and known else None,
        "grade": record.grade if record is not None and known else None,
        "used": laws_of(rule),
        "digest": rule_digest(rule),
    }


def prove_rules(
    target: Annotated[str | None, typer.Argument(metavar="[NAME | FILE]", help="A rule, or a file of rules.")] = None,
    budget: Annotated[float, typer.Option(metavar="SECONDS", help="Give up on a rule after this long.")] = 10.0,
    record: Annotated[Path | None, typer.Option(metavar="FILE", help="Write full evidence records as JSON.")] = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Prove in this many processes.")] = 1,
    as_json: Json = False,
) -> int:
    """Prove the library, one rule of it, or the rules of a Python file.

    Exit status: 0 all proved, 1 one is refuted, 2 one is unknown, 3 usage or input error.
    """
    if not budget > 0:
        raise RewrightError(f"--budget {budget:g} is no time; give a number of seconds above zero")
    if record is not None:
        check_target(record)
    rules = rules_named(target)
    if record is not None:
        return _record(rules, budget, record)
    started = time.monotonic()
    verdicts = _judge(rules, budget, jobs)
    if as_json:
        sys.stdout.write(json.dumps([_report(verdict) for verdict in verdicts], indent=1) + "\n")
    else:
        _print(verdicts, time.monotonic() - started, brief=target is None)
    found = {STATUS[verdict.status] for verdict in verdicts}
    return 1 if 1 in found else max(found, default=0)


def rules_named(target: str | None) -> tuple[Rule, ...]:
    """The rules that an argument names: all, one of the library, or those of a file."""
    if target is None:
        return library()
    if target.endswith(".py"):
        return rules_of_file(Path(target))
    names = [rule.name for rule in library()]
    found = tuple(rule for rule in library() if rule.name == target)
    if not found:
        raise RewrightError(f"the library has no rule {target!r}; {did_you_mean(target, names)}")
    return found


def rules_of_file(path: Path) -> tuple[Rule, ...]:
    """The rules of a Python file: its ``RULES``, or all rules among its names. Raises RewrightError."""
    try:
        module = load_module(path)
    except RewrightError as error:
        raise RewrightError(_locate(path, error)) from None
    given: object = getattr(module, "RULES", None)
    if given is None:
        given = [value for value in vars(module).values() if isinstance(value, Rule)]
    entries = cast("Sequence[object]", given) if isinstance(given, (list, tuple)) else ()
    rules = tuple(entry for entry in entries if isinstance(entry, Rule))
    if not rules or len(rules) != len(entries):
        raise RewrightError(f"{path} has no rules; define RULES, a list of what rewright.rules.rule(...) returns")
    return rules


def _locate(path: Path, error: RewrightError) -> str:
    """The message with the line of the file that caused it, where it does not say."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path.resolve()]
    return f"{path.name}:{lines[-1]}: {error}" if lines else str(error)


@dataclass(frozen=True)
class _Task:
    """A rule and its budget, for a process of its own."""

    rule: Rule
    budget: float

    def run(self) -> RuleVerdict:
        return judge(self.rule, self.budget)


def _judge(rules: Sequence[Rule], budget: float, jobs: int) -> list[RuleVerdict]:
    progress = Progress()
    if jobs == 1 or len(rules) == 1:
        found: list[RuleVerdict] = []
        for number, rule in enumerate(rules):
            with progress.phase("prove", f"proving {rule.name} ({number + 1} of {len(rules)})"):
                found.append(judge(rule, budget))
        return found
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(_Task.run, [_Task(rule, budget) for rule in rules], chunksize=4))


def _print(verdicts: Sequence[RuleVerdict], seconds: float, brief: bool) -> None:
    console = Console(highlight=False)
    for verdict in verdicts:
        if brief and verdict.status == "proved":
            continue
        line = Text(verdict.status, _COLOURS[verdict.status]).append(
            f" {verdict.rule.name}: {verdict.rule.statement}", "default"
        )
        if verdict.grade is not None:
            line.append(f"  [{verdict.grade}, {verdict.seconds * 1000:.0f} ms]", "dim")
        console.print(line, soft_wrap=True)
        if verdict.counterexample is not None:
            console.print(Text(f"  at {verdict.counterexample}"), soft_wrap=True)
        elif verdict.reason:
            console.print(Text(f"  {verdict.reason}"), soft_wrap=True)
    counts = {status: sum(v.status == status for v in verdicts) for status in STATUS}
    shown = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    console.print(f"{len(verdicts)} rules: {shown} in {seconds:.1f} s")


def _report(verdict: RuleVerdict) -> dict[str, Any]:
    found = verdict.counterexample
    return {
        "name": verdict.rule.name,
        "statement": verdict.rule.statement,
        "status": verdict.status,
        "grade": verdict.grade,
        "reason": verdict.reason or None,
        "counterexample": None if found is None else {"sizes": dict(found.sizes), "difference": found.difference},
        "queries": verdict.outcome.queries,
        "seconds": round(verdict.seconds, 4),
        "digest": rule_digest(verdict.rule),
    }


def _record(rules: Sequence[Rule], budget: float, path: Path) -> int:
    """Full records of rules; the exit status says whether all are complete."""
    progress = Progress()
    records: list[Record] = []
    for number, rule in enumerate(rules):
        with progress.phase("record", f"recording {rule.name} ({number + 1} of {len(rules)})"):
            records.append(collect(rule, budget))
    save(records, path)
    open_records = [record for record in records if not record.complete]
    console = Console(highlight=False)
    for one in open_records:
        console.print(
            f"incomplete {one.name}: {one.tier}, {dict(one.substance)}, {one.tests['failed']}", soft_wrap=True
        )
    console.print(f"{len(records)} records written to {path}, {len(open_records)} of them incomplete", soft_wrap=True)
    if any(record.proof["status"] == "refuted" for record in records):
        return 1
    return 2 if open_records else 0
