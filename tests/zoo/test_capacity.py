"""A mixture of experts of which each takes so many tokens of a group: what does not fit is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict

_dist: Any = dist
Tensor = torch.Tensor
GROUPS, TOKENS, WIDTH, EXPERTS, CAPACITY, INNER = 2, 6, 4, 4, 3, 6


class Moved(torch.autograd.Function):
    """A function forwards, and another one backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.back = back
        return there(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return ctx.back(gradients[0]), None, None


moved: Any = Moved.apply


def gates(x: Tensor, router: Tensor, capacity: int) -> tuple[Tensor, Tensor, Tensor]:
    """The weight of every token in every slot of every expert, the probabilities, and the first choices."""
    probabilities = torch.softmax(x @ router, -1)
    weights, chosen = torch.topk(probabilities, 2, -1)
    weights = weights / weights.sum(-1, keepdim=True)
    combine = x.new_zeros(*x.shape[:-1], EXPERTS, capacity)
    taken = torch.zeros_like(probabilities[..., :1, :])
    for k in range(2):
        hot = F.one_hot(chosen[..., k], EXPERTS).to(x.dtype)
        place = ((torch.cumsum(hot, -2) - 1 + taken) * hot).sum(-1).long()
        taken = taken + hot.sum(-2, keepdim=True)
        slot = F.one_hot(place.clamp(max=capacity - 1), capacity).to(x.dtype)
        kept = weights[..., k] * (place < capacity).to(x.dtype)
        combine = combine + kept[..., None, None] * hot[..., :, None] * slot[..., None, :]
    return combine, probabilities, F.one_hot(chosen[..., 0], EXPERTS).to(x.dtype)


def experts(rows: Tensor, up: Tensor, down: Tensor) -> Tensor:
    return torch.einsum("egci,eid->egcd", torch.einsum("egcd,edi->egci", rows, up).tanh(), down)


def step(x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> dict[str, Tensor]:
    combine, probabilities, first = gates(x, router, CAPACITY)
    rows = torch.einsum("gsec,gsd->egcd", (combine > 0).to(x.dtype), x)
    y = x + torch.einsum("gsec,egcd->gsd", combine, experts(rows, up, down))
    balance = (probabilities.mean((0, 1)) * first.mean((0, 1))).sum() * EXPERTS
    loss = y.pow(2).mean() + 0.01 * balance
    loss.backward()
    return {"loss": loss, "y": y}


def refined(bug: str = "") -> Verdict:
    """The same with a group of tokens and half of the experts on each of two ranks."""

    def leaf(*shape: int) -> Tensor:
        return torch.zeros(*shape, requires_grad=True)

    def parallel(mesh: DeviceMesh) -> Any:
        group = mesh.get_group()

        def summed(x: Tensor) -> Tensor:
            x = x.clone()
            _dist.all_reduce(x, group=group)
            return x

        def exchange(x: Tensor) -> Tensor:
            arrived = torch.empty_like(x)
            _dist.all_to_all_single(arrived, x.contiguous(), group=group)
            return arrived

        def ranks(x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> dict[str, Tensor]:
            combine, probabilities, first = gates(x, router, CAPACITY - (bug == "capacity"))
            rows = torch.einsum("gsec,gsd->egcd", (combine > 0).to(x.dtype), x)[:, 0]
            arrived = moved(rows, exchange, exchange)
            arrived = arrived.view(2, EXPERTS // 2, -1, WIDTH).transpose(0, 1)
            back = experts(arrived, up, down).transpose(0, 1).reshape(EXPERTS, -1, WIDTH)
            y = x + torch.einsum(
                "sec,ecd->sd", combine[0], moved(back, exchange, (lambda g: g) if bug == "sent back" else exchange)
            )
            mean = probabilities.mean((0, 1))
            own = mean if bug == "own balance" else moved(mean, summed, lambda g: g) / 2
            balance = (own * (summed(first.mean((0, 1))) / 2)).sum() * EXPERTS
            balance = balance.detach() if bug == "gradient of balance" else balance
            main = y.pow(2).mean() / 2
            (main + 0.01 * balance).backward()
            _dist.all_reduce(router.grad, group=group)
            return {"loss": summed(main.detach()) + 0.01 * balance.detach(), "y": y}

        half = leaf(EXPERTS // 2, WIDTH, INNER), leaf(EXPERTS // 2, INNER, WIDTH)
        return ranks, (torch.zeros(1, TOKENS, WIDTH), leaf(WIDTH, EXPERTS), *half)

    whole = leaf(EXPERTS, WIDTH, INNER), leaf(EXPERTS, INNER, WIDTH)
    sequential = rw.capture(step, (torch.zeros(GROUPS, TOKENS, WIDTH), leaf(WIDTH, EXPERTS), *whole))
    given = {"x": "Shard(0)", "router": "Replicate()", "up": "Shard(0)", "down": "Shard(0)"}
    return rw.refine(sequential, rw.capture_ranks(parallel, {"ep": 2}), given, audit=not bug)


def test_tokens_that_do_not_fit_are_dropped_alike() -> None:
    verdict = refined()
    assert verdict.status == "proved", verdict.reason
    assert verdict.evidence.value == "proved"
    assert {"loss", "y", "grad:router", "grad:up", "grad:down"} <= set(verdict.relation)


@pytest.mark.sample(4)
@pytest.mark.parametrize("bug", ["capacity", "sent back", "own balance", "gradient of balance"])
def test_other_mixtures(bug: str) -> None:
    assert refined(bug).status == "refuted"
