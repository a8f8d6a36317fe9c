"""Shards that lie otherwise than heads do: rows within a head, ranks without rows, one head for each rank."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

import rewright as rw
from rewright.refine.verdict import Verdict
from zoo import steps

_dist: Any = dist
HEADS, WIDTH, ROWS = 2, 8, 8


class Heads(nn.Module):
    """Products of the heads of one projection, so that its gradient is a tensor with an axis of heads."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of every row the products of its heads."""
        heads = self.query(x).unflatten(-1, (HEADS, WIDTH // HEADS))
        return torch.softmax(heads @ heads.transpose(-1, -2), -1)


def step(model: Any, optimizer: Any, x: torch.Tensor, clip: float | None = None) -> dict[str, torch.Tensor]:
    loss: Any = model(x).square().mean()
    loss.backward()
    return steps.finish(model, optimizer, steps.summed(loss.detach() / steps.world_size()), clip)


def sharded(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    fully_shard(model, mesh=mesh)
    return model


def momentum(model: nn.Module, rate: float = 0.1) -> torch.optim.Optimizer:
    return steps.started(torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9))


def trained(rate: float = 0.1) -> Verdict:
    """A step with momentum, of which every rank has two rows of a head of four."""

    def parallel(mesh: DeviceMesh) -> Any:
        model = sharded(Heads(), mesh)
        return step, (model, momentum(model, rate), torch.zeros(ROWS // 4, WIDTH))

    model = Heads()
    sequential = rw.capture(step, (model, momentum(model), torch.zeros(ROWS, WIDTH)))
    return rw.refine(sequential, rw.capture_ranks(parallel, {"dp": 4}), relations={"x": "Shard(0)"})


def test_rows_within_a_head() -> None:
    verdict = trained()
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["updated:query.weight"].placement == "Shard(0)"
    assert trained(rate=0.2).status == "refuted"


class Tokens(nn.Module):
    """Twelve rows over five ranks are three for each of four, and none for the last."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(12, WIDTH), nn.Linear(WIDTH, 12)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores of every token."""
        return self.head(self.embedding(tokens))


def clipped() -> Verdict:
    def parallel(mesh: DeviceMesh) -> Any:
        return step, (sharded(Tokens(), mesh), None, torch.zeros(2, dtype=torch.long), 2.0)

    sequential = rw.capture(step, (Tokens(), None, torch.zeros(10, dtype=torch.long), 2.0))
    return rw.refine(sequential, rw.capture_ranks(parallel, {"dp": 5}), relations={"x": "Shard(0)"})


def test_a_norm_over_ranks_of_which_one_has_no_rows() -> None:
    verdict = clipped()
    assert verdict.status == "proved", verdict.reason
    assert verdict.relation["norm"].placement == "Replicate()"


class Exchanged(torch.autograd.Function):
    """An all-to-all that splits one axis and joins another; the gradient goes the other way."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, split: int, join: int) -> torch.Tensor:
        """What the other ranks have of this rank's part."""
        ctx.axes = split, join
        return exchanged(x, split, join)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """The gradient where it came from."""
        split, join = ctx.axes
        return exchanged(gradients[0], join, split), None, None


def exchanged(x: torch.Tensor, split: int, join: int) -> torch.Tensor:
    parts = torch.stack(x.chunk(dist.get_world_size(), split)).contiguous()
    received = torch.empty_like(parts)
    _dist.all_to_all_single(received, parts)
    return torch.cat(received.unbind(0), join)


def attention(heads: torch.Tensor) -> torch.Tensor:
    """Causal attention of (tokens, batch, heads, 3 x width)."""
    query, key, value = (part.permute(1, 2, 0, 3) for part in heads.chunk(3, -1))
    scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
    later = torch.arange(scores.shape[-1]) > torch.arange(scores.shape[-1])[:, None]
    return (torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ value).permute(2, 0, 1, 3)


def attended(w: torch.Tensor, out: torch.Tensor, x: torch.Tensor, turned: bool = False) -> dict[str, torch.Tensor]:
    parallel = dist.is_initialized()
    exchanging: Any = Exchanged
    exchange: Any = exchanging.apply
    heads: Any = (x @ w).unflatten(-1, (4, 6))
    found = attention(exchange(heads, 2, 0) if parallel else heads)
    found = exchange(found.flip(0) if turned else found, 0, 2) if parallel else found
    loss: Any = (x + found.flatten(2) @ out).square().sum()
    loss.backward()
    for parameter in (w, out) if parallel else ():
        _dist.all_reduce(parameter.grad)
    return {"loss": steps.summed(loss.detach().clone())}


def ulysses(ranks: int, turned: bool = False) -> Verdict:
    """Tokens over ranks, and heads over ranks while they attend; tokens are the first axis."""

    def arguments(tokens: int) -> Any:
        return nn.Parameter(torch.zeros(8, 24)), nn.Parameter(torch.zeros(8, 8)), torch.zeros(tokens, 2, 8)

    sequential = rw.capture(attended, arguments(8))
    program = rw.capture_ranks(lambda mesh: (attended, (*arguments(8 // ranks), turned)), {"sp": ranks})
    relations = {"x": "Shard(0)", "w": "Replicate()", "out": "Replicate()"}
    return rw.refine(sequential, program, relations=relations)


@pytest.mark.sample(2)
@pytest.mark.parametrize("ranks", [2, 4])
def test_heads_over_ranks_while_they_attend(ranks: int) -> None:
    verdict = ulysses(ranks)
    assert verdict.status == "proved", verdict.reason


def test_tokens_in_another_order() -> None:
    assert ulysses(2, turned=True).status == "refuted"


def test_a_module_that_a_step_closes_over_and_is_given_has_its_own_names() -> None:
    model = nn.Linear(4, 2)

    def forward(given: nn.Module, x: torch.Tensor) -> torch.Tensor:
        assert given.training == model.training
        return given(x)

    assert set(rw.capture(forward, (model, torch.zeros(3, 4))).inputs) == {"weight", "bias", "x"}


def swapped(x: torch.Tensor) -> torch.Tensor:
    received = torch.empty_like(x)
    _dist.all_to_all_single(received, x.contiguous())
    return received


def experts(x: torch.Tensor, up: torch.Tensor) -> dict[str, torch.Tensor]:
    """Rows of two ranks for each of two experts, and the sum over all of them."""
    if dist.is_initialized():
        rows = swapped(x.view(2, -1, 4)).flatten(0, 1)[None]
        return {"total": steps.summed(torch.bmm(rows, up).tanh().square().sum())}
    rows = x.view(2, 2, -1, 4).transpose(0, 1).flatten(1, 2)
    return {"total": torch.bmm(rows, up).tanh().square().sum()}


def test_a_sum_at_one_expert_over_the_rows_of_all_ranks_is_a_part_of_the_sum_over_experts() -> None:
    sequential = rw.capture(experts, (torch.zeros(8, 4), torch.zeros(2, 4, 6)))
    program = rw.capture_ranks(lambda mesh: (experts, (torch.zeros(4, 4), torch.zeros(1, 4, 6))), {"ep": 2})
    verdict = rw.refine(sequential, program, relations={"x": "Shard(0)", "up": "Shard(0)"}, audit=True)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


def groups(x: torch.Tensor) -> dict[str, torch.Tensor]:
    """A sum within each group, and one over all groups."""
    total: torch.Tensor = x.sin().sum((0, 1))
    return {"within": x.sin().sum(1).tanh(), "all": (steps.summed(total) if dist.is_initialized() else total).tanh()}


def test_a_sum_within_the_one_group_of_a_rank_is_no_part_of_the_sum_over_groups() -> None:
    sequential = rw.capture(groups, (torch.zeros(2, 4, 3),))
    program = rw.capture_ranks(lambda mesh: (groups, (torch.zeros(1, 4, 3),)), {"dp": 2})
    verdict = rw.refine(sequential, program, relations={"x": "Shard(0)"}, audit=True)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
