"""Mixtures that look up the weights of chosen experts, and those that go over all experts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
from torch.nn.functional import silu

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.equiv.rewrites.gather_to_sum import with_cases
from rewright.interp.program import run
from rewright.ir.graph import Graph
from tests.equiv.rewriting import alone

Mixture = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
_EXPERTS, _CHOSEN = 3, 2
_SHAPES = (5, 4), (_EXPERTS, 4), (_EXPERTS, 6, 4), (_EXPERTS, 4, 6)


def program(mixture: Mixture) -> Graph:
    return rw.capture(mixture, tuple(torch.zeros(shape) for shape in _SHAPES))


def route(x: torch.Tensor, router: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    values, places = (x @ router.T).softmax(-1).topk(_CHOSEN, -1)
    return values, places


def over_all(x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    values, places = route(x, router)
    total = torch.zeros_like(x)
    for expert in range(_EXPERTS):
        weight = ((places == expert) * values).sum(-1, keepdim=True)
        total = total + weight * (silu(x @ up[expert].T) @ down[expert].T)
    return total


def looked_up(
    x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor, turned: str = ""
) -> torch.Tensor:
    values, places = route(x, router)
    hidden = silu(torch.einsum("td,tkhd->tkh", x, up[places]))
    rows = places.flip(-1) if turned == "down" else places
    found = torch.einsum("tkh,tkdh->tkd", hidden, down[rows])
    values = values.flip(-1) if turned == "values" else values
    return (found * values[..., None]).sum(1)


def one_by_one(x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    values, places = route(x, router)
    total = torch.zeros_like(x)
    for k in range(_CHOSEN):
        hidden = silu(torch.bmm(up[places[:, k]], x[:, :, None]))
        total = total + values[:, k, None] * torch.bmm(down[places[:, k]], hidden)[:, :, 0]
    return total


@pytest.mark.sample(2)
@pytest.mark.parametrize("other", [one_by_one, looked_up])
def test_experts_that_are_looked_up_are_those_that_were_chosen(other: Mixture) -> None:
    assert equiv(program(over_all), program(other), explain=False).status == "proved"


@pytest.mark.parametrize("turned", ["down", "values"])
def test_experts_of_another_place_are_others(turned: str) -> None:
    def other(x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        return looked_up(x, router, up, down, turned)

    assert equiv(program(over_all), program(other), explain=False).status == "refuted"


def test_sums_over_all_rows_are_what_was_looked_up() -> None:
    """Through sums along other axes, turned axes, two look-ups at other places, and places that meet in the end."""

    def many(x: torch.Tensor, router: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
        values, places = route(x, router)
        first = up[places].transpose(1, 2).exp().sum(-1)[:, :, :, None]
        second = down[places[:, 1]].reshape(5, 1, 24).cumsum(-1).sum(1) + down[places[:, :1]].amax((1, 3)).sum()
        meeting = torch.einsum("tkhd,tjdh->tkj", up[places], down[places.flip(-1)])
        return first.sum((1, 3)) * values + second[:, :2] + meeting.sum(1) + up[places].flatten(1, 2)[:, 5:7, 0]

    graph = program(many)
    summed = alone(with_cases, graph)
    generator = torch.Generator().manual_seed(0)
    names = list(graph.inputs)
    values = {n: torch.randn(s, generator=generator).numpy() for n, s in zip(names, _SHAPES, strict=True)}
    before, after = run(graph, values)["output"], run(summed, values)["output"]
    assert summed != graph
    assert abs(before - after).max() < 1e-12 * abs(before).max()
