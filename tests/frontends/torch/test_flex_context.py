"""The collective that PyTorch's context parallelism asks for around FlexAttention: keys and values of all ranks."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict

BATCH, LENGTH, WIDTH, RANKS = 2, 8, 4, 2
_dist: Any = dist
_gathered: Any = importlib.import_module("torch.distributed.tensor.experimental._context_parallel").flex_cp_allgather
_attention: Any = importlib.import_module("torch.distributed.tensor.experimental._attention")


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rank: int, block: int) -> torch.Tensor:
    """Causal attention of the queries of a rank, whose places are counted by blocks as PyTorch's sharded masks do."""
    own = torch.arange(q.shape[1])
    place = (own // block + rank * (q.shape[1] // block)) * block + own % block
    seen = place[:, None] >= torch.arange(k.shape[1])[None, :]
    scores = (q @ k.mT).masked_fill(~seen, float("-inf"))
    return torch.softmax(scores, -1) @ v


def step(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
    q, k, v = (x @ w).split(WIDTH, -1)
    y = attention(q, k, v, 0, LENGTH)
    y.pow(2).sum().backward()
    return {"y": y}


def refined(block: int = 2, bug: str = "") -> Verdict:
    def build(mesh: DeviceMesh) -> Any:
        rank, name = mesh.get_rank(), _dist._get_process_group_name(mesh.get_group())

        def ranks(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            q, k, v = (x @ w).split(WIDTH, -1)
            k, v = k.contiguous(), v.contiguous()
            if bug == "gradient":
                every_k, every_v = _gathered(k.detach(), v, 1, name)
            else:
                every_k, every_v = _gathered(k, v, 1, name)
            own = 0 if bug == "mask" else rank
            y = attention(q, every_v if bug == "values" else every_k, every_v, own, block)
            y.pow(2).sum().backward()
            if bug != "reduction":
                _dist.all_reduce(w.grad, group=mesh.get_group())
            return {"y": y}

        return ranks, (torch.zeros(BATCH, LENGTH // RANKS, WIDTH), torch.zeros(WIDTH, 3 * WIDTH, requires_grad=True))

    whole = torch.zeros(BATCH, LENGTH, WIDTH), torch.zeros(WIDTH, 3 * WIDTH, requires_grad=True)
    program = rw.capture_ranks(build, {"cp": RANKS})
    return rw.refine(rw.capture(step, whole), program, {"x": "Shard(1)", "w": "Replicate()"}, audit=not bug)


@pytest.mark.sample(3)
@pytest.mark.parametrize("block", [1, 2, 4])
def test_gathered_keys_and_values(block: int) -> None:
    verdict = refined(block)
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["y"].placement == "Shard(1)"
    assert verdict.relation["grad:w"].placement == "Replicate()"


@pytest.mark.parametrize("bug", ["mask", "values", "gradient", "reduction"])
def test_other_ways_to_gather(bug: str) -> None:
    assert refined(bug=bug).status == "refuted"


def in_another_order(degree: int, bug: str = "") -> Verdict:
    """Masked scores of the rows that a rank takes of a sequence, its own part from the head and one from the tail."""
    length = 4 * degree

    def masked(rows: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        return torch.where(place[:, None] >= torch.arange(length), rows, 0.0)

    def build(mesh: DeviceMesh) -> Any:
        def ranks(x: torch.Tensor) -> dict[str, torch.Tensor]:
            balancer = _attention._HeadTailLoadBalancer(length, degree, "cpu")
            (own,) = _attention._context_parallel_shard(mesh=mesh, buffers=(x,), seq_dims=(0,), load_balancer=balancer)
            places = balancer._generate_indices(restore=False)[0]
            first = (0 if bug == "first" else mesh.get_rank()) * (length // degree)
            mine = torch.arange(length // degree) + first
            return {"y": masked(own, mine if bug == "order" else places[mine])}

        return ranks, (torch.zeros(length, length),)

    sequential = rw.capture(lambda x: {"y": masked(x, torch.arange(length))}, (torch.zeros(length, length),))
    return rw.refine(
        sequential, rw.capture_ranks(build, {"cp": degree}), {"x": "Replicate()"}, {"y": "HeadTail(0)"}, audit=not bug
    )


@pytest.mark.parametrize("degree", [2, 3])
def test_parts_from_head_and_tail(degree: int) -> None:
    verdict = in_another_order(degree)
    assert verdict.status == "proved", verdict.reason


@pytest.mark.parametrize("bug", ["first", "order"])
def test_masks_for_other_parts(bug: str) -> None:
    assert in_another_order(2, bug).status == "refuted"


def attention_over_parts(degree: int, bug: str = "") -> Verdict:
    """Causal attention of head and tail of a sequence over keys and values that come in the order of the ranks."""
    length = 4 * degree

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, place: torch.Tensor, keys: Any) -> torch.Tensor:
        scores = (q @ k.mT).masked_fill(~(place[:, None] >= keys[None, :]), float("-inf"))
        return torch.softmax(scores, -1) @ v

    def build(mesh: DeviceMesh) -> Any:
        name, rank = _dist._get_process_group_name(mesh.get_group()), mesh.get_rank()

        def ranks(x: torch.Tensor, w: torch.Tensor) -> dict[str, torch.Tensor]:
            balancer = _attention._HeadTailLoadBalancer(length, degree, "cpu")
            (own,) = _attention._context_parallel_shard(mesh=mesh, buffers=(x,), seq_dims=(1,), load_balancer=balancer)
            q, k, v = (own @ w).split(WIDTH, -1)
            every_k, every_v = _gathered(k.contiguous(), v.contiguous(), 1, name)
            places = balancer._generate_indices(restore=False)[0]
            mine = torch.arange(length // degree) + rank * (length // degree)
            keys = torch.arange(length) if bug == "keys" else places
            return {"y": attend(q, every_k, every_v, mine if bug == "queries" else places[mine], keys)}

        return ranks, given

    given = torch.zeros(BATCH, length, WIDTH), torch.zeros(WIDTH, 3 * WIDTH)
    order = torch.arange(length)
    sequential = rw.capture(lambda x, w: {"y": attend(*(x @ w).split(WIDTH, -1), order, order)}, given)
    relations = {"x": "Replicate()", "w": "Replicate()"}
    program = rw.capture_ranks(build, {"cp": degree})
    return rw.refine(sequential, program, relations, {"y": "HeadTail(1)"}, audit=not bug)


def test_keys_in_the_order_of_ranks_that_hold_head_and_tail() -> None:
    verdict = attention_over_parts(2)
    assert verdict.status == "proved", verdict.reason


@pytest.mark.parametrize("bug", ["keys", "queries"])
def test_places_in_another_order_than_keys_or_queries(bug: str) -> None:
    assert attention_over_parts(2, bug).status == "refuted"
