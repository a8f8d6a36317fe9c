"""A bias that one rank alone adds before a share is taken: the share of a sum is the sum of shares, over all ranks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import Equivalence, equiv
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram
from tests.equiv.test_ranks_of_models import summed, values

EXPERTS, TOKENS, IN, OUT = 3, 5, 4, 6
Layer = Callable[["Expert", torch.Tensor, torch.Tensor], torch.Tensor]


class Expert(torch.nn.Module):
    """Matrices with biases, and what is made of them, a tensor and a share of every expert."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor, layer: Layer) -> None:
        super().__init__()
        self.weight, self.bias, self.layer = torch.nn.Parameter(weight), torch.nn.Parameter(bias), layer

    def forward(self, x: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        return self.layer(self, x, shares)


def one_by_one(self: Expert, x: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    parts = [(x @ self.weight[e] + self.bias[e]) * shares[:, e : e + 1] for e in range(EXPERTS)]
    return torch.stack(parts).sum(0)


def together(self: Expert, x: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    return ((x[None] @ self.weight + self.bias[:, None]) * shares.T[..., None]).sum(0)


def unshared(self: Expert, x: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    return (x[None] @ self.weight * shares.T[..., None] + self.bias[:, None]).sum(0)


def of_another(self: Expert, x: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    product = x[None] @ self.weight * shares.T[..., None]
    return (product + self.bias[:, None] * shares.roll(1, -1).T[..., None]).sum(0)


def compared(left: Layer, right: Layer, ranks_with_bias: tuple[int, ...] = (0,), after: bool = False) -> Equivalence:
    """All experts on one device against two ranks with half of every matrix, some of which have the biases."""
    generator = torch.Generator().manual_seed(0)
    weight, bias = (torch.randn(s, generator=generator) for s in ((EXPERTS, IN, OUT), (EXPERTS, OUT)))
    whole, half = Expert(weight, bias, left), IN // 2
    parts = [
        Expert(weight[:, half * r : half * (r + 1)].contiguous(), bias if r in ranks_with_bias else 0 * bias, right)
        for r in range(2)
    ]
    shares = torch.zeros(TOKENS, EXPERTS)
    graphs = [summed(rw.capture(part, (torch.zeros(TOKENS, half), shares)), squared=after) for part in parts]
    cut = {f"x@{r}": f"x[0:{TOKENS}, {half * r}:{half * (r + 1)}]" for r in range(2)}
    program = RankProgram(tuple(graphs), Mesh.of({"tp": 2}), {}, {})
    return equiv(_captured(whole, shares, after), program, (values(whole), [values(p) for p in parts]), relations=cut)


def _captured(whole: Expert, shares: torch.Tensor, after: bool) -> Graph:
    graph = rw.capture(whole, (torch.zeros(TOKENS, IN), shares))
    return summed(graph, over=1, squared=True) if after else graph


@pytest.mark.sample(2)
@pytest.mark.parametrize("layer", [one_by_one, together])
@pytest.mark.parametrize("after", [False, True])
def test_one_rank_adds_the_bias(layer: Layer, after: bool) -> None:
    """Also where what all ranks hold is squared afterwards, which no part of a sum may be."""
    verdict = compared(layer, layer, after=after)
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


@pytest.mark.parametrize("layer", [one_by_one, together])
@pytest.mark.parametrize("ranks_with_bias", [(), (0, 1)])
def test_no_rank_or_every_rank_adds_it(layer: Layer, ranks_with_bias: tuple[int, ...]) -> None:
    assert compared(layer, layer, ranks_with_bias).status == "refuted"


@pytest.mark.parametrize("layer", [unshared, of_another])
def test_a_bias_with_another_share(layer: Layer) -> None:
    assert compared(together, layer).status == "refuted"
