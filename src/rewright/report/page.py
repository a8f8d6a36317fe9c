"""One HTML file that needs nothing else: no network, no other file, readable without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from rewright.ir.types import SourceSpan
from rewright.refine.verdict import Finding, Stats, Verdict
from rewright.report.claim import Claim
from rewright.report.grouping import families
from rewright.report.source import excerpt, place
from rewright.report.terminal import counterexample_lines, headline

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_SHOWN_OUTPUTS = 40


def page(claims: Sequence[Claim], title: str = "Rewright report") -> str:
    """The whole document; with several claims, a table of them comes first."""
    parts = [_overview(claims)] if len(claims) > 1 else []
    parts += [_claim(claim, number, len(claims) > 1) for number, claim in enumerate(claims)]
    body = "\n".join(parts) or "<p>Nothing was compared.</p>"
    style = "\n".join(_asset(name) for name in ("report.css", "drawing.css"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}\n</style>\n</head>\n<body>\n"
        '<a class="skip" href="#content">Skip to the verdict</a>\n'
        f'<header><p class="brand">Rewright</p><h1>{escape(title)}</h1>'
        '<button type="button" id="theme" hidden>Dark</button></header>\n'
        f'<main id="content">\n{body}\n</main>\n'
        f"<script>\n{_asset('report.js')}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    return files("rewright.report").joinpath("assets", name).read_text(encoding="utf-8")


def _overview(claims: Sequence[Claim]) -> str:
    rows = "".join(
        f'<tr><th scope="row"><a href="#claim-{number}">{escape(claim.name)}</a></th><td>{_badge(claim.status)}</td>'
        f"<td>{escape('' if claim.error else str(claim.verdict.evidence))}</td>"
        f'<td class="number">{claim.seconds:.2f}</td></tr>'
        for number, claim in enumerate(claims)
    )
    head = _head(("claim", "verdict", "evidence", "seconds"))
    return f'<section aria-labelledby="claims"><h2 id="claims">Claims</h2>{_table(head, rows, "claims")}</section>'


def _claim(claim: Claim, number: int, many: bool) -> str:
    verdict = claim.verdict
    said = claim.error or headline(verdict)
    parts = [f'<h2 id="claim-{number}">{_badge(claim.status)} {escape(claim.name)}</h2>', f"<p>{escape(said)}</p>"]
    if not claim.error:
        parts.append(f'<p class="evidence">{escape(verdict.basis)}</p>')
    drawings = (*claim.drawings, *[""] * len(verdict.findings))
    parts += [_finding(finding, f"{number}-{k}", k + 1, drawings[k]) for k, finding in enumerate(verdict.findings)]
    parts.append(_relations(claim))
    parts.append(_inputs(verdict))
    parts.append(_list("Assumptions", verdict.assumptions))
    parts.append(_list("Notes", verdict.notes))
    parts.append(_list("Captures", [verdict.validation] if verdict.validation else []))
    parts.append(_work(verdict.stats))
    inner = "\n".join(part for part in parts if part)
    name = f'<section class="claim" aria-labelledby="claim-{number}">'
    return (
        f"{name}\n{inner}\n</section>"
        if not many
        else f"{name}\n{inner}\n<p><a href='#claims'>All claims</a></p></section>"
    )


def _badge(status: str) -> str:
    marks = {"proved": "✓", "refuted": "✗", "unknown": "?", "vacuous": "?", "error": "!"}
    return f'<span class="badge {status}"><span aria-hidden="true">{marks[status]}</span> {status}</span>'


def _finding(finding: Finding, key: str, number: int, drawing: str) -> str:
    rows: list[tuple[str, str]] = []
    for label, text in (("Expected", finding.expected), ("Found", finding.found)):
        if text:
            rows.append((label, f'<code class="{label.lower()}">{escape(text)}</code>'))
    if finding.suggestion:
        rows.append(("Repair", f"<strong>{escape(finding.suggestion)}</strong> <span class='muted'>(checked)</span>"))
    if finding.also:
        rows.append(("Also in", escape(", ".join(finding.also))))
    if finding.why_not:
        rows.append(("Why they are not related", escape(finding.why_not)))
    if finding.counterexample is not None:
        rows += [
            (label.capitalize(), f"<code>{escape(text)}</code>")
            for label, text in counterexample_lines(finding.counterexample, limit=None)
        ]
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{text}</dd>" for label, text in rows)
    lines = _source("Sequential", finding.sequential) + _source("Distributed", finding.distributed)
    picture = f'<figure class="graphs" tabindex="0" aria-label="Both programs">{drawing}</figure>' if drawing else ""
    return (
        f'<article class="finding" aria-labelledby="finding-{key}"><h3 id="finding-{key}">{number}. '
        f"{escape(finding.kind.replace('_', ' '))}</h3><p>{escape(finding.message)}</p>"
        f'<div class="sides">{lines}</div><dl>{facts}</dl>{picture}</article>'
    )


def _source(label: str, span: SourceSpan | None) -> str:
    if span is None:
        return ""
    lines = "".join(
        f'<li value="{number}"{" class=here" if number == span.line else ""}><code>{escape(text) or " "}</code></li>'
        for number, text in excerpt(span)
    )
    code = f"<ol>{lines}</ol>" if lines else ""
    return f'<div class="side"><h4>{label}</h4><p class="place">{escape(place(span))}</p>{code}</div>'


def _relations(claim: Claim) -> str:
    found = families(claim.verdict.relation.values())
    if not found:
        return ""
    rows: list[str] = []
    for family in sorted(found, key=lambda one: one.holds):
        count = len(family.members)
        holds = "yes" if family.holds else "no"
        rows.append(
            f'<tr class="{"" if family.holds else "wrong"}"><th scope="row">{escape(family.name)}</th>'
            f"<td><code>{escape(family.relation or 'no relation found')}</code></td>"
            f"<td><code>{escape(family.expected or '')}</code></td>"
            f'<td>{holds}</td><td class="number">{count}</td></tr>'
        )
    head = _head(("output", "the ranks hold it as", "expected", "shown", "tensors"))
    more = _table(head, "".join(rows[_SHOWN_OUTPUTS:]), "further relations")
    tail = (
        f"<details><summary>{len(rows) - _SHOWN_OUTPUTS} more</summary>{more}</details>"
        if rows[_SHOWN_OUTPUTS:]
        else ""
    )
    return f"<h3>Relation of every output</h3>{_table(head, ''.join(rows[:_SHOWN_OUTPUTS]), 'relations')}{tail}"


def _inputs(verdict: Verdict) -> str:
    """How the ranks hold every input, folded: most assumptions are about these."""
    held = {} if verdict.programs is None else verdict.programs[1].inputs
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td><code>{escape(str(placement))}</code></td></tr>'
        for name, placement in held.items()
    )
    table = _table(_head(("input", "the ranks hold it as")), rows, "inputs")
    return f"<details><summary>How the ranks hold {len(held)} inputs</summary>{table}</details>" if rows else ""


def _head(names: Sequence[str]) -> str:
    return "".join(f'<th scope="col">{escape(name)}</th>' for name in names)


def _table(head: str, rows: str, name: str) -> str:
    rows = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    label = f'class="scroll" role="region" aria-label="{name}" tabindex="0"'
    return f'<div {label}><table class="{name}">{rows}</table></div>'


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<h3>{title}</h3><ul>{items}</ul>" if lines else ""


def _work(stats: Stats) -> str:
    if not stats.ranks and not stats.seconds:
        return ""
    size = (
        f"<p>{stats.sequential_nodes:,} nodes in the sequential program, "
        f"{stats.rank_nodes:,} on {stats.ranks} ranks.</p>"
    )
    longest = max(stats.seconds.values(), default=0.0) or 1.0
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="number">{seconds:.3f}</td>'
        f'<td class="bar"><span style="width:{100 * seconds / longest:.1f}%"></span></td></tr>'
        for name, seconds in stats.seconds.items()
    )
    head = _head(("phase", "seconds", "share"))
    total = f"<p>{sum(stats.seconds.values()):.2f} seconds in all.</p>"
    laws = ", ".join(f"{name} {count:,}" for name, count in sorted(stats.laws.items(), key=lambda one: -one[1]))
    used = f"<details><summary>Laws that were used</summary><p>{escape(laws)}</p></details>" if laws else ""
    return f"<h3>Work</h3>{size}{_table(head, rows, 'times')}{total}{used}"
