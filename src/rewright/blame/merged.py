"""Shards of an axis that a program merged from two: a rank has a part of the inner one in every place of the outer.

Attention flattens sequences and heads into one axis, and ranks hold some heads of each sequence. DTensor's
``_StridedShard`` is this over one mesh axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from rewright.ir.placement import AxisRuns, Mesh, Placement

_KINDS = ("Replicate()", "outer", "inner")


def merged_placements(shape: Sequence[int], locals_: Sequence[tuple[int, ...]], mesh: Mesh) -> Iterator[Placement]:
    """The placements of a tensor in which one axis is cut so, for ranks that all hold the same local shape."""
    own = locals_[0]
    if any(local != own for local in locals_) or len(own) != len(shape):
        return
    cut = [axis for axis, (size, part) in enumerate(zip(shape, own, strict=True)) if size != part]
    if len(cut) != 1 or not own[cut[0]] or shape[cut[0]] % own[cut[0]]:
        return
    (axis,) = cut
    size, parts = shape[axis], shape[axis] // own[axis]
    for kinds in itertools.product(_KINDS, repeat=len(mesh.axes)):
        over = [_sizes(mesh, kinds, kind) for kind in ("outer", "inner")]
        if over[1] == 1 or over[0] * over[1] != parts:
            continue
        for outer in range(max(2, over[0]), size):
            if size % outer == 0 and outer % over[0] == 0 and (size // outer) % over[1] == 0:
                yield _placement(shape, axis, outer, mesh, kinds)


def _sizes(mesh: Mesh, kinds: Sequence[str], kind: str) -> int:
    """Over how many ranks one part of the axis is cut."""
    return math.prod(size for (_, size), own in zip(mesh.axes, kinds, strict=True) if own == kind)


def _placement(shape: Sequence[int], axis: int, outer: int, mesh: Mesh, kinds: Sequence[str]) -> Placement:
    inner = shape[axis] // outer
    printed = {"Replicate()": "Replicate()", "outer": f"Shard({axis})", "inner": f"StridedShard({axis}, {outer})"}
    found: list[tuple[AxisRuns, ...]] = []
    for rank in range(mesh.size):
        first, many = _stretch(mesh, rank, kinds, "outer", outer)
        start, length = _stretch(mesh, rank, kinds, "inner", inner)
        runs = tuple(((first + block) * inner + start, length) for block in range(many))
        found.append(tuple(runs if k == axis else ((0, n),) if n else () for k, n in enumerate(shape)))
    return Placement(tuple(found), tuple(printed[kind] for kind in kinds))


def _stretch(mesh: Mesh, rank: int, kinds: Sequence[str], kind: str, size: int) -> tuple[int, int]:
    """Start and length of what a rank has of one part, which mesh axes of a kind cut one after the other."""
    start = 0
    for (_, count), own, place in zip(mesh.axes, kinds, mesh.coordinates(rank), strict=True):
        if own == kind:
            size //= count
            start += place * size
    return start, size
