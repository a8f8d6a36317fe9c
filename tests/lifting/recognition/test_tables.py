"""Places that ranks are given as numbers: those of head and tail of a sequence, made before the step is captured."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed._functional_collectives as collectives
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict

BATCH, WIDTH = 2, 4
functional: Any = collectives


def places(rank: int, degree: int, part: int) -> list[int]:
    """A part from the head of a sequence, and one from its tail."""
    last = 2 * degree - 1 - rank
    return [*range(rank * part, (rank + 1) * part), *range(last * part, (last + 1) * part)]


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, own: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Causal attention by the places of queries and of keys; the first have an axis for the batch, too."""
    scores = (q @ k.mT).masked_fill(~(own[..., :, None] >= keys[None, None, :]), float("-inf"))
    return torch.softmax(scores, -1) @ v


def refined(degree: int, part: int, bug: str = "", rows: int = 1) -> Verdict:
    """Queries of head and tail over the keys of all ranks, which come in the order of the ranks."""
    length = 2 * degree * part
    every = torch.tensor([place for rank in range(degree) for place in places(rank, degree, part)])

    def build(mesh: DeviceMesh) -> Any:
        rank, group = mesh.get_rank(), mesh.get_group()
        mine = [places(0 if bug == "rank" else rank, degree, part)] * rows
        own, keys = torch.tensor(mine), torch.arange(length) if bug == "keys" else every

        def ranks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> dict[str, torch.Tensor]:
            gathered = [functional.all_gather_tensor(x, 1, group) for x in (k, v)]
            return {"y": attention(q, *gathered, own, keys)}

        return ranks, tuple(torch.zeros(BATCH, 2 * part, WIDTH) for _ in range(3))

    order = torch.arange(length)
    given = tuple(torch.zeros(BATCH, length, WIDTH) for _ in range(3))
    sequential = rw.capture(lambda q, k, v: {"y": attention(q, k, v, order, order)}, given)
    relations = dict.fromkeys("qkv", "HeadTail(1)")
    program = rw.capture_ranks(build, {"cp": degree})
    return rw.refine(sequential, program, relations, {"y": "HeadTail(1)"}, audit=not bug)


@pytest.mark.parametrize(
    ("degree", "part", "rows"), [(2, 5, 1), (2, 6, BATCH), pytest.param(3, 2, 1, marks=pytest.mark.slow)]
)
def test_places_that_are_numbers_of_a_rank(degree: int, part: int, rows: int) -> None:
    verdict = refined(degree, part, rows=rows)
    assert verdict.status == "proved", verdict.reason


@pytest.mark.parametrize("bug", ["rank", "keys"])
def test_places_of_another_rank_or_in_another_order(bug: str) -> None:
    assert refined(2, 2, bug).status == "refuted"


def looked_up(table: list[int], bug: bool = False) -> Verdict:
    """Rows that both programs look up at the same places, of which the ranks hold half of each."""

    def rows(x: torch.Tensor) -> torch.Tensor:
        return x[torch.tensor(table)].tanh()

    def build(mesh: DeviceMesh) -> Any:
        changed = [*table[1:], table[0]] if bug else table
        return (lambda x: x[torch.tensor(changed)].tanh()), (torch.zeros(8, 2),)

    return rw.refine(rw.capture(rows, (torch.zeros(8, 4),)), rw.capture_ranks(build, {"tp": 2}), {"x": "Shard(1)"})


@pytest.mark.parametrize("table", [[0, 1, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3], [3, 1, 2, 5], [2, 3]])
def test_a_table_that_both_programs_have(table: list[int]) -> None:
    assert looked_up(table).status == "proved"
    assert looked_up(table, bug=True).status == "refuted"
