"""A verdict as text that a person can act on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from rewright.ir.types import SourceSpan
from rewright.refine.verdict import Counterexample, Finding, Stats, Verdict
from rewright.report.grouping import Family, families
from rewright.report.source import line_text, place

_STYLES = {"proved": "bold green", "refuted": "bold red", "unknown": "bold yellow", "vacuous": "bold yellow"}
_SHOWN_FINDINGS = 10
_SHOWN_OUTPUTS = 40
_SHOWN_INPUTS = 4
_SHOWN_SECONDS = 0.005


Sides = tuple[str, str]
SIDES: Sides = ("sequential", "distributed")
"""What the two programs are called."""


def print_verdict(verdict: Verdict, console: Console, title: str = "", sides: Sides = SIDES) -> None:
    """Write the report: verdict, findings, relation of each output, assumptions, notes, time by phase."""
    status, worth = verdict.status, verdict.worth.removeprefix(verdict.status)
    _line(console, "", Text(status.upper(), _STYLES[status]), Text(worth), Text(f": {headline(verdict, title)}"))
    for number, finding in enumerate(verdict.findings[:_SHOWN_FINDINGS], start=1):
        _print_finding(console, number, finding, sides)
    if len(verdict.findings) > _SHOWN_FINDINGS:
        _line(console, "", Text(f"and {len(verdict.findings) - _SHOWN_FINDINGS} more findings; --json lists all"))
    _print_outputs(console, families(verdict.relation.values()))
    _print_list(console, "assumptions", verdict.assumptions)
    _print_list(console, "notes", verdict.notes)
    _print_list(console, "captures", [verdict.validation] if verdict.validation else [])
    _print_rows(console, "work", _work(verdict.stats, sides))


def headline(verdict: Verdict, title: str = "") -> str:
    """One line: what was compared, and why the answer is what it is."""
    subject = f"{title}: " if title else ""
    reason = (
        verdict.reason
        or {
            "proved": "the distributed program computes what the sequential one computes",
            "refuted": "the distributed program computes something else",
            "vacuous": "the programs are equal, and that says nothing",
            "unknown": "not shown, and not shown to be wrong",
        }[verdict.status]
    )
    return f"{subject}{reason}"


def _print_finding(console: Console, number: int, finding: Finding, sides: Sides) -> None:
    console.print()
    _line(console, "", Text(f"{number}. {finding.kind.replace('_', ' ')}", "bold"), Text(f": {finding.message}"))
    rows = [*_source(sides[0], finding.sequential), *_source(sides[1], finding.distributed)]
    if finding.expected:
        rows.append(("expected", Text(finding.expected, "green")))
    if finding.found:
        rows.append(("found", Text(finding.found, "red")))
    if finding.suggestion:
        rows.append(("repair", Text(finding.suggestion, "bold")))
    if finding.also:
        rows.append(("also in", Text(_few(finding.also))))
    if finding.why_not:
        rows.append(("why", Text(finding.why_not, "dim")))
    if finding.counterexample is not None:
        rows.extend((label, Text(text)) for label, text in counterexample_lines(finding.counterexample, sides=sides))
    _print_rows(console, "", rows)


def _source(label: str, span: SourceSpan | None) -> list[tuple[str, Text]]:
    if span is None:
        return []
    rows = [(label, Text(place(span), "cyan"))]
    code = line_text(span)
    return [*rows, ("", Text(f"| {code}", "dim"))] if code else rows


def _few(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN_INPUTS
    return ", ".join(names[:_SHOWN_INPUTS]) + (f" and {more} more" if more > 0 else "")


def counterexample_lines(
    example: Counterexample, limit: int | None = _SHOWN_INPUTS, sides: Sides = SIDES
) -> list[tuple[str, str]]:
    """What differs, and the sizes of inputs (of some of them, with a limit)."""
    shapes = [f"{name} {_shape(shape)}" for name, shape in example.sizes.items()]
    sizes = ", ".join(shapes) if limit is None else _few(shapes)
    element = f"{example.output}[{', '.join(map(str, example.index))}]" if example.index else example.output
    values = f"{example.sequential_value:.6g} {sides[0]}, {example.distributed_value:.6g} {sides[1]}"
    return [("counterexample", f"{element} = {values} (seed {example.seed})"), ("at sizes", sizes)]


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _print_outputs(console: Console, groups: list[Family]) -> None:
    rows: list[tuple[str, Text]] = []
    for family in sorted(groups, key=lambda family: family.holds)[:_SHOWN_OUTPUTS]:
        text = Text(family.relation or "no relation found", "" if family.holds else "red")
        if family.expected is not None and not family.holds:
            text.append(f"   expected {family.expected}", "green")
        if len(family.members) > 1:
            text.append(f"   {len(family.members)} tensors", "dim")
        rows.append((family.name, text))
    if len(groups) > _SHOWN_OUTPUTS:
        rows.append((f"and {len(groups) - _SHOWN_OUTPUTS} more", Text("--json lists all", "dim")))
    _print_rows(console, "outputs", rows)


def _work(stats: Stats, sides: Sides) -> list[tuple[str, Text]]:
    rows: list[tuple[str, Text]] = []
    if stats.ranks:
        many = sides[1] if stats.ranks == 1 and sides[1] != "distributed" else f"on {stats.ranks} ranks"
        size = f"{stats.sequential_nodes:,} {sides[0]}, {stats.rank_nodes:,} {many}"
        rows.append(("nodes", Text(size)))
    if stats.steps:
        rows.append(("steps", Text(", ".join(f"{count:,} {name}" for name, count in stats.steps.items()))))
    if stats.seconds:
        long = {name: seconds for name, seconds in stats.seconds.items() if seconds >= _SHOWN_SECONDS}
        phases = "".join(f"{name} {seconds:.2f} s, " for name, seconds in long.items())
        rows.append(("time", Text(f"{phases}total {sum(stats.seconds.values()):.2f} s")))
    return rows


def _print_list(console: Console, title: str, lines: Iterable[str]) -> None:
    _print_rows(console, title, [("-", Text(line)) for line in lines])


def _print_rows(console: Console, title: str, rows: list[tuple[str, Text]]) -> None:
    """Rows of label and text in two columns, under a title of their own where there is one."""
    if not rows:
        return
    if title:
        console.print()
        _line(console, "", Text(title, "bold"))
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        _line(console, "  ", Text(label.ljust(width)), Text("  " if width > 1 else " "), text)


def _line(console: Console, indent: str, *parts: Text) -> None:
    """One line that is never wrapped or cropped, so that it can be copied and searched."""
    console.print(Text(indent).append_text(Text("").join(parts)), soft_wrap=True, highlight=False)
