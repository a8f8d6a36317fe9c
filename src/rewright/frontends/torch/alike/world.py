"""The process as all ranks of a mesh at once: where a program asks which rank it is, it is told a number for each.

DTensor asks for coordinates in few places. Those that compute a number from them compute one for each rank; the one
that takes a rank's part of a split tensor takes a part of which nothing but the shape is known. This is the seam that
PyTorch's own local-tensor mode uses (``torch.distributed._local_tensor``), which has all ranks' values in one process.

Only for meshes all of whose process groups are of all ranks, or of one: members of others see groups of other ranks.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest import mock

import torch
import torch.distributed.distributed_c10d as c10d
from torch.distributed import _local_tensor, c10d_logger  # pyright: ignore[reportPrivateUsage]
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import _utils as dtensor_utils  # pyright: ignore[reportPrivateUsage]
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,  # pyright: ignore[reportPrivateUsage]
)

from rewright.frontends.torch.alike.numbers import Differences, at_rank, nodes_in, number
from rewright.frontends.torch.alike.parts import chosen, recorder
from rewright.frontends.torch.alike.results import layouts_of
from rewright.frontends.torch.process_group import TracedGroup
from rewright.frontends.torch.world import as_rank
from rewright.ir.placement import Mesh

_c10d: Any = c10d
_logger: Any = c10d_logger
_utils: Any = dtensor_utils


class World:
    """All ranks of a mesh, or for a while one of them."""

    def __init__(self, mesh: Mesh) -> None:
        self.ranks, self.differences = range(mesh.size), Differences()
        self.rank: int | None = None
        """The rank that the process is for a while."""
        self._places: dict[int, tuple[Any, list[tuple[int, ...]]]] = {}
        """Device meshes by identity, each with where the ranks are in it."""
        self._alone: Counter[int] = Counter()
        """How many groups of one rank were made, by the rank."""
        self._group_rank: Any = _c10d.get_group_rank
        self._global_rank: Any = _c10d.get_global_rank
        self._group_ranks: Any = _c10d.get_process_group_ranks
        self._new_group: Any = _c10d._new_group_with_tag
        self._local_shape: Any = _utils._compute_local_shape_and_global_offset
        self._initialize: Any = DeviceMesh.__init__

    @contextmanager
    def only(self, rank: int | None) -> Generator[None]:
        """Be one rank, or again all."""
        before, self.rank = self.rank, rank
        try:
            yield
        finally:
            self.rank = before

    def replacements(self) -> list[tuple[Any, str, Any]]:
        """What asks which rank this is, each by its owner and name, and what answers instead."""
        return [
            *_wherever_named(self._group_rank, self.group_rank),
            *_wherever_named(self._global_rank, self.global_rank),
            *_wherever_named(self._group_ranks, self.group_ranks),
            *_wherever_named(self._local_shape, self.local_shape),
            (TracedGroup, "_own_rank", property(lambda group: 0 if group.size() == 1 else self.own_rank(), _nowhere)),
            (DeviceMesh, "_rank", property(lambda _: self.own_rank(), _nowhere)),
            (_c10d, "_new_group_with_tag", self.new_group),
            (DeviceMesh, "__init__", self._initialized()),
            (DeviceMesh, "get_coordinate", _method(self.coordinates)),
            (DeviceMesh, "_coordinate_on_dim", property(self.coordinates, _nowhere)),
            (c10d_logger, "_get_msg_dict", self._logged(_logger._get_msg_dict)),
            (_local_tensor, "enabled_local_tensor_mode", lambda: self if self.rank is None else None),
            (_local_tensor, "_for_each_rank_run_func", self.run),
        ]

    def _logged(self, describe: Any) -> Any:
        """What PyTorch's log of calls makes of one, with the first rank's number."""

        def described(*args: Any, **kwargs: Any) -> Any:
            with self.only(0):
                return describe(*args, **kwargs)

        return described

    def own_rank(self) -> Any:
        """The number of this rank, or of each."""
        return number(self.ranks, self.differences) if self.rank is None else self.rank

    def group_rank(self, group: Any, rank: Any) -> Any:
        """The number of a rank in a group."""
        if next(nodes_in(rank), None) is None:
            return self._group_rank(group, rank)
        return 0 if self._is_single(group) else rank

    def global_rank(self, group: Any, rank: Any) -> Any:
        """The rank that has a number in a group."""
        return self.own_rank() if self._is_single(group) else self._global_rank(group, rank)

    def group_ranks(self, group: Any = None) -> list[Any]:
        """The ranks of a group."""
        return [self.own_rank()] if self._is_single(group) else self._group_ranks(group)

    def _is_single(self, group: Any) -> bool:
        """Whether a group is one of those that each rank has for itself."""
        return len(self.ranks) > 1 and len(self._group_ranks(group)) == 1

    def new_group(self, *args: Any, **options: Any) -> Any:
        """A process group, which must be one of all ranks; device meshes also make those of one rank, for each."""
        ranks = args[0] if args else options.get("ranks")
        if ranks is not None and list(ranks) != list(self.ranks):
            if len(ranks) != 1 or self.rank is None:
                self.differences.refuse("a process group has not all ranks")
            self._alone[ranks[0]] += 1
        with self.only(0):
            return self._new_group(*args, **options)

    def _initialized(self) -> Any:
        def initialize(device_mesh: Any, *args: Any, **options: Any) -> None:
            before = self._alone.copy()
            with self.only(0):
                self._initialize(device_mesh, *args, **options)
            if len({self._alone[rank] - before[rank] for rank in self.ranks}) > 1:
                self.differences.refuse("a device mesh has a group of its own for some ranks only")

        return initialize

    def coordinates(self, device_mesh: Any) -> tuple[Any, ...]:
        """Where this rank is in a device mesh, or where each is."""
        if id(device_mesh) not in self._places:
            with _disable_current_modes(), self.only(0):
                held = device_mesh.mesh
                found = [(held == rank).nonzero().tolist() for rank in self.ranks]
            if any(len(place) != 1 for place in found):
                self.differences.refuse("a device mesh has not all ranks")
            self._places[id(device_mesh)] = device_mesh, [tuple(place[0]) for place in found]
        places = self._places[id(device_mesh)][1]
        if self.rank is not None:
            return places[self.rank]
        return tuple(number(column, self.differences) for column in zip(*places, strict=True))

    def disable(self) -> Any:
        """What DTensor enters around a function that runs for each rank."""
        return self.only(0)

    def run(self, func: Any, _: object, args: Sequence[Any], kwargs: Mapping[str, Any], **__: object) -> Any:
        """The result of a function of DTensor that computes with the coordinates of one rank."""
        if func.__name__ == "_mask_tensor" or next(nodes_in((args, kwargs)), None) is None:
            with self.only(None):  # that one only calls operators, which take numbers that ranks differ in
                return func(*args, **kwargs)
        if func.__name__ == "_select_split_tensor":
            return self._selected(*args, **kwargs)
        recorded, before = recorder(), _length()
        found: list[Any] = []
        for rank in self.ranks:
            with self.only(rank):
                found.append(func(*at_rank(args, rank), **at_rank(kwargs, rank)))
        if recorded is not None and _length() != before:
            self.differences.refuse(f"{func.__name__} of DTensor computes something else on some ranks")
        return self._combined(found)

    def local_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shape of each rank's part of a tensor, and where it starts: numbers that no trace sees."""
        if self.rank is not None:
            return self._local_shape(*args, **kwargs)
        found: list[Any] = []
        for rank in self.ranks:
            with _disable_current_modes(), self.only(rank):
                found.append(self._local_shape(*at_rank(args, rank), **at_rank(kwargs, rank)))
        return self._combined(found)

    def _combined(self, found: Sequence[Any]) -> Any:
        first = found[0]
        if all(value is first for value in found):
            return first
        if all(type(value) is int for value in found):
            return number(found, self.differences)
        if len({_length_of(value) for value in found}) == 1 and _length_of(first) >= 0:
            parts = [self._combined(values) for values in zip(*found, strict=True)]
            return parts if isinstance(first, list) else tuple(parts)
        are_shapes = recorder() is None and all(isinstance(value, torch.Tensor) and value.is_meta for value in found)
        if are_shapes and len({layouts_of(value) for value in found}) == 1:
            return first
        return self.differences.refuse("a function of DTensor gives other results on some ranks")

    def _selected(
        self,
        shard: Any,
        tensor: torch.Tensor,
        count: int,
        index: Any,
        *,
        with_padding: bool = True,
        contiguous: bool = True,
        clone: bool = True,
    ) -> torch.Tensor:
        """Each rank's part of a split tensor; see ``Shard._select_split_tensor``."""
        parts, _ = shard._split_tensor(tensor, count, with_padding=with_padding, contiguous=False)
        if len({(part.shape, part.stride()) for part in parts}) > 1:
            self.differences.refuse("ranks have parts of other sizes")
        if recorder() is None and not tensor.is_meta:
            self.differences.refuse("a tensor with values is split")
        part = chosen(parts, index)
        own = part.clone() if clone else part.contiguous() if contiguous else part
        if own is part and recorder() is not None:
            self.differences.refuse("ranks have parts in other places of one memory")
        return own


