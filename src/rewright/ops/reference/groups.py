"""Which axes of one shape are flattened to an axis of another."""

from __future__ import annotations

from rewright.ir.dims import Dim, Shape

Group = tuple[int, ...]


def merged_axes(source: Shape, target: Shape) -> tuple[Group, ...] | None:
    """For each target axis the consecutive source axes it flattens, or None where a source axis is split."""
    groups: list[Group] = []
    place = 0
    for size in target:
        start, total = place, 1
        grown: Dim = total
        while grown != size and place < len(source):
            grown = grown * source[place]
            place += 1
            if isinstance(grown, int) and isinstance(size, int) and grown > size:
                return None
        if grown != size:
            return None
        if size == 1 and place < len(source) and source[place] == 1 and place == start:
            place += 1
        groups.append(tuple(range(start, place)))
    if any(size != 1 for size in source[place:]):
        return None
    if groups and place < len(source):
        groups[-1] = (*groups[-1], *range(place, len(source)))
    return tuple(groups) if groups or not source else None
