"""Process groups are told apart by the order in which every rank makes them, and not by their members.

Each program was run by two gloo processes too; ``gloo`` says what they did: the right numbers, others, or no end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.distributed

import rewright as rw
from rewright.ir.errors import CaptureError

dist: Any = torch.distributed
Sums = Callable[[torch.Tensor, torch.Tensor], Any]
PAIR = [0, 1]


@dataclass(frozen=True)
class Program:
    """Sums two tensors over both ranks, rightly or not."""

    ranks: Callable[..., Any]
    gloo: str
    """``right``, ``wrong`` or ``hangs``."""
    told: str = ""
    """What the message about a wrong one says."""
    of_meshes: bool = False
    """Whether it takes the groups of two meshes, made before it runs."""


def first() -> bool:
    return dist.get_rank() == 0


def two_groups() -> tuple[Any, Any]:
    return dist.new_group(PAIR), dist.new_group(PAIR)


def in_turn(*calls: tuple[torch.Tensor, Any]) -> None:
    for tensor, group in calls:
        dist.all_reduce(tensor, group=group)


def at_once(*calls: tuple[torch.Tensor, Any]) -> None:
    for handle in [dist.all_reduce(tensor, group=group, async_op=True) for tensor, group in calls]:
        handle.wait()


def each_waited_for(*calls: tuple[torch.Tensor, Any]) -> None:
    for tensor, group in calls:
        dist.all_reduce(tensor, group=group, async_op=True).wait()


def alike(y: torch.Tensor, z: torch.Tensor) -> None:
    """Pairs of groups with equal members, as Megatron-LM has them where an axis of the mesh has one rank."""
    a, b = two_groups()
    in_turn((y, a), (z, b))


def made_in_another_order(y: torch.Tensor, z: torch.Tensor) -> None:
    """Was proved, and audited."""
    a, b = two_groups() if first() else two_groups()[::-1]
    in_turn((y, a), (z, b))


def made_in_another_order_and_begun_at_once(y: torch.Tensor, z: torch.Tensor) -> None:
    """Was proved: each tensor was summed with the other one."""
    a, b = two_groups() if first() else two_groups()[::-1]
    at_once((y, a), (z, b))


def begun_in_another_order(y: torch.Tensor, z: torch.Tensor) -> None:
    """Was refuted, although each communicator has one call."""
    a, b = two_groups()
    at_once(*(((y, a), (z, b)) if first() else ((z, b), (y, a))))


def waited_for_in_another_order(y: torch.Tensor, z: torch.Tensor) -> None:
    a, b = two_groups()
    begun = [dist.all_reduce(y, group=a, async_op=True), dist.all_reduce(z, group=b, async_op=True)]
    for handle in begun if first() else begun[::-1]:
        handle.wait()


def called_in_another_order(y: torch.Tensor, z: torch.Tensor) -> None:
    a, b = two_groups()
    in_turn(*(((y, a), (z, b)) if first() else ((z, b), (y, a))))


def called_in_another_order_and_waited_for_at_once(y: torch.Tensor, z: torch.Tensor) -> None:
    a, b = two_groups()
    each_waited_for(*(((y, a), (z, b)) if first() else ((z, b), (y, a))))


def begun_in_another_order_on_one_group(y: torch.Tensor, z: torch.Tensor) -> None:
    a, _ = two_groups()
    at_once(*(((y, a), (z, a)) if first() else ((z, a), (y, a))))


def one_of_them_is_the_default_group(y: torch.Tensor, z: torch.Tensor) -> None:
    group = dist.new_group(PAIR)
    at_once(*(((y, None), (z, group)) if first() else ((z, group), (y, None))))


def the_default_group_on_one_rank(y: torch.Tensor, z: torch.Tensor) -> None:
    group = dist.new_group(PAIR)
    if first():
        begun = [dist.all_reduce(y, async_op=True), dist.all_reduce(z, group=group, async_op=True)]
    else:
        begun = [dist.all_reduce(y, group=group, async_op=True), dist.all_reduce(z, async_op=True)]
    for handle in begun:
        handle.wait()


def made_on_other_lines(y: torch.Tensor, z: torch.Tensor) -> None:
    """Other lines make them, in one order: that is right."""
    if first():
        a = dist.new_group(PAIR)
        b = dist.new_group(PAIR)
    else:
        pair = [dist.new_group(PAIR) for _ in range(2)]
        a, b = pair
    in_turn((y, a), (z, b))


def one_was_destroyed(y: torch.Tensor, z: torch.Tensor) -> None:
    gone = dist.new_group(PAIR)
    dist.destroy_process_group(gone)
    a, b = two_groups()
    at_once(*(((y, a), (z, b)) if first() else ((z, b), (y, a))))


def destroyed_after_its_use(y: torch.Tensor, z: torch.Tensor) -> None:
    a, b = two_groups()
    in_turn((y, a))
    dist.destroy_process_group(a)
    in_turn((z, b))


def destroyed_on_one_rank(y: torch.Tensor, z: torch.Tensor) -> None:
    """The messages of the second group had another number on a rank that had destroyed the first one."""
    a, b = two_groups()
    in_turn((y, a))
    if first():
        dist.destroy_process_group(a)
    other = torch.empty_like(z)
    for handle in (
        dist.isend(z.clone(), 1 - dist.get_rank(), group=b),
        dist.irecv(other, 1 - dist.get_rank(), group=b),
    ):
        handle.wait()
    z.add_(other)


def subgroups(y: torch.Tensor, z: torch.Tensor) -> None:
    a, _ = dist.new_subgroups_by_enumeration([PAIR])
    b, _ = dist.new_subgroups(2)
    at_once(*(((y, a), (z, b)) if first() else ((z, b), (y, a))))


def subgroups_in_another_order(y: torch.Tensor, z: torch.Tensor) -> None:
    if first():
        a, b = dist.new_subgroups_by_enumeration([PAIR])[0], dist.new_subgroups(2)[0]
    else:
        b, a = dist.new_subgroups(2)[0], dist.new_subgroups_by_enumeration([PAIR])[0]
    in_turn((y, a), (z, b))


def made_by_members(y: torch.Tensor, z: torch.Tensor) -> None:
    a, b = (dist.new_group(PAIR, use_local_synchronization=True) for _ in range(2))
    in_turn((y, a), (z, b))


def made_by_members_in_another_order(y: torch.Tensor, z: torch.Tensor) -> None:
    a, b = [dist.new_group(PAIR, use_local_synchronization=True) for _ in range(2)][:: 1 if first() else -1]
    in_turn((y, a), (z, b))


def made_by_members_of_other_numbers_of_groups(y: torch.Tensor, z: torch.Tensor) -> None:
    """PyTorch names such a group by the number of groups that the rank is in."""
    if first():
        dist.new_group([0], use_local_synchronization=True)
    a = dist.new_group(PAIR, use_local_synchronization=True)
    in_turn((y, a), (z, a))


def meshes() -> list[Any]:
    return [dist.init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp")).get_group("dp") for _ in range(2)]


def of_two_meshes(y: torch.Tensor, z: torch.Tensor, a: Any, b: Any) -> None:
    """An axis of all ranks is the default group in each mesh."""
    at_once(*(((y, a), (z, b)) if first() else ((z, b), (y, a))))


def of_two_meshes_in_turn(y: torch.Tensor, z: torch.Tensor, a: Any, b: Any) -> None:
    in_turn((y, a), (z, b)) if first() else in_turn((y, b), (z, a))


def gathered(y: torch.Tensor, z: torch.Tensor) -> None:
    a, b = two_groups() if first() else two_groups()[::-1]
    found = [[torch.empty_like(y) for _ in range(2)] for _ in range(2)]
    begun = [dist.all_gather(each, t, group=g, async_op=True) for each, t, g in zip(found, (y, z), (a, b), strict=True)]
    for handle in begun:
        handle.wait()
    y.copy_(found[0][0] + found[0][1])
    z.copy_(found[1][0] + found[1][1])


PROGRAMS = [
    Program(alike, "right"),
    Program(made_in_another_order, "hangs", "made at test_groups.py:"),
    Program(made_in_another_order_and_begun_at_once, "wrong"),
    Program(begun_in_another_order, "right"),
    Program(waited_for_in_another_order, "right"),
    Program(called_in_another_order, "hangs", "deadlock: rank 0 waits at test_groups.py:"),
    Program(called_in_another_order_and_waited_for_at_once, "hangs", "deadlock: rank 0 waits at test_groups.py:"),
    Program(begun_in_another_order_on_one_group, "wrong"),
    Program(one_of_them_is_the_default_group, "right"),
    Program(the_default_group_on_one_rank, "wrong"),
    Program(made_on_other_lines, "right"),
    Program(one_was_destroyed, "right"),
    Program(destroyed_after_its_use, "right"),
    Program(destroyed_on_one_rank, "right"),
    Program(subgroups, "right"),
    Program(subgroups_in_another_order, "hangs", "made at test_groups.py:"),
    Program(made_by_members, "right"),
    Program(made_by_members_in_another_order, "hangs", "made at test_groups.py:"),
    Program(made_by_members_of_other_numbers_of_groups, "hangs", "numbers of groups"),
    Program(of_two_meshes, "wrong", of_meshes=True),
    Program(of_two_meshes_in_turn, "right", of_meshes=True),
    Program(gathered, "wrong"),
]


def arguments(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.zeros(rows, 3), torch.zeros(rows, 3)


def both(sums: Callable[..., Any] | None, *groups: Any) -> Callable[..., dict[str, torch.Tensor]]:
    def run(x: torch.Tensor, u: torch.Tensor) -> dict[str, torch.Tensor]:
        y, z = x.sum(0), u.sum(0)
        if sums is not None:
            sums(y, z, *groups)
        return {"y": torch.exp(y), "z": torch.exp(z)}

    return run


def checked(program: Program) -> Any:
    whole = rw.capture(both(None), arguments(4))

    def build(mesh: Any) -> Any:
        return both(program.ranks, *(meshes() if program.of_meshes else ())), arguments(2)

    ranks = rw.capture_ranks(build, {"dp": 2})
    return rw.refine(whole, ranks, {"x": "Shard(0)", "u": "Shard(0)"}, audit=True)


@pytest.mark.sample(4)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.ranks.__name__)
def test_groups_are_told_apart_by_the_order_of_their_making(program: Program) -> None:
    verdict = checked(program)
    assert verdict.status == ("proved" if program.gloo == "right" else "refuted")
    assert program.told in " ".join([finding.message for finding in verdict.findings])


def test_what_meets_that_other_lines_call_is_told() -> None:
    verdict = checked(Program(the_default_group_on_one_rank, "wrong"))
    assert any("test_groups.py" in note and "the order in which a rank makes them" in note for note in verdict.notes)


@pytest.mark.parametrize("program", [alike, made_in_another_order], ids=lambda program: program.__name__)
def test_ranks_that_run_meet_in_the_same_groups(program: Sums) -> None:
    """Threads that run met by members too."""
    target = (both(program), arguments(2))
    if program is alike:
        rw.capture_ranks(lambda mesh: target, {"dp": 2}, ranks="threads")
    else:
        with pytest.raises(CaptureError, match=r"deadlock: .* on another group of these ranks"):
            rw.capture_ranks(lambda mesh: target, {"dp": 2}, ranks="threads")
