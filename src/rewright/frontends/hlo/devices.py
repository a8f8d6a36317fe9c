"""Lists of devices in the short forms that HLO has for them: ramps, and axes of a mesh."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from rewright.frontends.hlo.wire import Fields, first, integer, integers, message, messages
from rewright.ir.errors import RewrightError

_MOST_DEVICES = 1 << 16
Groups = tuple[tuple[int, ...], ...]


def iota_groups(counts: Sequence[int], sizes: Sequence[int], order: Sequence[int]) -> Groups:
    """Replica groups in short form ``[groups,members]<=[sizes]T(order)``; raises RewrightError where sizes do not fit.

    The numbers 0, 1, .. in row-major order of ``sizes`` are transposed by ``order`` and cut into equal groups.
    """
    flat = iota_order(sizes, order)
    groups, members = (counts[0], counts[1]) if len(counts) == 2 else (1, counts[0] if counts else 0)
    if groups * members != len(flat):
        raise RewrightError(f"replica groups {list(counts)}<={list(sizes)} do not fit; print the module again")
    return _cut(flat, members)


def iota_order(sizes: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """The numbers 0, 1, .. in row-major order of ``sizes``, transposed by ``order``; raises RewrightError."""
    total = 1
    for size in sizes:
        total *= size
    if not 0 < total <= _MOST_DEVICES or sorted(order) != list(range(len(sizes))):
        raise RewrightError(f"devices <={list(sizes)}T{list(order)} are no list of devices; print the module again")
    strides = [0] * len(sizes)
    step = 1
    for axis in reversed(range(len(sizes))):
        strides[axis] = step
        step *= sizes[axis]
    flat = [0]
    for axis in order:
        flat = [base + strides[axis] * place for base in flat for place in range(sizes[axis])]
    return tuple(flat)


@dataclass(frozen=True)
class AxisPart:
    """A part of a mesh axis: of an axis cut into ``(before, size, rest)``, the middle; ``size`` 0 is all of it."""

    axis: int
    before: int = 1
    size: int = 0


@dataclass(frozen=True)
class DeviceMesh:
    """Sizes of the axes of a mesh, and its devices in row-major order."""

    sizes: tuple[int, ...]
    devices: tuple[int, ...]

    @staticmethod
    def of(sizes: Sequence[int], devices: Sequence[int] = ()) -> DeviceMesh:
        """A mesh whose devices are numbered in order where no others are given; raises RewrightError."""
        found = tuple(devices) or iota_order(sizes, range(len(sizes)))
        if prod(sizes) != len(found) or len(set(found)) != len(found):
            raise RewrightError(f"a mesh of sizes {list(sizes)} and {len(found)} devices; print the module again")
        return DeviceMesh(tuple(sizes), found)

    def spread(self, lists: Sequence[Sequence[AxisPart]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The mesh with its axes in another order: the parts of every list, and then all others as one axis.

        Gives the sizes, one for each list and one for the rest, and the devices in row-major order. Raises
        RewrightError for a part that does not fit or is named twice.
        """
        cuts = self._cuts([part for parts in lists for part in parts])
        pieces = [(axis, low, high) for axis, edges in enumerate(cuts) for low, high in pairwise(edges)]
        sizes = [high // low for _, low, high in pieces]
        chosen = [self._pieces(pieces, part) for parts in lists for part in parts]
        used = [place for places in chosen for place in places]
        if len(set(used)) != len(used):
            raise RewrightError("an axis of a mesh is named twice; print the module again")
        rest = [place for place in range(len(pieces)) if place not in used]
        flat = iota_order(sizes, [*used, *rest])
        counts = [prod(sizes[p] for part in parts for p in self._pieces(pieces, part)) for parts in lists]
        return (*counts, prod(sizes[p] for p in rest)), tuple(self.devices[place] for place in flat)

    def groups(self, parts: Sequence[AxisPart]) -> Groups:
        """Groups of the devices that differ only along some axes, in the order in which these are named."""
        (members, _), devices = self.spread([parts])
        others = len(devices) // members
        return tuple(devices[start::others] for start in range(others))

    def _cuts(self, parts: Sequence[AxisPart]) -> list[list[int]]:
        """Where every axis is cut, as products of the sizes from its outer end on."""
        found: list[set[int]] = [{1, size} for size in self.sizes]
        for part in parts:
            if not 0 <= part.axis < len(self.sizes):
                raise RewrightError(f"a mesh of {len(self.sizes)} axes has no axis {part.axis}; print the module again")
            if part.size:
                found[part.axis] |= {part.before, part.before * part.size}
        cuts = [sorted(edges) if size > 1 else [1, 1] for edges, size in zip(found, self.sizes, strict=True)]
        ends = [
            (size, low, high) for size, edges in zip(self.sizes, cuts, strict=True) for low, high in pairwise(edges)
        ]
        if any(low < 1 or high % low or high > size for size, low, high in ends):
            raise RewrightError("parts of a mesh axis do not divide it; print the module again")
        return cuts

    def _pieces(self, pieces: Sequence[tuple[int, int, int]], part: AxisPart) -> list[int]:
        """The pieces of an axis that make up a part of it, outermost first."""
        size = self.sizes[part.axis]
        low, high = (part.before, part.before * part.size) if part.size else (1, size)
        return [place for place, (axis, a, b) in enumerate(pieces) if axis == part.axis and low <= a and b <= high]


def mesh_of_message(fields: Fields) -> DeviceMesh:
    """A ``MeshProto``; raises RewrightError."""
    sizes = tuple(integer(axis, 2) for axis in messages(fields, 1))
    ramp = message(fields, 3)
    reshaped = integers(ramp, 1)
    devices = iota_order(reshaped, integers(ramp, 2) or range(len(reshaped))) if reshaped else integers(fields, 2)
    return DeviceMesh.of(sizes, devices)


def part_of_message(fields: Fields) -> AxisPart:
    """An ``AxisRefProto``."""
    if first(fields, 2) is None:
        return AxisPart(integer(fields, 1))
    part = message(fields, 2)
    return AxisPart(integer(fields, 1), integer(part, 1), integer(part, 2))


_MESH = re.compile(r"mesh\[(?P<axes>[^\]]*)\](?:\s*,\s*device_ids=\((?P<ids>[^{}]*)\))?\s*")
_AXIS = re.compile(r"'([^']*)'=([0-9]{1,6})")
_PART = re.compile(r"'([^']*)'(?::\(([0-9]{1,6})\)([0-9]{1,6}))?")
_RAMP = re.compile(r"\[(?P<sizes>[0-9,]+)\](?:T\((?P<order>[0-9,]+)\))?")


def mesh_groups(text: str) -> Groups:
    """Replica groups as axes of a mesh, ``mesh['x'=2,'y'=4] {'y'}``; raises RewrightError for anything else."""
    found = _MESH.match(text)
    rest = text[found.end() :].strip() if found else ""
    if found is None or not re.fullmatch(r"\{[^{}]*\}", rest):
        raise RewrightError(f"replica groups {text!r:.60} are in no form that is known; print the module again")
    axes = _AXIS.findall(found["axes"])
    sizes = [int(size) for _, size in axes]
    names = {name: place for place, (name, _) in enumerate(axes)}
    parts: list[AxisPart] = []
    for name, before, size in _PART.findall(rest):
        if name not in names:
            raise RewrightError(f"replica groups name an axis {name!r:.40} that the mesh does not have")
        parts.append(AxisPart(names[name], int(before or 1), int(size or 0)))
    return DeviceMesh.of(sizes, _device_numbers(found["ids"])).groups(parts)


def _device_numbers(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    ramp = _RAMP.fullmatch(text.strip())
    if ramp is not None:
        sizes = device_numbers(ramp["sizes"])
        return iota_order(sizes, device_numbers(ramp["order"]) if ramp["order"] else range(len(sizes)))
    return device_numbers(text.strip())


def device_numbers(text: str) -> tuple[int, ...]:
    """Numbers between commas; raises RewrightError for anything else."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not 0 < len(words) <= _MOST_DEVICES or not all(word.isdecimal() and len(word) <= 6 for word in words):
        raise RewrightError(f"{text!r:.40} is no list of devices; print the module again")
    return tuple(map(int, words))


def _cut(flat: tuple[int, ...], members: int) -> Groups:
    return tuple(flat[start : start + members] for start in range(0, len(flat), members))
