"""How the ranks of a mesh hold one global tensor, in DTensor's vocabulary.

A rank holds, along every axis of the global tensor, a list of runs ``(start, length)`` in local order: one run for
a contiguous shard, several for a strided one, none for an empty one. Where ranks hold addends instead of pieces the
placement is partial over some mesh axes, and the global tensor is the sum (or the maximum) over those axes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rewright.ir.dims import Dim, Shape, divide
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph

_PLACEMENT = re.compile(r"""(\w+)(?:\(\s*(?:dim\s*=\s*)?["']?([\w-]*)["']?\s*\))?""")
_INTEGER = re.compile(r"-?[0-9]+")
_SPLIT = {"shard": "Shard", "headtail": "HeadTail"}

Run = tuple[Dim, Dim]
"""Start and length of consecutive global indices."""
AxisRuns = tuple[Run, ...]


@dataclass(frozen=True)
class Mesh:
    """Named axes of ranks; ranks are numbered in row-major order of their coordinates."""

    axes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """Number of ranks."""
        total = 1
        for _, size in self.axes:
            total *= size
        return total

    def coordinates(self, rank: int) -> tuple[int, ...]:
        """Position of a rank along each mesh axis."""
        found: list[int] = []
        for _, size in reversed(self.axes):
            found.append(rank % size)
            rank //= size
        return tuple(reversed(found))

    def rank(self, coordinates: Sequence[int]) -> int:
        """The rank at a position along each mesh axis."""
        found = 0
        for (_, size), coordinate in zip(self.axes, coordinates, strict=True):
            found = found * size + coordinate
        return found

    def group(self, rank: int, names: Sequence[str]) -> tuple[int, ...]:
        """The ranks that differ from this one only along the named axes, in order."""
        own = zip(self.axes, self.coordinates(rank), strict=True)
        along = [range(size) if name in names else (place,) for (name, size), place in own]
        return tuple(self.rank(coordinates) for coordinates in product(*along))

    @staticmethod
    def of(axes: Mapping[str, int]) -> Mesh:
        """The mesh of a mapping from axis name to size."""
        return Mesh(tuple(axes.items()))


@dataclass(frozen=True)
class Placement:
    """One global tensor over all ranks: ``runs[rank][axis]``, and the mesh axes over which it is partial.

    ``printed`` has one DTensor placement per mesh axis: ``("Replicate()", "Shard(0)")``.
    """

    runs: tuple[tuple[AxisRuns, ...], ...]
    printed: tuple[str, ...]
    partial: tuple[str, ...] = ()
    reduction: str = "sum"

    def __str__(self) -> str:
        return self.printed[0] if len(self.printed) == 1 else "[" + ", ".join(self.printed) + "]"

    def local_shape(self, rank: int) -> Shape:
        """Shape of the tensor that a rank holds."""
        return tuple(sum((length for _, length in runs), start=0) for runs in self.runs[rank])


_DEADLOCK = "deadlock"
"""The key of that among what is said of the first rank's program."""


@dataclass(frozen=True)
class RankProgram:
    """The programs of all ranks with what is known about their inputs and outputs.

    ``inputs`` and ``outputs`` give, by the name of the sequential tensor, its placement; the rank graphs use the
    same names for their local tensors. A name that is absent has no known placement.
    """

    graphs: tuple[Graph, ...]
    mesh: Mesh
    inputs: dict[str, Placement]
    outputs: dict[str, Placement]
    notes: tuple[str, ...] = ()

    @property
    def deadlock(self) -> str:
        """Why the ranks never end, where the capture found that; values do not show it."""
        return self.graphs[0].metadata.get(_DEADLOCK, "") if self.graphs else ""

    def with_deadlock(self, why: str) -> RankProgram:
        """The same programs, known never to end."""
        first, *others = self.graphs
        return replace(self, graphs=(replace(first, metadata=first.metadata | {_DEADLOCK: why}), *others))


def place(shape: Shape, mesh: Mesh, placements: Sequence[str]) -> Placement:
    """The placement of a tensor from DTensor notation, one entry per mesh axis.

    Accepts ``Replicate()``, ``Shard(d)`` (chunks as ``torch.chunk`` makes them, uneven and empty ones included;
    an axis sharded twice is split by the earlier mesh axis first), ``HeadTail(d)`` (twice as many chunks as ranks,
    of which a rank has one counted from the head and one counted from the tail, as context parallelism balances
    causal attention) and ``Partial(sum)``. Raises RewrightError for anything else, for an axis that does not exist,
    and for the uneven split of a symbolic size. A lone ``Replicate()`` is one on every mesh axis.
    """
    if len(placements) == 1 and parse_placement(placements[0])[0] == "replicate":
        placements = ("Replicate()",) * len(mesh.axes)
    if len(placements) != len(mesh.axes):
        raise RewrightError(f"{len(placements)} placements for a mesh of {len(mesh.axes)} axes; give one each")
    parsed = [parse_placement(text) for text in placements]
    partial = tuple(name for (name, _), (kind, _) in zip(mesh.axes, parsed, strict=True) if kind == "partial")
    reductions = {str(value) for kind, value in parsed if kind == "partial"} or {"sum"}
    if len(reductions) > 1:
        raise RewrightError(f"placements {list(placements)} mix reductions; one tensor can be partial under one only")
    runs: list[tuple[AxisRuns, ...]] = []
    for rank in range(mesh.size):
        own: list[AxisRuns] = [((0, size),) for size in shape]
        for (_, parts), coordinate, (kind, value) in zip(mesh.axes, mesh.coordinates(rank), parsed, strict=True):
            if kind not in _SPLIT:
                continue
            axis = int(value)
            if not -len(shape) <= axis < len(shape):
                raise RewrightError(f"{_SPLIT[kind]}({axis}) of a tensor with {len(shape)} axes; name an axis it has")
            (run, *others) = own[axis]
            if others:
                raise RewrightError(f"axis {axis} is split again after HeadTail({axis}); split it before")
            places = [coordinate] if kind == "shard" else [coordinate, 2 * parts - 1 - coordinate]
            own[axis] = tuple(chunk(run, parts * len(places), place) for place in places)
        runs.append(tuple(_join(axis_runs) for axis_runs in own))
    return Placement(tuple(runs), tuple(print_placement(k, v) for k, v in parsed), partial, reductions.pop())


def _join(runs: AxisRuns) -> AxisRuns:
    """Runs without empty ones; two that touch are one."""
    found: list[Run] = []
    for start, length in runs:
        if length == 0:
            continue
        if found and found[-1][0] + found[-1][1] == start:
            found[-1] = found[-1][0], found[-1][1] + length
        else:
            found.append((start, length))
    return tuple(found)


def chunk(run: Run, parts: int, position: int) -> Run:
    """One of the chunks that ``torch.chunk`` would make of a run; raises RewrightError for a symbolic uneven one."""
    start, length = run
    even = divide(length, parts)
    if even is not None:
        return start + even * position, even
    if not isinstance(length, int):
        raise RewrightError(f"an axis of size {length} cannot be split evenly into {parts}; give it a number")
    step = -(-length // parts)
    low, high = min(step * position, length), min(step * (position + 1), length)
    return start + low, high - low


def parse_placement(text: str) -> tuple[str, int | str]:
    """``("replicate", 0)``, ``("shard", axis)``, ``("headtail", axis)`` or ``("partial", reduction)``.

    Raises RewrightError otherwise.
    """
    found = _PLACEMENT.fullmatch(text.strip())
    name, argument = (found[1], found[2] or "") if found else ("", "")
    if name in ("Replicate", "R") and not argument:
        return "replicate", 0
    if name in ("Shard", "S") and _INTEGER.fullmatch(argument):
        return "shard", int(argument)
    if name == "HeadTail" and _INTEGER.fullmatch(argument):
        return "headtail", int(argument)
    if name in ("Partial", "P") and argument in ("", "sum", "max", "min"):
        return "partial", argument or "sum"
    raise RewrightError(f"{text!r} is no placement; write Replicate(), Shard(0) or Partial(sum)")


def print_placement(kind: str, value: int | str) -> str:
    """DTensor notation of a parsed placement."""
    if kind == "partial":
        return f'Partial("{value}")'
    return "Replicate()" if kind == "replicate" else f"{_SPLIT[kind]}({value})"
