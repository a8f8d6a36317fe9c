"""Ranks that wait for each other: for ever, or as long as messages are not kept for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed

import rewright as rw
from rewright.ir.errors import CaptureError

dist: Any = torch.distributed
Function = Callable[..., Any]


def notes(ranks: Function, size: int = 2, how: str = "traced") -> tuple[str, ...]:
    return rw.capture_ranks(lambda mesh: (ranks, (torch.zeros(4),)), {"ranks": size}, ranks=how).notes


def other() -> int:
    return 1 - dist.get_rank()


def begun_together(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for handle in (dist.irecv(y, other()), dist.isend(x, other())):
        handle.wait()
    return y


def in_turn(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for sends in (True, False) if dist.get_rank() == 0 else (False, True):
        if sends:
            dist.send(x, other())
        else:
            dist.recv(y, other())
    return y


def in_a_batch(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    for handle in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, other()), dist.P2POp(dist.irecv, y, other())]):
        handle.wait()
    return y


def around_a_sum(x: torch.Tensor) -> torch.Tensor:
    """A sum that is begun before a message and awaited behind it holds nobody up."""
    y, total = torch.empty_like(x), x.clone()
    handle = dist.all_reduce(total, async_op=True)
    in_turn(x)
    handle.wait()
    return y.copy_(total)


@pytest.mark.parametrize("how", ["traced", "threads"])
@pytest.mark.parametrize("ranks", [begun_together, in_turn, in_a_batch, around_a_sum])
def test_messages_that_arrive(ranks: Function, how: str) -> None:
    assert notes(ranks, how=how) == ()


def both_receive(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    dist.recv(y, other())
    dist.send(x, other())
    return y


def waited_for_too_early(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    dist.irecv(y, other()).wait()
    dist.isend(x, other()).wait()
    return y


def a_sum_between(x: torch.Tensor) -> torch.Tensor:
    """One rank waits in the sum for the other one, which waits for a message from behind it."""
    y = x.clone()
    if dist.get_rank() == 0:
        dist.all_reduce(y)
        dist.send(x, 1)
    else:
        dist.recv(torch.empty_like(x), 0)
        dist.all_reduce(y)
    return y


@pytest.mark.parametrize("how", ["traced", "threads"])
@pytest.mark.parametrize("ranks", [both_receive, waited_for_too_early, a_sum_between])
def test_ranks_that_wait_for_ever(ranks: Function, how: str) -> None:
    with pytest.raises(CaptureError, match=r"deadlock: .*rank [01] wait.*test_waiting\.py:\d+"):
        notes(ranks, how=how)


def both_send(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    dist.send(x, other())
    dist.recv(y, other())
    return y


def around_a_ring(x: torch.Tensor) -> torch.Tensor:
    y, size, rank = torch.empty_like(x), dist.get_world_size(), dist.get_rank()
    dist.send(x, (rank + 1) % size)
    dist.recv(y, (rank - 1) % size)
    return y


@pytest.mark.parametrize("how", ["traced", "threads"])
@pytest.mark.parametrize(("ranks", "size"), [(both_send, 2), (around_a_ring, 3)])
def test_sends_that_end_only_where_messages_are_kept(ranks: Function, size: int, how: str) -> None:
    (note,) = notes(ranks, size, how)
    assert note.startswith("rank 0 waits for rank 1 to receive what it sends at test_waiting.py:")
    assert "only where messages are kept" in note


def test_one_rank_of_a_ring_that_receives_first_unties_it() -> None:
    def untied(x: torch.Tensor) -> torch.Tensor:
        y, size, rank = torch.empty_like(x), dist.get_world_size(), dist.get_rank()
        for sends in (False, True) if rank == 0 else (True, False):
            if sends:
                dist.send(x, (rank + 1) % size)
            else:
                dist.recv(y, (rank - 1) % size)
        return y

    assert notes(untied, 4) == ()
