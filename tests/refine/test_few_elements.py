"""Ranks that hold one element of an axis, constants of their own, and numbers that are scaled before a root."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed

import rewright as rw

dist: Any = torch.distributed
Function = Callable[[torch.Tensor], torch.Tensor]


def reduced(x: torch.Tensor) -> torch.Tensor:
    total = x.clone()
    if dist.is_initialized():
        dist.all_reduce(total)
    return total


@pytest.mark.parametrize(
    "order",
    [
        lambda y: y.argmax(-1),
        lambda y: y.argmin(-1),
        lambda y: y.sort(-1)[0],
        lambda y: y.topk(2, -1)[1],
        lambda y: y.cumsum(-1),
    ],
    ids=["argmax", "argmin", "sort", "topk", "cumsum"],
)
def test_a_rank_orders_its_one_sequence_as_the_whole_batch_is(order: Function) -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": order((x.reshape(-1, 4) @ w).reshape(*x.shape[:2], 3))}

    sequential = rw.capture(program, (torch.zeros(4, 2, 4), torch.zeros(4, 3)))
    ranks = rw.capture_ranks(lambda _: (program, (torch.zeros(4, 1, 4), torch.zeros(4, 3))), {"dp": 2})
    found = rw.refine(sequential, ranks, relations={"x": "Shard(1)", "w": "Replicate()"})
    assert found.status == "proved", found.reason
    other = rw.refine(sequential, ranks, {"x": "Shard(1)", "w": "Replicate()"}, {"y": "Replicate()"})
    assert other.status == "refuted"


def test_what_ranks_counted_adds_up_to_what_one_device_did() -> None:
    counts = (torch.tensor([1.0, 0.0, 3.0, 4.0]), torch.tensor([0.0, 2.0, 2.0, 5.0]))

    def alone(x: torch.Tensor) -> torch.Tensor:
        return x + counts[0] + counts[1]

    def ranks(right: bool) -> Any:
        def own(mesh: Any) -> Any:
            counted = counts[mesh.get_rank() if right else 0]
            return (lambda x: reduced(x + counted)), (torch.zeros(4),)

        return rw.capture_ranks(own, {"dp": 2})

    for right in (True, False):
        found = rw.refine(rw.capture(alone, (torch.zeros(4),)), ranks(right), relations={"x": "Partial(sum)"})
        assert found.status == ("proved" if right else "refuted")


@pytest.mark.parametrize("scale", [2.0, 3.0, 1024.0])
def test_a_norm_of_scaled_gradients_is_the_scaled_norm(scale: float) -> None:
    def norm(x: torch.Tensor) -> torch.Tensor:
        return x.square().sum().sqrt()

    def ranks(by: float) -> Any:
        own = lambda x: reduced((x * scale).square().sum()).sqrt() / by  # noqa: E731
        return rw.capture_ranks(lambda _: (own, (torch.zeros(3),)), {"dp": 2})

    for by in (scale, scale + 1):
        found = rw.refine(rw.capture(norm, (torch.zeros(6),)), ranks(by), relations={"x": "Shard(0)"})
        assert found.status == ("proved" if by == scale else "refuted")


def test_the_remainder_of_a_number_that_a_test_chooses_is_of_each() -> None:
    def numbered(rank: int, mark: int) -> Any:
        def own(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            local = torch.fmod(i.masked_fill(i // 2 != rank, mark), 2)
            local = local.masked_fill(local == mark, 2)
            return reduced(x.gather(1, local.clamp(0, 1)).masked_fill(local >= 2, 0.0))

        return own, (torch.zeros(3, 2), torch.zeros(3, 2, dtype=torch.long))

    whole = torch.zeros(3, 4), torch.zeros(3, 2, dtype=torch.long)
    sequential = rw.capture(lambda x, i: x.gather(1, i), whole)
    for mark, status in ((-1, "proved"), (0, "refuted")):
        ranks = rw.capture_ranks(lambda mesh, mark=mark: numbered(mesh.get_rank(), mark), {"tp": 2})
        found = rw.refine(sequential, ranks, relations={"x": "Shard(1)", "i": "Replicate()"})
        assert found.status == status, found.reason
