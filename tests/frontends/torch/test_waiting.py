"""Ranks that wait for each other: for ever, or as long as messages are not kept for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed

import rewright as rw
from rewright.ir.errors import CaptureError
from rewright.ir.placement import RankProgram

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


def a_number_into_a_matrix(x: torch.Tensor) -> torch.Tensor:
    """A transport sends elements: a number, and a matrix of one element, are one message."""
    y = torch.empty(1, 1)
    for handle in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x.sum(), other()), dist.P2POp(dist.irecv, y, other())]
    ):
        handle.wait()
    return y


@pytest.mark.parametrize("how", ["traced", "threads"])
@pytest.mark.parametrize("ranks", [begun_together, in_turn, in_a_batch, around_a_sum, a_number_into_a_matrix])
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


FOR_EVER = (both_receive, waited_for_too_early, a_sum_between)


@pytest.mark.parametrize("ranks", FOR_EVER)
def test_ranks_that_wait_for_ever(ranks: Function) -> None:
    program = rw.capture_ranks(lambda mesh: (ranks, (torch.zeros(4),)), {"ranks": 2})
    verdict = rw.refine(rw.capture(lambda x: x, (torch.zeros(4),)), program)
    assert verdict.status == "refuted"
    assert verdict.findings[0].kind == "collective_mismatch"
    assert re.match(r"deadlock: rank 0 waits .*\.py:\d+.* and rank 1 waits .*\.py:\d+; ", verdict.reason)


@pytest.mark.parametrize("ranks", FOR_EVER)
def test_ranks_that_wait_for_ever_while_they_run(ranks: Function) -> None:
    with pytest.raises(CaptureError, match=r"deadlock: rank [01] waits.*test_waiting\.py:\d+"):
        notes(ranks, how="threads")


def test_a_deadlock_is_part_of_a_saved_program(tmp_path: Path) -> None:
    program = rw.capture_ranks(lambda mesh: (both_receive, (torch.zeros(4),)), {"ranks": 2})
    rw.save(program, tmp_path / "ranks.json")
    found = rw.load(tmp_path / "ranks.json")
    assert isinstance(found, RankProgram)
    assert found.deadlock == program.deadlock != ""


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


def in_a_group(make: Function) -> Function:
    """A sum over ranks 0 and 1 of three, in a group that is made as given."""

    def ranks(x: torch.Tensor) -> torch.Tensor:
        group = make(dist.get_rank())
        if dist.get_rank() < 2:
            dist.all_reduce(x, group=group)
        return x

    return ranks


def by_all(rank: int) -> Any:
    return dist.new_group([0, 1])


def by_members(rank: int) -> Any:
    return dist.new_group([0, 1]) if rank < 2 else None


def by_members_alone(rank: int) -> Any:
    return dist.new_group([0, 1], use_local_synchronization=True) if rank < 2 else None


def in_other_orders(rank: int) -> Any:
    every = [[0, 1], [2]]
    made = {tuple(ranks): dist.new_group(ranks) for ranks in (every if rank < 2 else every[::-1])}
    return made[0, 1]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (by_all, ""),
        (by_members_alone, ""),
        (by_members, "group of ranks 0, 1 at .* while rank 2 makes no further group;"),
        (in_other_orders, "group of ranks 0, 1 at .* while rank 2 makes the group of ranks 2 at "),
    ],
)
def test_groups_are_made_by_every_rank(make: Function, told: str) -> None:
    found = rw.capture_ranks(lambda mesh: (in_a_group(make), (torch.zeros(4),)), {"ranks": 3}).deadlock
    assert re.search(told, found) if told else not found


@pytest.mark.parametrize("crossed", [False, True])
def test_messages_of_two_groups_never_meet(crossed: bool) -> None:
    def ranks(x: torch.Tensor) -> dict[str, torch.Tensor]:
        groups = [dist.new_group([0, 1]) for _ in range(2)]
        first, second = x.exp(), x.sin()
        if dist.get_rank() == 0:
            handles = [dist.isend(y, 1, group=g) for y, g in zip((first, second), groups, strict=True)]
        else:
            first, second = torch.empty_like(x), torch.empty_like(x)
            order = groups[::-1] if crossed else groups
            pairs = list(zip((first, second), order, strict=True))[::-1]
            handles = [dist.irecv(y, 0, group=g) for y, g in pairs]
        for handle in handles:
            handle.wait()
        return {"first": first, "second": second}

    sequential = rw.capture(lambda x: {"first": x.exp(), "second": x.sin()}, (torch.zeros(4),))
    program = rw.capture_ranks(lambda mesh: (ranks, (torch.zeros(4),)), {"ranks": 2})
    assert rw.refine(sequential, program).status == ("refuted" if crossed else "proved")
