"""Asynchronous collectives whose results are used too early, and memory that nothing was written to."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.ir.errors import CaptureError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.refine.twin.twin import make_twin
from rewright.refine.verdict import Evidence, Verdict

dist: Any = torch.distributed
Function = Callable[..., Any]


def verdict(whole: Function, ranks: Function, size: int = 2, how: str = "traced", audit: bool = True) -> Verdict:
    """A function of rows, on one device and on ranks that hold parts of the rows."""
    sequential = rw.capture(whole, (torch.zeros(12, 3),), run=how != "traced")

    def build(mesh: DeviceMesh) -> tuple[Function, tuple[torch.Tensor]]:
        return ranks, (torch.zeros(12 // size, 3),)

    program = rw.capture_ranks(build, {"ranks": size}, ranks=how)
    return rw.refine(sequential, program, relations={"x": "Shard(0)"}, audit=audit)


def summed(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"y": x.exp().sum(0)}


def doubled(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"y": 2 * x}


def seen_before(x: torch.Tensor) -> dict[str, torch.Tensor]:
    y = x.exp().sum(0)
    handle = dist.all_reduce(y, async_op=True)
    seen = y.view(3, 1)
    handle.wait()
    return {"y": seen.view(3)}


def in_buckets(x: torch.Tensor) -> dict[str, torch.Tensor]:
    y = x.exp().sum(0)
    handles = [dist.all_reduce(part, async_op=True) for part in (y[:1], y[1:])]
    for handle in handles:
        handle.wait()
    return {"y": y}


def by_future(x: torch.Tensor) -> dict[str, torch.Tensor]:
    y = x.exp().sum(0)
    dist.all_reduce(y, async_op=True).get_future().wait()
    return {"y": y}


def beside(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """What is not part of the collective may be written to."""
    y = x.exp().sum(0)
    handle = dist.all_reduce(y[:1], async_op=True)
    y[1:].mul_(0.5)
    handle.wait()
    dist.all_reduce(y[1:])
    y[1:].mul_(2)
    return {"y": y}


def around_a_ring(*, waits: bool = True, batched: bool = False) -> Function:
    def gathered(x: torch.Tensor) -> dict[str, torch.Tensor]:
        size, rank = dist.get_world_size(), dist.get_rank()
        parts, current = {rank: x}, x.clone()
        for step in range(1, size):
            following = torch.empty_like(current)
            to, origin = (rank + 1) % size, (rank - 1) % size
            if batched:
                calls = [dist.P2POp(dist.isend, current, to), dist.P2POp(dist.irecv, following, origin)]
                handles = dist.batch_isend_irecv(calls)
            else:
                handles = [dist.isend(current, to), dist.irecv(following, origin)]
            for handle in handles if waits else ():
                handle.wait()
            parts[(rank - step) % size] = current = following
        return {"y": 2 * torch.cat([parts[i] for i in range(size)])}

    return gathered


RIGHT: dict[str, tuple[Function, Function, int]] = {
    "a view taken before": (summed, seen_before, 2),
    "buckets": (summed, in_buckets, 2),
    "a future": (summed, by_future, 2),
    "another part is written to": (summed, beside, 2),
    "a ring": (doubled, around_a_ring(), 3),
    "a ring in batches": (doubled, around_a_ring(batched=True), 3),
}


@pytest.mark.parametrize("how", ["traced", "threads"])
@pytest.mark.parametrize(("whole", "ranks", "size"), RIGHT.values(), ids=RIGHT)
def test_what_was_waited_for_is_there(whole: Function, ranks: Function, size: int, how: str) -> None:
    assert verdict(whole, ranks, size, how).evidence is Evidence.PROVED


def returned(x: torch.Tensor) -> dict[str, torch.Tensor]:
    y = x.exp().sum(0)
    dist.all_reduce(y, async_op=True)
    return {"y": y}


def read_first(x: torch.Tensor) -> dict[str, torch.Tensor]:
    y = x.exp().sum(0)
    handle = dist.all_reduce(y, async_op=True)
    early = y * 2
    handle.wait()
    return {"y": early / 2}


def copied_first(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """A view of what arrives later is right, and a copy is not."""
    y = x.exp().sum(0)
    handle = dist.all_reduce(y, async_op=True)
    early = y.flip(0)
    handle.wait()
    return {"y": early.exp().log().flip(0)}


def last_handle_only(x: torch.Tensor) -> dict[str, torch.Tensor]:
    y = x.exp().sum(0)
    handles = [dist.all_reduce(part, async_op=True) for part in (y[:1], y[1:])]
    handles[-1].wait()
    return {"y": y}


def rows_gathered(x: torch.Tensor) -> dict[str, torch.Tensor]:
    every = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(every, x, async_op=True)
    return {"y": 2 * torch.cat(every)}


def exchanged(x: torch.Tensor) -> dict[str, torch.Tensor]:
    there = torch.empty_like(x)
    dist.all_to_all_single(there, x, async_op=True)
    back = torch.empty_like(x)
    dist.all_to_all_single(back, 2 * there)
    return {"y": back}


EARLY: dict[str, tuple[Function, Function, int, str]] = {
    "returned": (summed, returned, 2, "returns what the all_reduce"),
    "read": (summed, read_first, 2, "early = y * 2"),
    "copied": (summed, copied_first, 2, "y.flip(0)"),
    "only the last is waited for": (summed, last_handle_only, 2, "returns what the all_reduce"),
    "gathered": (doubled, rows_gathered, 2, "torch.cat(every)"),
    "exchanged": (doubled, exchanged, 2, "2 * there"),
    "a ring": (doubled, around_a_ring(waits=False), 3, "isend"),
    "a ring in batches": (doubled, around_a_ring(waits=False, batched=True), 3, "isend"),
}


@pytest.mark.parametrize("how", ["traced", "threads"])
@pytest.mark.parametrize(("whole", "ranks", "size", "where"), EARLY.values(), ids=EARLY)
def test_what_is_used_before_is_refuted_there(
    whole: Function, ranks: Function, size: int, where: str, how: str
) -> None:
    found = verdict(whole, ranks, size, how)
    assert found.status == "refuted"
    first = found.findings[0]
    assert first.kind == "missing_wait"
    assert first.distributed is not None
    line = linecache.getline(first.distributed.file, first.distributed.line)
    assert where in first.message or where in line
    assert first.suggestion is not None
    assert first.suggestion.startswith("wait for the ")


def emptied(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The sum arrives after the wait, but what was added up may be nothing already."""
    y = x.exp().sum(0)
    handle = dist.all_reduce(y, async_op=True)
    y.zero_()
    handle.wait()
    return {"y": y}


