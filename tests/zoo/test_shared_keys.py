"""More ranks than heads of keys: ranks with one head of queries each add up the gradients of the key they share."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.distributed.device_mesh import DeviceMesh

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo.patterns.pattern import dist, enter, reduced, weight

ROWS, WIDTH, SIZE = 5, 6, 4
Step = dict[str, torch.Tensor]


def attention(query: torch.Tensor, key: torch.Tensor) -> Any:
    """Heads of queries over keys that are values too."""
    return (torch.softmax(query @ key.transpose(1, 2), -1) @ key).square().sum()


def products(query: torch.Tensor, key: torch.Tensor) -> Any:
    """No function between queries and keys."""
    return (query * key).sum()


def scores(query: torch.Tensor, key: torch.Tensor) -> Any:
    """Products of scores."""
    return (query @ key.transpose(1, 2)).square().sum()


def in_heads(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).view(ROWS, -1, SIZE).transpose(0, 1)


def refined(loss_of: Any, ranks: int, shared: int, bug: str = "") -> Verdict:
    """``shared`` heads of keys, a head of queries on each rank; behind attention there is a gradient of its input."""
    several, learned = ranks // shared, loss_of is not products

    def whole(x: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> Step:
        loss = loss_of(in_heads(x, query), in_heads(x, key).repeat_interleave(several, 0))
        loss.backward()
        return {"loss": loss}

    def parallel(mesh: DeviceMesh) -> Any:
        rank = mesh.get_rank()
        near = [[n * several + k for k in range(several)] for n in range(shared)]
        far = [[n * shared + k for n in range(several)] for k in range(shared)]
        made = [(ranks, dist.new_group(ranks)) for ranks in (far if bug == "group" else near)]
        groups = {r: group for ranks, group in made for r in ranks}

        def step(x: torch.Tensor, query: Any, key: Any) -> Step:
            loss = loss_of(in_heads(enter(x), query), in_heads(enter(x), key))
            loss.backward()
            if bug != "missing":
                dist.all_reduce(key.grad, group=groups[rank])
            if bug == "mean":
                key.grad.div_(several)
            return {"loss": reduced(loss.detach())}

        return step, (torch.zeros(ROWS, WIDTH, requires_grad=learned), weight(WIDTH, SIZE), weight(WIDTH, SIZE))

    x = torch.zeros(ROWS, WIDTH, requires_grad=learned)
    sizes = x, weight(WIDTH, ranks * SIZE), weight(WIDTH, shared * SIZE)
    held = [f"concat([{', '.join(f'key@{n * several + k}' for n in range(shared))}], axis=1)" for k in range(several)]
    given = {"x": "Replicate()", "query": "Shard(1)", "key": held}
    return rw.refine(rw.capture(whole, sizes), rw.capture_ranks(parallel, {"tp": ranks}), given, audit=True)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("loss_of", "ranks", "shared"),
    [(attention, 4, 2), (attention, 4, 1), (attention, 6, 3), (products, 4, 2), (scores, 4, 2)],
)
def test_gradients_of_shared_keys(loss_of: Any, ranks: int, shared: int) -> None:
    verdict = refined(loss_of, ranks, shared)
    assert verdict.status == "proved", verdict.reason
    assert "@0" in verdict.relation["grad:key"].equation


@pytest.mark.sample(3)
@pytest.mark.parametrize("loss_of", [attention, products])
@pytest.mark.parametrize("bug", ["group", "missing", "mean"])
def test_gradients_that_are_added_up_wrongly(loss_of: Any, bug: str) -> None:
    verdict = refined(loss_of, 4, 2, bug)
    assert verdict.status == "refuted"
    assert verdict.relation["loss"].holds
    assert not verdict.relation["grad:key"].holds
