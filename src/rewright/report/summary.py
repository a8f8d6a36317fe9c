"""Verdicts as Markdown, for the summary that GitHub shows of a step."""

from __future__ import annotations

from collections.abc import Sequence

from rewright.refine.verdict import Finding
from rewright.report.claim import Claim
from rewright.report.source import line_text, place
from rewright.report.terminal import counterexample_lines, headline

_MARKS = {"proved": "✅", "refuted": "❌", "unknown": "❔", "vacuous": "❔", "error": "⚠️"}
_MOST = 20


def summary(claims: Sequence[Claim]) -> str:
    """A table of all claims, then what to act on."""
    counts = {status: sum(claim.status == status for claim in claims) for status in _MARKS}
    title = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    lines = [f"### Rewright: {title or 'nothing was compared'}", "", "| | claim | verdict | evidence | seconds |"]
    lines.append("|---|---|---|---|---:|")
    for claim in claims:
        said = claim.error or headline(claim.verdict)
        evidence = "" if claim.error else str(claim.verdict.evidence)
        row = (_MARKS[claim.status], _cell(claim.name), f"**{claim.status}** {_cell(said)}", evidence)
        lines.append(f"| {' | '.join(row)} | {claim.seconds:.1f} |")
    for claim in claims:
        for finding in claim.verdict.findings[:_MOST]:
            lines += ["", *_details(claim, finding)]
    return "\n".join(lines) + "\n"


def _details(claim: Claim, finding: Finding) -> list[str]:
    title = f"{_cell(claim.name)}: {finding.kind.replace('_', ' ')}"
    lines = [f"<details><summary>{title}</summary>", "", _cell(finding.message), ""]
    for label, span in (("sequential", finding.sequential), ("distributed", finding.distributed)):
        if span is not None:
            lines.append(f"- {label}: `{_code(place(span))}`")
            code = line_text(span)
            if code:
                lines.append(f"  `{_code(code)}`")
    rows = (
        ("expected", finding.expected),
        ("found", finding.found),
        ("repair (applied and checked again)", finding.suggestion or ""),
        ("also in", ", ".join(finding.also)),
        ("why they are not related", finding.why_not),
    )
    lines += [f"- {label}: `{_code(text)}`" for label, text in rows if text]
    if finding.counterexample is not None:
        lines += [f"- {label}: `{_code(text)}`" for label, text in counterexample_lines(finding.counterexample)]
    return [*lines, "", "</details>"]


def _cell(text: str) -> str:
    """Text that is no markup, and stays in its cell."""
    found = " ".join(text.split())
    for mark in "\\`*_|<>[]":
        found = found.replace(mark, f"\\{mark}" if mark not in "<>" else {"<": "&lt;", ">": "&gt;"}[mark])
    return found


def _code(text: str) -> str:
    return " ".join(text.split()).replace("`", "'")
