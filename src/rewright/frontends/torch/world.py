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
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest import mock

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.utils._python_dispatch import _disable_current_modes  # pyright: ignore[reportPrivateUsage]

from rewright.frontends.aten.context import Communicator
from rewright.frontends.torch.messages import calling_line
from rewright.frontends.torch.process_group import BACKEND, register_backend
from rewright.frontends.torch.waiting import log
from rewright.ir.errors import CaptureError
from rewright.ir.placement import Mesh

_distributed: Any = dist
_native: Any = getattr(torch, "_C")  # noqa: B009


@contextmanager
def as_rank(rank: int, mesh: Mesh) -> Generator[DeviceMesh]:
    """Be this rank: the default process group and a device mesh of the given axes exist inside the block.

    Raises CaptureError where a process group exists already: replacing it would break the program that made it.
    """
    with own_groups(), join_as_rank(rank, mesh) as device_mesh:
        yield device_mesh


@contextmanager
def own_groups() -> Generator[None]:
    """Make all groups of the tracing backend, for the whole process, and note in which order each rank makes them."""
    register_backend()
    with (
        mock.patch.object(c10d, "_new_group_with_tag", _own_new_group()),
        mock.patch.object(c10d, "split_group", _split_group),
        mock.patch.object(dist, "split_group", _split_group),
        ExitStack() as stack,
    ):
        for name in _MAKES_MESHES:
            stack.enter_context(mock.patch.object(DeviceMesh, name, _untraced(getattr(DeviceMesh, name))))
        yield


@contextmanager
def join_as_rank(rank: int, mesh: Mesh) -> Generator[DeviceMesh]:
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
    log.makes(_default_group().pg_name, range(mesh.size), rank)
    try:
        sys.excepthook = hook  # PyTorch prefixes tracebacks by the rank, once more for every process group
        names = tuple(name for name, _ in mesh.axes)
        yield init_device_mesh("cpu", tuple(size for _, size in mesh.axes), mesh_dim_names=names)
    finally:
        dist.destroy_process_group()
        clear_rank_caches()


def clear_rank_caches() -> None:
    """Forget every sharding decision: DTensor's cached plans hold the coordinate of the rank that made them."""
    from torch.distributed.tensor import DTensor, _redistribute  # pyright: ignore[reportPrivateUsage]

    redistribute: Any = _redistribute
    dispatcher: Any = DTensor._op_dispatcher  # pyright: ignore[reportPrivateUsage]
    # As torch.distributed.tensor.debug does, which takes half a second to import.
    dispatcher.sharding_propagator.propagate_op_sharding.cache_clear()
    _native._clear_DTensor_sharding_propagator_cache()
    redistribute._gen_transform_infos.cache_clear()
    redistribute.clear_redistribute_planner_cache()


def _default_group() -> Any:
    return dist.group.WORLD


def groups() -> dict[str, Communicator]:
    """Every process group that this rank is or was in, by the group's name."""
    return log.communicators()


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


_MAKES_MESHES = ("__init__", "__getitem__", "_flatten")
"""Methods of a mesh that compute with numbers of ranks, which no program that is traced has to do with."""


def _untraced(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of meshes that runs on the numbers of ranks, also inside of a program that is traced."""

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return method(*args, **kwargs)

    return run


def _own_new_group() -> Callable[..., Any]:
    """What makes every group, without the arguments that would choose another backend (Megatron asks for gloo)."""
    untyped: Any = c10d
    original: Any = untyped._new_group_with_tag

    @functools.wraps(original)
    def new_group(ranks: Any = None, timeout: Any = None, *_: Any, **options: Any) -> Any:
        known = {"use_local_synchronization", "group_desc", "sort_ranks"}
        local = bool(options.get("use_local_synchronization"))
        upcoming = str(untyped._world.group_count)
        group = original(ranks, timeout, **{name: value for name, value in options.items() if name in known})
        own, every = dist.get_rank(), range(dist.get_world_size()) if ranks is None else sorted(ranks)
        if own in every:
            log.makes(group.pg_name, dist.get_process_group_ranks(group), own, local)
        elif not local:
            log.makes(upcoming, every, own)
        return group

    return new_group


def _split_group(
    parent_pg: Any = None, split_ranks: Any = None, timeout: Any = None, *_: Any, group_desc: Any = None, **__: Any
) -> Any:
    """``split_group`` without a device: this rank's part of a group, which only its members make.

    The ranks are positions in the parent group, and what it is called follows from them, as in PyTorch.
    """
    parent = dist.get_process_group_ranks(parent_pg)
    own = parent.index(dist.get_rank())
    mine = next((sorted(part) for part in split_ranks if own in part), None)
    if mine is None:
        return None
    return _distributed.new_group(
        [parent[position] for position in mine], timeout, group_desc=group_desc, use_local_synchronization=True
    )
