"""A mixture of experts of which every token goes to the best few, on one device and with the experts over ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import nn
from torch.distributed.device_mesh import DeviceMesh

Program = tuple[Any, tuple[Any, ...], dict[str, Any]]

CHOSEN, WIDTH, INNER, TOKENS = 2, 4, 6, 3

_torch: Any = torch
_distributed: Any = dist
functional: Any = collectives


class Router(nn.Module):
    """The best experts of every token and their weights, which add up to one: (tokens, chosen) each."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, experts, bias=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores over all experts, of which the largest are kept."""
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), CHOSEN, dim=-1)
        return weights / weights.sum(-1, keepdim=True), chosen


class Mixture(nn.Module):
    """Every expert on the tokens that chose it; ``up`` is (experts, width, inner), ``down`` the other way round."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        self.experts = experts
        self.router = Router(experts)
        self.up = nn.Parameter(torch.randn(experts, WIDTH, INNER))
        self.down = nn.Parameter(torch.randn(experts, INNER, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A loop over experts, as Mixtral's first implementation has it."""
        weights, chosen = self.router(x)
        result = torch.zeros_like(x)
        for expert in range(self.experts):
            tokens, place = torch.where(chosen == expert)
            rows = self.expert(expert, x[tokens]) * weights[tokens, place].unsqueeze(-1)
            result = result.index_add(0, tokens, rows)
        return result

    def expert(self, number: int, rows: torch.Tensor) -> torch.Tensor:
        """One expert, by its place among those held here."""
        return torch.tanh(rows @ self.up[number]) @ self.down[number]


class ParallelMixture(Mixture):
    """The same with the experts over the ranks of a group, and the tokens too (or, with all-reduce, everywhere)."""

    def __init__(self, experts: int, group: Any) -> None:
        super().__init__(experts)
        self.group, self.size = group, dist.get_world_size(group)
        self.own = experts // self.size
        self.first = self.own * dist.get_rank(group)
        mine = slice(self.first, self.first + self.own)
        self.up = nn.Parameter(self.up.detach()[mine].clone())
        self.down = nn.Parameter(self.down.detach()[mine].clone())


def numbers(counts: torch.Tensor) -> list[int]:
    """Counts as Python numbers, which is what split sizes have to be."""
    return cast("Any", counts).tolist()


class AddedUp(torch.autograd.Function):
    """The sum over a group; every rank goes on with the same, so that a gradient is its own part's."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, group: Any) -> torch.Tensor:
        """All-reduce."""
        return functional.all_reduce(x, "sum", group)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        """The gradient as it is."""
        return gradients[0], None


class Reduced(ParallelMixture):
    """Every rank holds all tokens and adds what its own experts make of them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A partial result per rank, added up."""
        weights, chosen = self.router(x)
        result = torch.zeros_like(x)
        for expert in range(self.own):
            tokens, place = torch.where(chosen == self.first + expert)
            rows = self.expert(expert, x[tokens]) * weights[tokens, place].unsqueeze(-1)
            result = result.index_add(0, tokens, rows)
        summing: Any = AddedUp
        return summing.apply(result, self.group)


class Exchanged(ParallelMixture):
    """Tokens travel to the ranks of their experts and back, by all-to-all with the counts of this batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Sort by expert, exchange, sort what arrived by expert, compute, and all of that back."""
        weights, chosen = self.router(x)
        flat = chosen.reshape(-1)
        order = torch.argsort(flat, stable=True)
        counts = torch.bincount(flat, minlength=self.experts)
        arriving = torch.empty_like(counts)
        _distributed.all_to_all_single(arriving, counts, group=self.group)
        send, receive = (numbers(n.view(self.size, self.own).sum(1)) for n in (counts, arriving))
        rows = self.exchange(x[order // CHOSEN], receive, send)
        back = self.exchange(self.computed(rows, arriving), send, receive)
        weighted = back * weights.reshape(-1)[order].unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, order // CHOSEN, weighted)

    def exchange(self, rows: torch.Tensor, receive: list[int], send: list[int]) -> torch.Tensor:
        """Rows to their ranks, with gradients."""
        return functional.all_to_all_single_autograd(rows, receive, send, self.group)

    def computed(self, rows: torch.Tensor, arriving: torch.Tensor) -> torch.Tensor:
        """What the experts make of rows, in the order in which these arrived."""
        owners = torch.arange(self.own).repeat(self.size).repeat_interleave(arriving)
        sorted_ = torch.argsort(owners, stable=True)
        sizes = numbers(arriving.view(self.size, self.own).sum(0))
        parts = [self.expert(number, part) for number, part in enumerate(torch.split(rows[sorted_], sizes))]
        return torch.cat(parts)[torch.argsort(sorted_)]


MIXTURES: dict[str, type[ParallelMixture]] = {"all_reduce": Reduced, "all_to_all": Exchanged}
"""The plans by what moves the tokens."""


def step(model: Mixture, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Output, loss and gradients; over ranks that hold some tokens each, their part of the loss."""
    output = model(x)
    loss = output.pow(2).sum()
    loss.backward()
    return {"output": output, "loss": loss}


def forward(model: Mixture, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The output alone."""
    with torch.no_grad():
        return {"output": model(x)}


def tokens(degree: int) -> torch.Tensor:
    """The tokens of all ranks."""
    _torch.manual_seed(1)
    return torch.randn(TOKENS * degree, WIDTH)


def sequential(degree: int, *, backward: bool) -> Program:
    """The mixture on one device, with two experts for each rank."""
    _torch.manual_seed(0)
    return (step if backward else forward), (Mixture(2 * degree), tokens(degree)), {}


def parallel(plan: str, degree: int, *, backward: bool) -> Callable[[DeviceMesh], Program]:
    """What to build on each rank."""

    def build(mesh: DeviceMesh) -> Program:
        _torch.manual_seed(0)
        model = MIXTURES[plan](2 * degree, mesh.get_group())
        every = tokens(degree)
        mine = every if plan == "all_reduce" else every.chunk(degree)[mesh.get_rank()].clone()
        return (step if backward else forward), (model, mine), {}

    return build