class Building(TorchDispatchMode):
    """For the time in which a program is built: refuses operators that take a number that ranks differ in."""

    def __init__(self, differences: Differences) -> None:
        TorchDispatchMode.__init__(self)  # pyright: ignore[reportUnknownMemberType]
        self.differences = differences

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if next(nodes_in((args, kwargs)), None) is not None:
            self.differences.refuse(f"{func} takes a number that ranks differ in, while the program is built")
        return func(*args, **(kwargs or {}))


@contextmanager
def as_all_ranks(mesh: Mesh) -> Generator[tuple[World, DeviceMesh]]:
    """Be all ranks; raises Differ, or what the program makes of it, where one program cannot be that of all."""
    with as_rank(0, mesh) as device_mesh, ExitStack() as stack:
        world = World(mesh)
        for owner, name, value in world.replacements():
            stack.enter_context(mock.patch.object(owner, name, value, create=isinstance(value, property)))
        yield world, device_mesh


def _wherever_named(function: Any, replacement: Any) -> list[tuple[Any, str, Any]]:
    """A replacement of a function in each module that has it under its name."""
    name: str = function.__name__
    loaded: list[Any] = list(sys.modules.values())
    modules = [module for module in loaded if getattr(module, "__dict__", {}).get(name) is function]
    return [(module, name, replacement) for module in modules]


def _method(function: Callable[[Any], Any]) -> Any:
    """A function as a method of the class of what it takes."""

    def method(owner: Any) -> Any:
        return function(owner)

    return method


def _length_of(value: Any) -> int:
    return len(cast("Sequence[Any]", value)) if isinstance(value, (tuple, list)) else -1


def _nowhere(*_: object) -> None:
    """Where nothing is kept."""


def _length() -> int:
    found = recorder()
    return len(found.graph.nodes) if found is not None else 0