def source_reused(x: torch.Tensor) -> dict[str, torch.Tensor]:
    own = 2 * x
    every = x.new_empty(12, 3)
    handle = dist.all_gather_into_tensor(every, own, async_op=True)
    own.zero_()
    handle.wait()
    return {"y": every}


def written_as_an_output(x: torch.Tensor) -> dict[str, torch.Tensor]:
    y = x.exp().sum(0)
    handle = dist.all_reduce(y, async_op=True)
    torch.mul(x[0], 2, out=y)
    handle.wait()
    return {"y": y}


@pytest.mark.parametrize(
    ("whole", "ranks"), [(summed, emptied), (doubled, source_reused), (summed, written_as_an_output)]
)
def test_what_is_written_to_in_the_meantime_is_refuted(whole: Function, ranks: Function) -> None:
    found = verdict(whole, ranks)
    assert found.status == "refuted"
    assert found.findings[0].kind == "early_write"
    assert found.findings[0].suggestion is None


@pytest.mark.parametrize("into", ["zeros", "receives"])
def test_a_buffer_that_is_being_sent_is_not_reused(into: str) -> None:
    def ring(x: torch.Tensor) -> dict[str, torch.Tensor]:
        handle = dist.isend(x, 1 - dist.get_rank())
        other = x if into == "receives" else x.zero_()
        dist.recv(other, 1 - dist.get_rank())
        handle.wait()
        return {"y": other}

    with pytest.raises(CaptureError, match=r"overwrites what is sent at test_unwritten\.py:\d+.* wait for its handle"):
        verdict(doubled, ring)


def test_rows_of_memory_that_nothing_was_written_to() -> None:
    def half(x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = torch.empty(6, 3)
        y[:5] = 2 * x[:5]
        return {"y": y}

    found = verdict(doubled, half)
    assert found.status == "refuted"
    assert found.findings[0].kind == "unwritten_memory"


@pytest.mark.parametrize("order", [1, -1])
def test_memory_whose_content_no_output_depends_on_hides_nothing(order: int) -> None:
    """Ranks that are sent something make room for it; what was there before is of no account."""

    def collected(x: torch.Tensor) -> dict[str, torch.Tensor]:
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
        dist.gather(2 * x, parts, dst=0)
        every = torch.cat(parts[::order]) if parts else torch.empty(12, 3)
        dist.broadcast(every, src=0)
        return {"y": every}

    found = verdict(doubled, collected)
    assert found.status == ("proved" if order == 1 else "refuted")
    assert all(finding.kind != "unwritten_memory" for finding in found.findings)


def test_an_input_with_the_name_of_such_memory_is_never_filled_at_random() -> None:
    sequential = rw.capture(lambda x: {"y": x.exp()}, (torch.zeros(4),))
    program = rw.capture_ranks(lambda mesh: (lambda x: {"y": x.exp()}, (torch.zeros(4),)), {"ranks": 2})

    def renamed(graph: Graph) -> Graph:
        return replace(graph, inputs={"unspecified:0": graph.inputs["x"]})

    twin = make_twin(renamed(sequential), replace(program, graphs=tuple(map(renamed, program.graphs))))
    assert isinstance(twin, Unsupported)
    assert "rename it" in twin.why
