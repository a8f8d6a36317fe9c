"""HLO shardings: which part of a global tensor every device holds.

A sharding assigns devices to the tiles of a grid over the tensor (``OpSharding`` in xla_data.proto). Trailing axes of
the grid are no axes of the tensor: along them devices hold the same tile (replicated), or values of which the module
says nothing (manual), or addends (unreduced).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from rewright.frontends.hlo.devices import AxisPart, device_numbers, iota_order, mesh_of_message, part_of_message
from rewright.frontends.hlo.wire import (
    BYTES,
    VARINT,
    Field,
    Fields,
    first,
    integer,
    integers,
    message,
    messages,
    pack_integers,
    write_fields,
)
from rewright.ir.dims import Shape
from rewright.ir.errors import RewrightError
from rewright.ir.placement import AxisRuns, Mesh, Placement, chunk, print_placement

_DEEPEST = 8
"""Tuples in tuples."""
_KINDS = ("replicated", "maximal", "tuple", "tiled", "manual", "unknown", "unreduced")
"""By number of ``OpSharding.Type``."""


@dataclass(frozen=True)
class Sharding:
    """``grid`` are the sizes of the tile assignment, ``devices`` its entries in row-major order.

    ``trailing`` says of the last axes of the grid what devices along them hold: ``replicated``, ``manual`` or
    ``unreduced``. A tuple has ``parts``.
    """

    kind: str
    grid: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()
    trailing: tuple[str, ...] = ()
    parts: tuple[Sharding, ...] = field(default=())

    def leaves(self, count: int) -> list[Sharding]:
        """The shardings of the leaves of a tuple, or of ``count`` arrays that are sharded alike."""
        if self.kind != "tuple":
            return [self] * count
        return [leaf for part in self.parts for leaf in part.leaves(1)]

    @property
    def tiles(self) -> tuple[int, ...]:
        """Number of tiles along every axis of the tensor; empty where it is not tiled."""
        return self.grid[: len(self.grid) - len(self.trailing)] if self.kind == "tiled" else ()

    def whole(self, local: Shape) -> Shape:
        """Shape of the global tensor whose tiles have a shape."""
        tiles = self.tiles
        return tuple(size * count for size, count in zip(local, tiles, strict=True)) if tiles else local


def placement(sharding: Sharding, shape: Shape, mesh: Mesh) -> Placement | None:
    """How the ranks of a mesh hold a tensor of a global shape; None where the sharding does not say.

    Device ``d`` of the sharding is rank ``d``. Raises RewrightError where sharding, shape and mesh do not fit.
    """
    names = tuple(name for name, _ in mesh.axes)
    if sharding.kind in ("replicated", "unreduced"):
        whole: tuple[AxisRuns, ...] = tuple(((0, size),) if size != 0 else () for size in shape)
        partial = names if sharding.kind == "unreduced" else ()
        printed = print_placement("partial", "sum") if partial else "Replicate()"
        return Placement((whole,) * mesh.size, (printed,) * len(names), partial)
    if sharding.kind != "tiled" or "manual" in sharding.trailing:
        return None
    places = _places(sharding, mesh.size)
    if len(sharding.tiles) != len(shape):
        raise RewrightError(f"a sharding of {len(sharding.tiles)} axes on a tensor with {len(shape)}; print it again")
    runs = tuple(_runs(shape, sharding.tiles, places[rank]) for rank in range(mesh.size))
    printed = tuple(_print(mesh, axis, places, sharding) for axis in range(len(names)))
    partial = tuple(name for name, text in zip(names, printed, strict=True) if text.startswith("Partial"))
    return Placement(runs, printed, partial)


def _places(sharding: Sharding, size: int) -> list[tuple[int, ...]]:
    """By device, its place in the grid."""
    if sorted(sharding.devices) != list(range(size)) or prod(sharding.grid) != size:
        raise RewrightError(
            f"a sharding over {len(sharding.devices)} devices on a mesh of {size}; it has to name every device once"
        )
    found: list[tuple[int, ...]] = [()] * size
    for position, device in enumerate(sharding.devices):
        place: list[int] = []
        for extent in reversed(sharding.grid):
            place.append(position % extent)
            position //= extent
        found[device] = tuple(reversed(place))
    return found


def _runs(shape: Shape, tiles: Sequence[int], place: Sequence[int]) -> tuple[AxisRuns, ...]:
    """The tile at a place: of ``ceil(size / tiles)`` elements, less at the end, as ``torch.chunk`` cuts too."""
    own = [chunk((0, size), count, at) for size, count, at in zip(shape, tiles, place, strict=False)]
    return tuple((run,) if run[1] != 0 else () for run in own)


def _print(mesh: Mesh, axis: int, places: Sequence[tuple[int, ...]], sharding: Sharding) -> str:
    """What changes along one axis of the mesh, in DTensor notation, for the reader: the runs say what is meant."""
    name = mesh.axes[axis][0]
    group = mesh.group(0, (name,))
    rank = len(sharding.tiles)
    for dimension in range(rank):
        if len({places[device][dimension] for device in group}) > 1:
            return print_placement("shard", dimension)
    for kind, dimension in zip(sharding.trailing, range(rank, len(sharding.grid)), strict=True):
        if kind == "unreduced" and len({places[device][dimension] for device in group}) > 1:
            return print_placement("partial", "sum")
    return "Replicate()"


def factors(shardings: Sequence[Sharding], count: int) -> tuple[int, ...]:
    """Sizes of the coarsest mesh of ``count`` devices along whose axes all shardings cut; one axis where there is none.

    In a row-major mesh the devices along an axis are a fixed distance apart, so every axis of a grid whose devices are
    so says where axes of the mesh begin and end.
    """
    cuts = {1, count}
    for sharding in shardings:
        step = len(sharding.devices)
        for size in sharding.grid:
            step //= size
            if size > 1:
                apart = sharding.devices[step] - sharding.devices[0]
                cuts |= {abs(apart), abs(apart) * size}
    ends = sorted(cuts)
    if any(low < 1 or high % low for low, high in pairwise(ends)) or ends[-1] != count:
        return (count,)
    return tuple(high // low for low, high in pairwise(ends))[::-1]


def _tile(grid: Sequence[int], devices: Sequence[int], trailing: Sequence[str]) -> Sharding:
    if not grid or prod(grid) != len(devices) or len(trailing) > len(grid):
        raise RewrightError(f"a sharding with a grid of {list(grid)} and {len(devices)} devices; print it again")
    return Sharding("tiled", tuple(grid), tuple(devices), tuple(trailing))


def of_message(fields: Fields, depth: int = 0) -> Sharding:
    """An ``OpSharding``; raises RewrightError for a malformed one."""
    if first(fields, 14) is not None:
        return _name(message(fields, 14))
    kind = _kind(integer(fields, 1))
    if kind == "tuple":
        if depth > _DEEPEST:
            raise RewrightError("a sharding is nested too deeply; write the module again")
        return Sharding(kind, parts=tuple(of_message(part, depth + 1) for part in messages(fields, 5)))
    if kind != "tiled":
        return Sharding(kind)
    sizes = integers(fields, 9)
    devices = integers(fields, 4)
    if sizes:
        devices = iota_order(sizes, integers(fields, 10) or tuple(range(len(sizes))))
    trailing = tuple(map(_kind, integers(fields, 8)))
    if not trailing and integer(fields, 6):
        trailing = ("replicated",)
    return _tile(integers(fields, 3), devices, trailing)


def to_message(sharding: Sharding) -> bytes:
    """A serialised ``OpSharding``."""
    out: list[Field] = [(1, VARINT, _KINDS.index(sharding.kind))]
    out += [*pack_integers(3, sharding.grid), *pack_integers(4, sharding.devices)]
    out += [(5, BYTES, to_message(part)) for part in sharding.parts]
    known = [kind if kind in _KINDS else "unknown" for kind in sharding.trailing]
    return write_fields([*out, *pack_integers(8, [_KINDS.index(kind) for kind in known])])


def _kind(number: int) -> str:
    return _KINDS[number] if 0 <= number < len(_KINDS) else "unknown"


def _name(fields: Fields) -> Sharding:
    """A ``NamedShardingProto``: for every axis of the tensor the axes of a mesh that split it."""
    mesh = mesh_of_message(message(fields, 2))
    split = [[part_of_message(axis) for axis in messages(entry, 1)] for entry in messages(fields, 3)]
    unreduced, manual = ([part_of_message(axis) for axis in messages(fields, number)] for number in (5, 7))
    kinds = [(kind, parts) for kind, parts in (("unreduced", unreduced), ("manual", manual)) if parts]
    lists: list[list[AxisPart]] = [*split, *(parts for _, parts in kinds)]
    sizes, devices = mesh.spread(lists)
    return _tile(sizes, devices, [*(kind for kind, _ in kinds), "replicated"])


_DEVICES = re.compile(r"\{devices=\[(?P<grid>[0-9,]+)\](?P<devices>[^\s}]+)(?P<rest>.*)\}", re.DOTALL)
_SHORT = re.compile(r"<=\[(?P<sizes>[0-9,]+)\](?:T\((?P<order>[0-9,]+)\))?")


def of_text(text: str, split: Callable[[str], list[str]]) -> Sharding:
    """A sharding as HLO text has it, such as ``{devices=[2,1,2]<=[4] last_tile_dim_replicate}``.

    ``split`` cuts at the commas outside of brackets. Raises RewrightError for anything else.
    """
    text = re.sub(r"metadata=\{[^}]*\}", "", text.strip()).strip()
    if text.startswith("{{") or text == "{}":
        return Sharding("tuple", parts=tuple(of_text(part, split) for part in split(text[1:-1])))
    found = _DEVICES.fullmatch(text)
    if found is None:
        word = text.strip("{} ").split()
        return Sharding(word[0] if word and word[0] in _KINDS else "unknown")
    grid = device_numbers(found["grid"])
    short = _SHORT.fullmatch(found["devices"])
    if short is not None:
        sizes = device_numbers(short["sizes"])
        devices = iota_order(sizes, device_numbers(short["order"]) if short["order"] else range(len(sizes)))
    else:
        devices = device_numbers(found["devices"])
    return _tile(grid, devices, _trailing(found["rest"]))


def _trailing(text: str) -> tuple[str, ...]:
    named = re.search(r"last_tile_dims=\{([^}]*)\}", text)
    if named is not None:
        return tuple(word.strip() for word in named[1].split(",") if word.strip())
    return ("replicated",) if "last_tile_dim_replicate" in text else ()
