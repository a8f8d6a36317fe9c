"""Outputs of both programs element by element, and which elements differ by more than rounding explains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rewright.interp.placing import added_up, cut, global_indices
from rewright.ir.graph import Graph
from rewright.ir.holders import holders_of
from rewright.ir.placement import Mesh, Placement
from rewright.ops.base import Array

_CLOSE = 1e-5
"""Numbers closer than this, relative to their own size, are one number that was rounded."""
_TIMES = 8
"""A difference this many times larger than what coarse rounding changes is no rounding error."""
_RUNS = 4


@dataclass(frozen=True)
class Part:
    """What one rank holds of an output, beside the same part of what the sequential program computes."""

    output: str
    rank: int
    placement: Placement
    expected: Array
    held: Array

    @property
    def is_float(self) -> bool:
        """Whether rounding may explain a difference."""
        return self.expected.dtype.kind == "f"

    @property
    def gap(self) -> Array:
        """How far each element is off."""
        with np.errstate(all="ignore"):
            return np.abs(self.expected.astype(np.float64) - self.held.astype(np.float64))

    def place(self, where: tuple[int, ...]) -> tuple[int, ...]:
        """The index in the whole output of an element of the part."""
        runs = self.placement.runs[self.rank]
        return tuple(int(global_indices(own)[i]) for own, i in zip(runs, where, strict=True))


Outputs = tuple[Mapping[str, Array], Sequence[Mapping[str, Array]]]
"""What the sequential program computes, and what every rank does."""


def parts(outputs: Outputs, placements: Mapping[str, Placement], graphs: Sequence[Graph], mesh: Mesh) -> list[Part]:
    """All parts of the outputs that have a placement, as far as shapes fit."""
    sequential, ranks = outputs
    found: list[Part] = []
    for name, everywhere in placements.items():
        owners = holders_of(name, graphs, mesh)
        placement = None if owners is None else owners.restrict(everywhere)
        if owners is None or placement is None or name not in sequential:
            continue
        held = [ranks[rank][name] for rank in owners.ranks]
        for rank in range(owners.mesh.size):
            mine = cut(sequential[name], placement.runs[rank])
            group = owners.mesh.group(rank, placement.partial)
            if all(held[member].shape == mine.shape for member in group) and mine.size:
                found.append(Part(name, rank, placement, mine, added_up(held, placement, owners.mesh, rank)))
    return found


def differing(part: Part) -> Array:
    """Which elements differ by more than what one rounding explains; undefined ones are all the same."""
    if not part.is_float or part.held.dtype.kind != "f":
        return np.asarray(part.expected != part.held)
    left, right = part.expected, part.held
    with np.errstate(all="ignore"):
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        same |= np.abs(left - right) <= _CLOSE * np.minimum(np.abs(left), np.abs(right))
    return ~same


def unexplained_elements(found: Sequence[Part], again: Callable[[int], list[Part]]) -> list[Array]:
    """For every part the elements that differ by more than coarse rounding of both programs changes them.

    Args:
        found: the parts as they were computed.
        again: the same parts with coarse rounding, by a seed.
    """
    masks = [differing(part) for part in found]
    reach = [np.zeros(part.expected.shape) for part in found]
    for seed in range(1, _RUNS + 1):
        if not any(mask.any() for mask in masks):
            break
        for number, (part, other) in enumerate(zip(found, again(seed), strict=True)):
            reach[number] = np.maximum(reach[number], _move(part, other))
            # What is not a number differs from every number, unless rounding makes numbers of it.
            with np.errstate(all="ignore"):
                masks[number] &= ~(part.gap <= _TIMES * reach[number]) & (reach[number] < np.inf)
    return masks


def _move(part: Part, other: Part) -> Array:
    """How far both elements are from where they were; infinitely far where there is a number on one side alone."""
    with np.errstate(all="ignore"):
        moved = [
            np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a.astype(np.float64) - b.astype(np.float64)))
            for a, b in ((part.expected, other.expected), (part.held, other.held))
        ]
    far = np.maximum(*(np.where(np.isnan(m), np.inf, m) for m in moved))
    return far if part.is_float else np.where(far > 0, np.inf, 0.0)


def clearly_differing(part: Part, relative: float) -> Array:
    """Which elements differ by more than a part of their size, and of the usual size of the elements beside them."""
    if not part.is_float:
        return differing(part)
    with np.errstate(all="ignore"):
        gap = np.abs(part.expected - part.held)
        usual = np.sqrt(np.mean(np.square(part.expected[np.isfinite(part.expected)]))) if part.expected.size else 0.0
        return gap > relative * np.maximum(np.maximum(np.abs(part.expected), np.abs(part.held)), usual)


def worst(part: Part, mask: Array) -> tuple[int, ...]:
    """The element of those in a mask that differs most; what is not a number comes first."""
    gap = np.where(mask, np.where(np.isnan(part.gap), np.inf, part.gap), -1.0)
    return tuple(int(k) for k in np.unravel_index(int(np.argmax(gap)), gap.shape))
