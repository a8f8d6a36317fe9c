"""All ranks of a mesh run at the same time in one place, each with a process group of its own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, get_args

import torch
import torch.distributed.distributed_c10d as c10d
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh

from rewright.frontends.torch.flexible import dense_attention
from rewright.frontends.torch.run.exchange import Ask, Exchange
from rewright.frontends.torch.run.transport import as_processes, as_threads
from rewright.frontends.torch.run.watching import surroundings
from rewright.frontends.torch.trace import quiet
from rewright.frontends.torch.world import groups, join_as_rank, own_groups
from rewright.ir.errors import CaptureError
from rewright.ir.placement import Mesh

Result = TypeVar("Result")
Ranks = Literal["traced", "threads", "processes"]
"""How ranks are captured: traced one after the other without values, or run together on real tensors."""


def check_ranks(ranks: str) -> None:
    """Raise CaptureError for a way to capture that does not exist."""
    if ranks not in get_args(Ranks):
        raise CaptureError(f"ranks={ranks!r} is no way to capture; write one of {', '.join(get_args(Ranks))}")


def run_together(
    one: Callable[[int, DeviceMesh, Exchange], Result], mesh: Mesh, ranks: Literal["threads", "processes"]
) -> list[Result]:
    """What ``one`` returns on every rank; it is called with the rank, its device mesh and its exchange.

    Raises what it raises, and CaptureError where ranks call different collectives or wait for each other in vain.
    """

    def work(rank: int, ask: Ask) -> Result:
        with join_as_rank(rank, mesh) as device_mesh, Exchange(rank, ask, groups) as exchange:
            return one(rank, device_mesh, exchange)

    with quiet(), surroundings(), dense_attention(), own_groups():
        if ranks == "processes":
            return as_processes(work, mesh.size)
        # PyTorch for CUDA keeps what the first thread with a fake mode has made, and crashes once that thread is gone.
        with FakeTensorMode():
            pass
        with _worlds_by_thread():
            return as_threads(work, mesh.size)


@contextmanager
def _worlds_by_thread() -> Generator[None]:
    """Every thread has its own default process group and its own names of groups."""
    from torch.testing._internal.distributed.multi_threaded_pg import ThreadLocalWorld

    private: Any = torch._C  # pyright: ignore[reportPrivateUsage]
    distributed = private._distributed_c10d
    untyped: Any = c10d
    world = untyped._world
    # PyTorch 2.11 asks its world for ``comms``, and gives this one none.
    own = ThreadLocalWorld if hasattr(ThreadLocalWorld, "comms") else type("World", (ThreadLocalWorld,), {"comms": []})
    untyped._world = own()
    distributed._set_thread_isolation_mode(True)
    try:
        yield
    finally:
        untyped._world = world
        distributed._set_thread_isolation_mode(False)
