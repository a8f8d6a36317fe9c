"""A layered drawing of a small directed graph, after Sugiyama, Tagawa and Toda (1981).

Nodes get a layer by their longest way to a sink; edges over several layers get a bend in each; the order within a
layer comes from sweeps that put every node near the middle of its neighbours; coordinates are then relaxed under the
order that was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_SWEEPS = 12
_RELAXATIONS = 24


@dataclass(frozen=True)
class Layout:
    """Middles of nodes, and for every edge the points that it goes through, in units of layers downwards."""

    x: Mapping[int, float]
    layer: Mapping[int, int]
    routes: Mapping[tuple[int, int], tuple[tuple[float, int], ...]]
    width: float


@dataclass
class _Drawing:
    """Nodes and bends by layer; bends have negative numbers."""

    rows: list[list[int]]
    above: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    below: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    bends: dict[tuple[int, int], list[int]] = field(default_factory=dict[tuple[int, int], list[int]])


def lay_out(nodes: Sequence[int], edges: Sequence[tuple[int, int]], widths: Mapping[int, float], gap: float) -> Layout:
    """The drawing of a graph without cycles.

    Args:
        nodes: numbers that are not negative, in an order in which edges go forwards.
        edges: from what is read to its reader.
        widths: of every node.
        gap: between neighbours in a layer.
    """
    layer = _layers(nodes, edges)
    drawing = _with_bends(nodes, edges, layer)
    _order(drawing)
    x = _coordinates(drawing, widths, gap)
    left = min((x[n] - widths.get(n, 0) / 2 for n in x), default=0.0)
    x = {n: value - left for n, value in x.items()}
    level = {n: k for k, row in enumerate(drawing.rows) for n in row}
    routes = {(a, b): tuple((x[n], level[n]) for n in (a, *drawing.bends.get((a, b), []), b)) for a, b in edges}
    width = max((x[n] + widths.get(n, 0) / 2 for n in x), default=0.0)
    return Layout({n: x[n] for n in nodes}, layer, routes, width)


def _layers(nodes: Sequence[int], edges: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The longest way to every node; sources then move down to just above their first reader."""
    layer = dict.fromkeys(nodes, 0)
    by_reader: dict[int, list[int]] = {n: [] for n in nodes}
    by_read: dict[int, list[int]] = {n: [] for n in nodes}
    for a, b in edges:
        by_reader[b].append(a)
        by_read[a].append(b)
    for n in nodes:
        layer[n] = max((layer[a] + 1 for a in by_reader[n]), default=0)
    for n in reversed(nodes):
        if by_read[n]:
            layer[n] = min(layer[b] for b in by_read[n]) - 1
    return layer


def _with_bends(nodes: Sequence[int], edges: Sequence[tuple[int, int]], layer: Mapping[int, int]) -> _Drawing:
    drawing = _Drawing([[] for _ in range(max(layer.values(), default=-1) + 1)])
    for n in nodes:
        drawing.rows[layer[n]].append(n)
        drawing.above[n], drawing.below[n] = [], []
    number = -1
    for a, b in edges:
        chain = [a]
        for level in range(layer[a] + 1, layer[b]):
            drawing.rows[level].append(number)
            drawing.above[number], drawing.below[number] = [], []
            drawing.bends.setdefault((a, b), []).append(number)
            chain.append(number)
            number -= 1
        chain.append(b)
        for upper, lower in zip(chain, chain[1:], strict=False):
            drawing.below[upper].append(lower)
            drawing.above[lower].append(upper)
    return drawing


def _order(drawing: _Drawing) -> None:
    """Fewer crossings: every layer by the middle of its neighbours, downwards and upwards in turn."""
    best, rows = _crossings(drawing), [list(row) for row in drawing.rows]
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        levels = range(1, len(drawing.rows)) if down else range(len(drawing.rows) - 2, -1, -1)
        for level in levels:
            beside = drawing.rows[level - 1 if down else level + 1]
            place = {n: k for k, n in enumerate(beside)}
            neighbours = drawing.above if down else drawing.below
            own = {n: k for k, n in enumerate(drawing.rows[level])}
            drawing.rows[level].sort(key=lambda n: (_middle([place[m] for m in neighbours[n]], own[n]), own[n]))
        crossings = _crossings(drawing)
        if crossings < best:
            best, rows = crossings, [list(row) for row in drawing.rows]
    drawing.rows = rows


def _middle(places: Sequence[int], otherwise: float) -> float:
    return sum(places) / len(places) if places else otherwise


def _crossings(drawing: _Drawing) -> int:
    total = 0
    for upper, lower in zip(drawing.rows, drawing.rows[1:], strict=False):
        place = {n: k for k, n in enumerate(lower)}
        ends = [place[m] for n in upper for m in sorted(drawing.below[n], key=place.__getitem__)]
        total += sum(a > b for k, a in enumerate(ends) for b in ends[k + 1 :])
    return total


def _coordinates(drawing: _Drawing, widths: Mapping[int, float], gap: float) -> dict[int, float]:
    """Every node towards the middle of its neighbours, as far as its neighbours in the layer let it."""
    x: dict[int, float] = {}
    for row in drawing.rows:
        at = 0.0
        for n in row:
            x[n] = at + widths.get(n, 0) / 2
            at += widths.get(n, 0) + gap
    for turn in range(_RELAXATIONS):
        rows = drawing.rows if turn % 2 == 0 else drawing.rows[::-1]
        for row in rows:
            wanted: list[float] = []
            for n in row:
                beside = [*drawing.above[n], *drawing.below[n]]
                wanted.append(sum(x[m] for m in beside) / len(beside) if beside else x[n])
            x.update(zip(row, _apart(row, wanted, widths, gap), strict=True))
    return x


def _apart(row: Sequence[int], wanted: Sequence[float], widths: Mapping[int, float], gap: float) -> list[float]:
    """The places nearest to those that are wanted which keep order and distance (pool adjacent violators)."""
    offsets = [0.0]
    for a, b in zip(row, row[1:], strict=False):
        offsets.append(offsets[-1] + (widths.get(a, 0) + widths.get(b, 0)) / 2 + gap)
    pools: list[tuple[float, int]] = []
    for target in (want - offset for want, offset in zip(wanted, offsets, strict=True)):
        total, count = target, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    found = [total / count for total, count in pools for _ in range(count)]
    return [value + offset for value, offset in zip(found, offsets, strict=True)]
