"""Pretend to be one rank of a mesh, with no peers, and forget it again.

Several ranks are traced one after the other in one process. DTensor caches sharding decisions globally, and two meshes
are equal although their coordinates differ, so the caches would hand one rank's shards to the next: they are cleared
at every change of rank.
"""

from __future__ import annotations

import functools
import inspect
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast
from unittest import mock

import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor.debug import _clear_sharding_prop_cache  # pyright: ignore[reportPrivateUsage]

from rewright.frontends.torch.messages import calling_line
from rewright.frontends.torch.process_group import BACKEND, register_backend
from rewright.frontends.torch.waiting import log
from rewright.ir.errors import CaptureError
from rewright.ir.placement import Mesh

_distributed: Any = dist


@contextmanager
def as_rank(rank: int, mesh: Mesh) -> Generator[DeviceMesh]:
    """Be this rank: the default process group and a device mesh of the given axes exist inside the block.

    Raises CaptureError where a process group exists already: replacing it would break the program that made it.
    """
    with own_groups(), joined(rank, mesh) as device_mesh:
        yield device_mesh


@contextmanager
def own_groups() -> Generator[None]:
    """Make all groups of the tracing backend, for the whole process."""
    register_backend()
    new_group = _own_new_group()
    with mock.patch.object(c10d, "new_group", new_group), mock.patch.object(dist, "new_group", new_group):
        yield


@contextmanager
def joined(rank: int, mesh: Mesh) -> Generator[DeviceMesh]:
    """Be this rank on this thread; the same as :func:`as_rank`, inside of :func:`own_groups`."""
    if dist.is_initialized():
        raise CaptureError(
            "a process group is initialized in this process; call destroy_process_group() before capturing"
        )
    clear_rank_caches()
    log.groups.clear()
    store: Any = _distributed.HashStore()
    hook = sys.excepthook
    dist.init_process_group(BACKEND, rank=rank, world_size=mesh.size, store=store)
    try:
        sys.excepthook = hook  # PyTorch prefixes tracebacks by the rank, once more for every process group
        names = tuple(name for name, _ in mesh.axes)
        yield init_device_mesh("cpu", tuple(size for _, size in mesh.axes), mesh_dim_names=names)
    finally:
        dist.destroy_process_group()
        clear_rank_caches()


def clear_rank_caches() -> None:
    """Forget every sharding decision: DTensor's cached plans hold the coordinate of the rank that made them."""
    from torch.distributed.tensor import _redistribute  # pyright: ignore[reportPrivateUsage]

    redistribute: Any = _redistribute
    _clear_sharding_prop_cache()
    redistribute._gen_transform_infos.cache_clear()
    redistribute.clear_redistribute_planner_cache()


def groups() -> dict[str, tuple[int, ...]]:
    """The ranks of every process group of this rank, by the group's name."""
    world: Any = c10d._world  # pyright: ignore[reportPrivateUsage]
    return {world.pg_names[group]: tuple(dist.get_process_group_ranks(group)) for group in world.pg_map}


@contextmanager
def without_network() -> Generator[None]:
    """Refuse network connections: a capture needs shapes only, so a download is a mistake; raises CaptureError."""
    refusals: list[CaptureError] = []

    def refuse(address: Any, *_: Any, **__: Any) -> Any:
        host: Any = cast("tuple[Any, ...]", address)[0] if isinstance(address, tuple) else address
        advice = "build the model from its configuration, which needs no weights"
        line = calling_line(inspect.currentframe())
        refusals.append(CaptureError(f"{line or 'the program'} wants to download from {host}; {advice}"))
        raise refusals[0]  # no OSError, which clients would take for a bad connection and try again

    try:
        with mock.patch.object(socket, "getaddrinfo", refuse), mock.patch.object(socket, "create_connection", refuse):
            yield
    except Exception:
        if refusals:
            raise refusals[0] from None
        raise


def _own_new_group() -> Callable[..., Any]:
    """``new_group`` without the arguments that would choose another backend (Megatron asks for gloo)."""
    original: Any = _distributed.new_group

    @functools.wraps(original)
    def new_group(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("use_local_synchronization", args[4] if len(args) > 4 else False):
            ranks = kwargs.get("ranks", args[0] if args else None)
            log.makes(range(dist.get_world_size()) if ranks is None else sorted(ranks))
        for name in ("backend", "pg_options", "use_local_synchronization"):
            kwargs.pop(name, None)
        return original(*args[:2], **kwargs)

    return new_group
