"""One graph as SVG elements: boxes with what a node is, where it comes from and how large it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from rewright import ops
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import call_operator
from rewright.report.drawing.layers import Layout, lay_out
from rewright.report.drawing.neighbourhood import Neighbourhood

ROW, BOX, GAP = 78.0, 46.0, 26.0
_LETTER, _PADDING, _NARROW, _WIDE = 7.2, 22.0, 96.0, 250.0


@dataclass(frozen=True)
class Panel:
    """A graph that is laid out; ``top`` is the layer of its focus."""

    graph: Graph
    shown: Neighbourhood
    layout: Layout
    widths: Mapping[int, float]
    names: Mapping[int, str]

    @property
    def top(self) -> int:
        """How many layers are above the focus."""
        return self.layout.layer[self.shown.focus]

    @property
    def below(self) -> int:
        """How many layers are under the focus."""
        return max(self.layout.layer.values()) - self.top


def panel(graph: Graph, shown: Neighbourhood) -> Panel:
    """Lay out a neighbourhood."""
    names = {position: name for name, position in graph.outputs.items()}
    lines = {p: _lines(graph.nodes[p], names.get(p)) for p in shown.nodes}
    widths = {p: min(max(_NARROW, max(map(len, text)) * _LETTER + _PADDING), _WIDE) for p, text in lines.items()}
    return Panel(graph, shown, lay_out(shown.nodes, shown.edges, widths, GAP), widths, names)


def _lines(node: Node, output: str | None) -> list[str]:
    if isinstance(node.op, ops.Input):
        title = node.op.label
    elif (value := ops.splat(node.op)) is not None:
        title = f"constant {value:g}"
    else:
        title = call_operator(node.op)
    if output is not None:
        title = f"{title} = {output}"
    place = f"{node.span.file.rsplit('/', 1)[-1]}:{node.span.line}" if node.span.file else ""
    return [title, " · ".join(part for part in (str(node.type), place) if part)]


def elements(panel: Panel, left: float, rows_above: int, side: str, pairs: Mapping[int, int]) -> list[str]:
    """SVG of a panel whose focus is in a given row.

    Args:
        left: where the panel begins.
        rows_above: rows above the focus in the whole picture.
        side: a class and the start of identifiers: ``"sequential"`` or ``"distributed"``.
        pairs: by position the number of the pair that a node belongs to.
    """
    shift = rows_above - panel.top
    found = [_edge(panel, edge, left, shift) for edge in panel.shown.edges]
    found += [_box(panel, position, left, shift, side, pairs.get(position)) for position in panel.shown.nodes]
    return found


def _y(layer: float, shift: int) -> float:
    return (layer + shift) * ROW


def _edge(panel: Panel, edge: tuple[int, int], left: float, shift: int) -> str:
    """A curve from the bottom of what is read to the top of its reader, through the bends."""
    points = [(left + x, _y(level, shift)) for x, level in panel.layout.routes[edge]]
    (x, y), last = points[0], len(points) - 1
    path = [f"M{x:.1f} {y + BOX:.1f}"]
    y += BOX
    for number, (next_x, top) in enumerate(points[1:], start=1):
        middle = (y + top) / 2
        path.append(f"C{x:.1f} {middle:.1f} {next_x:.1f} {middle:.1f} {next_x:.1f} {top:.1f}")
        x, y = next_x, top
        if number < last:
            y = top + BOX
            path.append(f"L{x:.1f} {y:.1f}")
    return f'<path class="edge" d="{"".join(path)}" marker-end="url(#arrow)"/>'


def _box(panel: Panel, position: int, left: float, shift: int, side: str, pair: int | None) -> str:
    node, width = panel.graph.nodes[position], panel.widths[position]
    x, y = left + panel.layout.x[position] - width / 2, _y(panel.layout.layer[position], shift)
    kind = "input" if isinstance(node.op, ops.Input) else "collective" if isinstance(node.op, ops.Collective) else "op"
    focus = " focus" if position == panel.shown.focus else ""
    title, place = (_shorten(line, width) for line in _lines(node, panel.names.get(position)))
    linked = "" if pair is None else f' data-pair="{pair}"'
    details = [f"%{position} {node.op.name}", str(node.type), str(node.span), node.span.module_path]
    hint = escape("\n".join(line for line in details if line))
    more = [
        f'<path class="more" d="M{x + width / 2 - 8:.1f} {at:.1f}h16"/>'
        for at, hidden in ((y - 5, panel.shown.more_before), (y + BOX + 5, panel.shown.more_after))
        if position in hidden
    ]
    return (
        f'<g class="node {kind} {side}{focus}"{linked}><title>{hint}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{BOX:.0f}" rx="8"/>'
        f'<text class="what" x="{x + width / 2:.1f}" y="{y + 19:.1f}">{escape(title)}</text>'
        f'<text class="where" x="{x + width / 2:.1f}" y="{y + 36:.1f}">{escape(place)}</text>{"".join(more)}</g>'
    )


def _shorten(text: str, width: float) -> str:
    fits = int((width - _PADDING) / _LETTER) + 2
    return text if len(text) <= fits else f"{text[: fits // 2 - 1]}…{text[-(fits // 2) :]}"
