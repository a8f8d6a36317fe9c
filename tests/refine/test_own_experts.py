"""Experts on ranks: each computes the routes to its own, as ``index // local == rank``, and the ranks are added up."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

import rewright as rw
from rewright.refine.verdict import Verdict

EXPERTS, CHOSEN, WIDTH, TOKENS = 4, 2, 6, 5


class _Copied(torch.autograd.Function):
    """What every rank has: its gradients are added up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _summed(grad)


class _Added(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _summed(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


def _summed(x: Tensor) -> Tensor:
    x = x.contiguous().clone()
    dist.all_reduce(x)
    return x


class Mixture(nn.Module):
    """Two experts for every token, their results weighted by the router; of a rank ``local`` experts."""

    def __init__(self, local: int, test: str = "", products: str = "batched", bug: str = "") -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.zeros(local, 3, WIDTH))
        self.down = nn.Parameter(torch.zeros(local, WIDTH, 3))
        self.test, self.products, self.bug = test, products, bug

    def forward(self, x: Tensor) -> Tensor:
        return self.routed(x).square().sum()

    def routed(self, x: Tensor) -> Tensor:
        """The sum of the chosen experts' results."""
        score, index = self.router(x).softmax(-1).topk(CHOSEN, -1)
        local = self.up.shape[0]
        if self.test:
            x, score = _Copied.apply(x), score if self.bug == "router" else _Copied.apply(score)
            index, score = self._own(index, score, local)
        y = getattr(self, self.products)(x, index, score, local)
        return _Added.apply(y) if self.test else y

    def _own(self, index: Tensor, score: Tensor, local: int) -> tuple[Tensor, Tensor]:
        """The routes to own experts; the others name one past the last, with weight zero."""
        rank = dist.get_rank()
        if self.test == "quotient":
            others, own = index // local != rank + (self.bug == "next rank"), index % local
        else:
            others, own = (index < rank * local) | (index >= (rank + 1) * local), index - rank * local
        kept = score if self.bug == "weights" else score.masked_fill(others, 0.0)
        return torch.where(others, local, own), kept

    def batched(self, x: Tensor, index: Tensor, score: Tensor, local: int) -> Tensor:
        """The matrices of its experts for every route."""
        chosen = index.reshape(-1).clamp(0, local - 1)
        rows = x.repeat_interleave(CHOSEN, dim=0).unsqueeze(-1)
        found = torch.bmm(self.down[chosen], torch.bmm(self.up[chosen], rows).tanh()).squeeze(-1)
        return (found * score.reshape(-1, 1)).view(TOKENS, CHOSEN, WIDTH).sum(1)

    def grouped(self, x: Tensor, index: Tensor, score: Tensor, local: int) -> Tensor:
        """The routes sorted by expert, a product for every group, and the results put back."""
        ids, order = torch.sort(index.reshape(-1))
        counts = torch.histc(ids.float(), bins=local, min=0, max=local - 1)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        others = (ids >= local).unsqueeze(-1)
        rows = x[order // CHOSEN].masked_fill(others, 0.0)
        rows = self._by_group(self._by_group(rows, self.up, ends).masked_fill(others, 0.0).tanh(), self.down, ends)
        rows = rows.masked_fill(others, 0.0) * score.reshape(-1)[order].unsqueeze(-1)
        if self.bug == "order":
            return rows.view(-1, CHOSEN, WIDTH).sum(1)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel())
        return rows[back].view(-1, CHOSEN, WIDTH).sum(1)

    @staticmethod
    def _by_group(rows: Tensor, weights: Tensor, ends: Tensor) -> Tensor:
        places = torch.arange(rows.shape[0], dtype=torch.int32)
        own = (ends.unsqueeze(0) <= places.unsqueeze(1)).sum(1).unsqueeze(1) == torch.arange(weights.shape[0])
        return torch.where(own.unsqueeze(-1), torch.einsum("ij,ekj->iek", rows, weights), 0.0).sum(1)

    def one_hot(self, x: Tensor, index: Tensor, score: Tensor, local: int) -> Tensor:
        """Every expert on every token, of which those chosen are picked out."""
        picked = nn.functional.one_hot(index, local + 1)[..., :local].to(x.dtype)
        return torch.einsum("tk,tke,tej->tj", score, picked, self._every(x))

    def scattered(self, x: Tensor, index: Tensor, score: Tensor, local: int) -> Tensor:
        """The same with weights that are added up by expert, in a row that has one place too many."""
        weights = torch.zeros(TOKENS, local + 1).scatter_add(1, index, score)[:, :local]
        return torch.einsum("te,tej->tj", weights, self._every(x))

    def _every(self, x: Tensor) -> Tensor:
        return torch.einsum("eih,teh->tei", self.down, torch.einsum("ehi,ti->teh", self.up, x).tanh())


def refined(test: str, products: str, bug: str = "") -> Verdict:
    inputs = (torch.zeros(TOKENS, WIDTH),)
    sequential = rw.capture(Mixture(EXPERTS, products=products), inputs, backward=True)
    ranks = rw.capture_ranks(
        lambda mesh: (Mixture(EXPERTS // 2, test, products, bug), inputs), {"ep": 2}, backward=True
    )
    return rw.refine(sequential, ranks, relations={"up": "Shard(0)", "down": "Shard(0)"}, audit=not bug)


@pytest.mark.parametrize("products", ["batched", "grouped", "one_hot", "scattered"])
@pytest.mark.parametrize("test", ["quotient", "comparisons"])
def test_experts_of_ranks_are_those_of_one_device(test: str, products: str) -> None:
    verdict = refined(test, products)

    assert verdict.status == "proved" and verdict.evidence.value == "proved", verdict.reason
    assert {"grad:router.weight", "grad:up", "grad:down"} <= set(verdict.relation)


@pytest.mark.parametrize("bug", ["next rank", "weights", "router"])
def test_routes_to_others_that_count_and_gradients_that_are_not_added_up_are_found(bug: str) -> None:
    """Routes of another rank, weights of routes that others have, a router whose gradients stay local."""
    assert refined("quotient", "batched", bug).status == "refuted"


@pytest.mark.parametrize("bug", ["next rank", "order"])
def test_groups_of_other_ranks_and_rows_that_are_not_put_back_are_found(bug: str) -> None:
    assert refined("quotient", "grouped", bug).status == "refuted"


@pytest.mark.long
def test_layers_of_experts_in_groups() -> None:
    """Each layer sorts in an order of its own; parts that are equal are written down once for all of them."""

    class Layers(nn.Module):
        def __init__(self, local: int, test: str) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Mixture(local, test, "grouped") for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = x + layer.routed(x)
            return x.square().sum()

    inputs = (torch.zeros(TOKENS, WIDTH),)
    sequential = rw.capture(Layers(EXPERTS, ""), inputs, backward=True)
    ranks = rw.capture_ranks(lambda mesh: (Layers(EXPERTS // 2, "quotient"), inputs), {"ep": 2}, backward=True)
    given = {"layers.*.up": "Shard(0)", "layers.*.down": "Shard(0)"}
    verdict = rw.refine(sequential, ranks, relations=given, audit=True)
    assert verdict.status == "proved" and verdict.evidence.value == "proved", verdict.reason


def test_ranks_that_sort_their_own_tokens() -> None:
    """The model on one device sorts the tokens of all ranks at once."""

    def step(model: Mixture, x: Tensor, over: Any = None) -> Tensor:
        loss = model(x)
        loss.backward()
        for gradient in (p.grad for p in model.parameters() if over is not None):
            dist.all_reduce(gradient)
        return _summed(loss.detach()) if over is not None else loss.detach()

    def model() -> Mixture:
        return Mixture(EXPERTS, products="grouped")

    sequential = rw.capture(lambda m, x: step(m, x), (model(), torch.zeros(2 * TOKENS, WIDTH)))
    ranks = rw.capture_ranks(
        lambda mesh: (lambda m, x: step(m, x, mesh), (model(), torch.zeros(TOKENS, WIDTH))), {"dp": 2}
    )
    verdict = rw.refine(sequential, ranks, relations={"x": "Shard(0)"}, audit=True)
    assert verdict.status == "proved" and verdict.evidence.value == "proved", verdict.reason
    assert {"grad:router.weight", "grad:up", "grad:down"} <= set(verdict.relation)
