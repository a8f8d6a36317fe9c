"""The alternative graph as a picture: SVG drawn in layers, with no other program."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from html import escape

from rewright.env.alternatives import ROOT, AlternativeGraph
from rewright.frontends.hlo.module import Computation, Instruction

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 170, 34, 14, 34


def picture(graph: AlternativeGraph, chosen: Collection[int] = ()) -> str:
    """SVG of the entry: instructions, what alternatives would bring in (dashed), and chosen paths (thick)."""
    main = graph.program.main
    pool = graph.pool.get(main.name, {})
    everything: dict[str, Instruction] = {**main.instructions, **pool}
    places, size = _layout(main, everything)
    lines: list[str] = []
    for name, instruction in everything.items():
        for operand in instruction.operands:
            lines.append(_edge(places, operand, name, "#888", 1, name in pool))
    for number, alternative in enumerate(graph.alternatives):
        if alternative.computation != main.name:
            continue
        taken = number in chosen
        for use in alternative.uses:
            user = main.root if use.user == ROOT else use.user
            colour, width = ("#c33", 3) if taken else ("#39c", 1)
            lines.append(_edge(places, alternative.replacement, user, colour, width, not taken))
    boxes = [_box(places[name], i, name in pool) for name, i in everything.items()]
    size_of = f'width="{size[0]}" height="{size[1]}"'
    font = 'font-family="monospace" font-size="10"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size_of} {font}>'
    return "\n".join([head, *lines, *boxes, "</svg>"])


def _layout(
    main: Computation, everything: Mapping[str, Instruction]
) -> tuple[dict[str, tuple[int, int]], tuple[int, int]]:
    """Instructions in layers by how far they are from the inputs."""
    depth: dict[str, int] = {}
    for start in everything:
        stack = [start]
        while stack:
            name = stack[-1]
            waiting = [o for o in everything[name].operands if o not in depth]
            if name in depth or not waiting:
                depth.setdefault(name, 1 + max((depth[o] for o in everything[name].operands), default=-1))
                stack.pop()
            else:
                stack.extend(waiting)
    layers: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for name, own in sorted(depth.items(), key=lambda entry: entry[1]):
        column = layers[own] = layers.get(own, -1) + 1
        places[name] = (10 + column * (_WIDTH + _GAP_X), 10 + own * (_HEIGHT + _GAP_Y))
    width = 20 + (max(layers.values(), default=0) + 1) * (_WIDTH + _GAP_X)
    return places, (width, 20 + (max(layers, default=0) + 1) * (_HEIGHT + _GAP_Y))


def _edge(
    places: Mapping[str, tuple[int, int]], source: str, target: str, colour: str, width: int, dashed: bool
) -> str:
    x1, y1 = places[source]
    x2, y2 = places[target]
    dash = ' stroke-dasharray="4"' if dashed else ""
    ends = f'x1="{x1 + _WIDTH // 2}" y1="{y1 + _HEIGHT}" x2="{x2 + _WIDTH // 2}" y2="{y2}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"{dash}/>'


def _box(place: tuple[int, int], instruction: Instruction, new: bool) -> str:
    x, y = place
    dash = ' stroke-dasharray="4"' if new else ""
    fill = "#eef6ff" if new else "#fff"
    rectangle = f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" fill="{fill}" stroke="#444"{dash}/>'
    title = escape(f"{instruction.opcode} {instruction.shape}"[:28])
    name = escape(instruction.name[:28])
    return f'{rectangle}<text x="{x + 5}" y="{y + 14}">{name}</text><text x="{x + 5}" y="{y + 27}">{title}</text>'
