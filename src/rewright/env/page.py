"""A trajectory as one HTML page, with nothing to load: rounds, choices, and what is known of each."""

from __future__ import annotations

from html import escape

from rewright.env.certificate import Certified, certify
from rewright.env.episode import Episode, Round
from rewright.env.evidence import Evidence, evidence_for
from rewright.env.picture import picture
from rewright.env.written import Written

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .6rem; vertical-align: top }
tr { border-bottom: 1px solid #ddd } pre { overflow-x: auto; background: #f6f6f6; padding: .6rem }
figure { overflow: auto; max-height: 40rem; border: 1px solid #ddd; margin: 1rem 0 }
.proved { color: #060 } .tested { color: #750 } .refuted { color: #a00 } .unknown { color: #666 }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } pre { background: #242424 }
  figure { background: #fff } .proved { color: #7c7 } .tested { color: #db6 } .refuted { color: #f88 } }
"""


def trajectory_page(episode: Episode) -> str:
    """The page of an episode."""
    start = max(episode.rounds[0].run.module.cost.seconds, 1e-12)
    title = f"{episode.original.name}: {sum(len(entry.chosen) for entry in episode.rounds)} rewrites"
    parts = [_head(title), f"<h1>{escape(title)}</h1>", _verdict(certify(episode))]
    share = f"{100 * episode.cost.seconds / start:.1f}% of the estimated cost at the start"
    parts.append(f"<p>{episode.current.instruction_count} instructions, {share}.</p>")
    for number, entry in enumerate(episode.rounds):
        parts.append(_round(number, entry))
    text = escape(episode.session.text(episode.current))
    parts.append(f"<h2>The module at the end</h2><pre>{text}</pre></body></html>")
    return "\n".join(parts)


def _head(title: str) -> str:
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    return (
        f'<!doctype html><html lang="en"><head>{meta}<title>{escape(title)}</title><style>{_STYLE}</style></head><body>'
    )


def _verdict(own: Certified) -> str:
    if own.proved:
        return f'<p class="proved">Proved ({own.grade}): the module at the end computes what the original computes.</p>'
    items = "".join(f"<li>{escape(line)}</li>" for line in own.open)
    return f'<p class="tested">Only tested:</p><ul class="tested">{items}</ul>'


def _round(number: int, entry: Round) -> str:
    graph = entry.run.graph
    rows: list[str] = []
    for place in range(len(graph)):
        test = entry.run.tests[place] if entry.run.tests else None
        known = evidence_for(graph, place, test)
        mark = "<strong>chosen</strong>" if place in entry.chosen else ""
        claim = escape(str(Written(graph, place)))
        rows.append(f"<tr><td>{place}</td><td>{mark}</td><td>{claim}{_sides(known)}</td><td>{_badge(known)}</td></tr>")
    head = "<tr><th>Number</th><th>Choice</th><th>Claim</th><th>Evidence</th></tr>"
    drawing = f"<figure>{picture(graph, entry.chosen)}</figure>"
    return f"<h2>Round {number}</h2>{drawing}<table>{head}{''.join(rows)}</table>"


def _badge(known: Evidence) -> str:
    return f'<span class="{known.status}">{escape(str(known))}</span>'


def _sides(known: Evidence) -> str:
    if not known.left:
        return ""
    both = f"<pre>{escape(known.left)}</pre><pre>{escape(known.right)}</pre>"
    return f"<details><summary>what was proved equal</summary>{both}</details>"
