"""The collectives with gradients of ``torch.distributed.nn``, which cannot be compiled and are traced all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.nn.functional as torch_nn

import rewright as rw

RANKS, ROWS, WIDTH = 2, 8, 6
OWN = ROWS // RANKS
Tensor = torch.Tensor


def mine(x: Tensor) -> Tensor:
    """A rank's share of the rows."""
    return x.chunk(RANKS)[dist.get_rank()]


def regrouped(x: Tensor) -> Tensor:
    """Rows in the order in which an all-to-all of two chunks leaves them on the ranks."""
    return x.reshape(RANKS, RANKS, -1, WIDTH).transpose(0, 1).reshape(ROWS, WIDTH)


CASES: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "all_gather": (lambda x, w: x @ w, lambda x, w: mine(torch.cat(torch_nn.all_gather(x))) @ w),
    "all_reduce": (lambda x, w: x.T @ x @ w, lambda x, w: mine(torch_nn.all_reduce(x.T @ x)) @ w),
    "reduce_scatter": (
        lambda x, w: x.T @ x @ w,
        lambda x, w: torch_nn.reduce_scatter(torch.empty(WIDTH // RANKS, WIDTH), list((x.T @ x).chunk(RANKS))) @ w,
    ),
    "all_to_all": (
        lambda x, w: regrouped(x) @ w,
        lambda x, w: torch.cat(torch_nn.all_to_all([torch.empty(2, WIDTH) for _ in range(2)], list(x.chunk(2)))) @ w,
    ),
    "all_to_all_single": (
        lambda x, w: regrouped(x) @ w,
        lambda x, w: torch_nn.all_to_all_single(torch.empty(OWN, WIDTH), x) @ w,
    ),
    "broadcast": (lambda x, w: x[:OWN] @ w, lambda x, w: mine(torch_nn.broadcast(x, 0)) @ w),
}


def step(function: Callable[..., Tensor]) -> Callable[..., dict[str, Tensor]]:
    def run(x: Tensor, w: Tensor) -> dict[str, Tensor]:
        loss: Any = function(x, w).square().sum()
        loss.backward()
        return {"loss": loss}

    return run


def inputs(rows: int) -> tuple[Tensor, Tensor]:
    return torch.zeros(rows, WIDTH, requires_grad=True), torch.zeros(WIDTH, 4, requires_grad=True)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_go_the_way_they_do_in_eager_mode(name: str) -> None:
    whole, share = (step(function) for function in CASES[name])
    ranks = rw.capture_ranks(lambda mesh: (share, inputs(OWN)), {"dp": RANKS})
    expect = {"loss": "Partial(sum)", "grad:w": "Partial(sum)"}
    verdict = rw.refine(rw.capture(whole, inputs(ROWS)), ranks, {"x": "Shard(0)"}, expect, audit=True)
    assert verdict.status == "proved", verdict.reason
