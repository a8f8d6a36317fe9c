"""Both programs side by side around a failure, the two places in one row."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from rewright.ir.graph import Graph
from rewright.refine.verdict import Finding, Verdict
from rewright.report.drawing.neighbourhood import correspondence, neighbourhood_of
from rewright.report.drawing.panel import BOX, ROW, Panel, elements, panel

_MARGIN, _BETWEEN, _HEAD = 24.0, 90.0, 40.0


def draw_finding(verdict: Verdict, finding: Finding, steps: int = 3, alone: bool = True) -> str | None:
    """Both graphs around a finding, None where it is about no node or the verdict has no programs.

    Args:
        steps: how far to go back, in operators.
        alone: whether the picture is a file of its own; else it takes its colours from the page, and each program is a
            picture by itself.
    """
    if verdict.programs is None:
        return None
    sequential, program = verdict.programs
    where = finding.where
    if not 0 <= where.rank < len(program.graphs):
        return None
    own = program.graphs[where.rank]
    left = where.sequential if where.sequential is not None and where.sequential < len(sequential.nodes) else None
    right = where.distributed if where.distributed is not None and where.distributed < len(own.nodes) else None
    if left is None and right is None:
        return None
    title = f"both programs around {finding.distributed or finding.sequential}"
    return draw_pair(sequential, own, left, right, f"rank {where.rank}", title, steps, alone)


def draw_pair(
    sequential: Graph,
    distributed: Graph,
    left: int | None,
    right: int | None,
    name: str,
    title: str,
    steps: int = 3,
    alone: bool = True,
) -> str:
    """Two graphs around a place of each; a side whose place is None is left out.

    Args:
        left: position in the sequential program.
        right: position in the program of a rank.
        name: of the right side.
        title: of the picture, for those who cannot see it.
    """
    panels: list[tuple[str, str, Panel]] = []
    if left is not None:
        panels.append(("sequential", "sequential", panel(sequential, neighbourhood_of(sequential, left, steps))))
    if right is not None:
        panels.append(("distributed", name, panel(distributed, neighbourhood_of(distributed, right, steps))))
    paired = correspondence(sequential, distributed, left, right) if left is not None and right is not None else {}
    shown = [set(one.shown.nodes) for _, _, one in panels]
    both = [(a, b) for a, b in paired.items() if len(shown) == 2 and a in shown[0] and b in shown[1]]
    pairs = [{a: k for k, (a, _) in enumerate(both)}, {b: k for k, (_, b) in enumerate(both)}]
    return _picture(panels, pairs[-len(panels) :], title, alone)


def draw_graph(graph: Graph, focus: int, title: str, steps: int = 3, alone: bool = True) -> str:
    """One graph around a place."""
    own = panel(graph, neighbourhood_of(graph, focus, steps))
    return _picture([("sequential", graph.name, own)], [{}], title, alone)


def _picture(
    panels: list[tuple[str, str, Panel]], pairs: list[Mapping[int, int]] | list[dict[int, int]], title: str, alone: bool
) -> str:
    """Panels side by side in one picture, or in one each, so that a narrow page puts one below the other."""
    above = max(one.top for _, _, one in panels)
    rows = above + max(one.below for _, _, one in panels) + 1
    own = list(zip(panels, pairs, strict=True))
    if alone:
        style = f"<style>{_asset('drawing-alone.css')}{_asset('drawing.css')}</style>"
        return _svg(*_side_by_side(own, above), rows, title, style)
    return "".join(_svg(*_side_by_side([one], above), rows, f"{title}, {one[0][1]}", "") for one in own)


def _side_by_side(
    panels: Sequence[tuple[tuple[str, str, Panel], Mapping[int, int]]], above: int
) -> tuple[list[str], float]:
    """The elements of panels, their places in one row and joined by a line, and the width of all."""
    parts: list[str] = []
    left = _MARGIN
    focus: list[tuple[float, float]] = []
    for (side, name, one), numbers in panels:
        middle = left + one.layout.width / 2
        parts.append(f'<text class="side" x="{middle:.1f}" y="{-_HEAD / 2:.1f}">{escape(name)}</text>')
        x, half = left + one.layout.x[one.shown.focus], one.widths[one.shown.focus] / 2
        focus.append((x - half, x + half))
        parts.extend(elements(one, left, above, side, numbers))
        left += one.layout.width + _BETWEEN
    if len(focus) == 2:
        y = above * ROW + BOX / 2
        parts.insert(0, f'<path class="link" d="M{focus[0][1]:.1f} {y:.1f}H{focus[1][0]:.1f}"/>')
    return parts, left - _BETWEEN + _MARGIN


def _svg(parts: list[str], width: float, rows: int, title: str, style: str) -> str:
    height = rows * ROW - (ROW - BOX) + _HEAD + _MARGIN
    # Several pictures may be on one page, and each needs its own name for what it refers to.
    arrow = f"arrow-{hashlib.sha256(''.join(parts).encode()).hexdigest()[:12]}"
    parts = [part.replace("url(#arrow)", f"url(#{arrow})") for part in parts]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 {-_HEAD:.0f} {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">'
        f"<title>{escape(title)}</title>{style}"
        f'<defs><marker id="{arrow}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        f"{''.join(parts)}</svg>\n"
    )


def _asset(name: str) -> str:
    return files("rewright.report").joinpath("assets", name).read_text(encoding="utf-8")
