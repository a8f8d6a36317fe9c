"""Between which numbers the weights lie that short integers are made of, where their values are known.

Codes of a quantised weight fill their type or leave room for what is computed of them. That they do is known from the
values of a checkpoint alone: so a verdict that needs it says it, and a certificate states it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rewright.analysis.ends import Bound
from rewright.equiv.inputs.weights import WeightMap
from rewright.ir.graph import Graph
from rewright.ir.placement import RankProgram
from rewright.ops.base import Array

Ranges = Mapping[str, Bound]
_SHOWN = 3


def known_ranges(
    left: Graph, right: RankProgram, weights: WeightMap, values: Sequence[Mapping[str, Array]] | None
) -> Ranges:
    """The bounds of all inputs of both programs over the same inputs whose values are known, by name.

    ``values`` are those of the left program and of the right one. An input that both have is that of the left one,
    unless the map defines that one by tensors of the other program. Ranks that add up to a tensor hold any numbers.
    """
    mine, other = values or ({}, {})
    defined = {d.name for d in weights.of("left")}
    parted = {name for name, placement in right.inputs.items() if placement.partial} | set(weights.placements)
    found: dict[str, Bound] = {}
    for name in {*left.inputs, *right.graphs[0].inputs}:
        is_left = name in left.inputs and name not in defined
        value = (mine if is_left else other).get(name)
        if value is None or not value.size or (len(right.graphs) > 1 and (name in parted or not is_left)):
            continue
        low, high = float(np.min(value)), float(np.max(value))
        if np.isfinite([low, high]).all():
            found[name] = low, high
    return found


def describe(ranges: Ranges) -> tuple[str, ...]:
    """Bounds as assumptions, those of equal bounds in one."""
    groups: dict[Bound, list[str]] = {}
    for name in sorted(ranges):
        groups.setdefault(ranges[name], []).append(name)
    return tuple(_sentence(bound, names) for bound, names in groups.items())


def _sentence(bound: Bound, names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    hold = "holds" if len(names) == 1 else "hold"
    low, high = (f"{number:.17g}" for number in bound)
    return f"{', '.join(names[:_SHOWN])}{more} {hold} numbers from {low} to {high}, as the values that were given do"


def inputs_out_of_range(ranges: Ranges, known: Ranges) -> Iterator[str]:
    """Names of inputs whose known values are not within the bounds that are stated."""
    for name, (low, high) in ranges.items():
        if name in known and not low <= known[name][0] <= known[name][1] <= high:
            yield name
