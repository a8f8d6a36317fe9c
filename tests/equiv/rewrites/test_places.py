"""Weights of experts written at the places of a choice, and the same ones in sums over what is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch
import torch.nn.functional as functional

import rewright as rw
from rewright.equiv.engine import equiv
from rewright.ops import Scatter
from tests.equiv.rewriting import alone, law

Tensor = torch.Tensor
TOKENS, EXPERTS = 5, 4
LOGITS = torch.zeros(TOKENS, EXPERTS)
MIXTURE = torch.zeros(TOKENS, 8), torch.zeros(EXPERTS, 8), torch.zeros(EXPERTS, 6, 8), torch.zeros(EXPERTS, 8, 6)
Weigh = Callable[[Tensor], Tensor]


def written(logits: Tensor) -> Tensor:
    weights, chosen = logits.softmax(-1).topk(2, -1)
    return torch.zeros(TOKENS, EXPERTS).scatter(1, chosen, weights)


def added(logits: Tensor) -> Tensor:
    weights, chosen = logits.softmax(-1).topk(2, -1)
    return torch.zeros(TOKENS, EXPERTS).scatter_add(1, chosen, weights)


def one_hot(logits: Tensor) -> Tensor:
    weights, chosen = logits.softmax(-1).topk(2, -1)
    return (functional.one_hot(chosen, EXPERTS).float() * weights[..., None]).sum(1)


def each(logits: Tensor) -> Tensor:
    weights, chosen = logits.softmax(-1).topk(2, -1)
    return torch.stack([torch.where(chosen == e, weights, 0.0).sum(-1) for e in range(EXPERTS)], -1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("right", [added, one_hot, each])
@pytest.mark.parametrize("left", [written, one_hot])
def test_weights_of_experts(left: Weigh, right: Weigh) -> None:
    verdict = equiv(rw.capture(left, (LOGITS,)), rw.capture(right, (LOGITS,)))
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


def batched(x: Tensor, router: Tensor, up: Tensor, down: Tensor, weigh: Weigh = written) -> Tensor:
    inner = functional.silu(torch.einsum("td,emd->etm", x, up))
    return torch.einsum("etm,edm,te->td", inner, down, weigh(x @ router.T))


def in_a_loop(
    x: Tensor, router: Tensor, up: Tensor, down: Tensor, weigh: Weigh = one_hot, experts: int = EXPERTS
) -> Tensor:
    weights, total = weigh(x @ router.T), torch.zeros_like(x)
    for e in range(experts):
        part = functional.silu(x @ up[e].T) @ down[e].T
        total = total.index_add(0, torch.arange(TOKENS), weights[:, e, None] * part)
    return total


@pytest.mark.sample(3)
@pytest.mark.parametrize("weigh", [written, one_hot, each])
def test_experts_in_a_loop(weigh: Weigh) -> None:
    def right(x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> Tensor:
        return in_a_loop(x, router, up, down, weigh)

    verdict = equiv(rw.capture(batched, MIXTURE), rw.capture(right, MIXTURE))
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason


def test_a_loop_that_leaves_out_an_expert() -> None:
    def right(x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> Tensor:
        return in_a_loop(x, router, up, down, experts=EXPERTS - 1)

    assert equiv(rw.capture(batched, MIXTURE), rw.capture(right, MIXTURE), explain=False).status == "refuted"


def test_what_differs_in_a_loop_is_named_where_the_other_side_has_one_product() -> None:
    """No tensor of the loop is one of the other program; each is what that has for one expert."""

    def right(x: Tensor, router: Tensor, up: Tensor, down: Tensor) -> Tensor:
        weights, total = each(x @ router.T), torch.zeros_like(x)
        for e in range(EXPERTS):
            total = total + weights[:, e, None] * (functional.gelu(x @ up[e].T) @ down[e].T)
        return total

    (finding,) = equiv(rw.capture(batched, MIXTURE), rw.capture(right, MIXTURE)).findings
    assert finding.kind == "activation"


def some(logits: Tensor) -> Tensor:
    """The places are computed, so that two of them may be one."""
    weights, chosen = logits.softmax(-1).topk(2, -1)
    return torch.zeros(TOKENS, EXPERTS).scatter(1, chosen // 2, weights)


def into_ones(logits: Tensor) -> Tensor:
    weights, chosen = logits.softmax(-1).topk(2, -1)
    return torch.ones(TOKENS, EXPERTS).scatter(1, chosen, weights)


def over_tokens(logits: Tensor) -> Tensor:
    """Rows choose along the axis that is not theirs, so that two rows may write at one place."""
    weights, chosen = logits.softmax(-1).topk(2, -1)
    return torch.zeros(TOKENS, EXPERTS).scatter(0, chosen, weights)


def test_places_beside_the_number_of_their_row() -> None:
    """As JAX writes them, with places below zero counted from the end."""
    jax = pytest.importorskip("jax", reason="needs the extra rewright[jax]")
    numbers = jax.numpy

    def at_rows(x: Any) -> Any:
        weights, chosen = jax.lax.top_k(x, 2)
        return numbers.zeros(x.shape).at[numbers.arange(TOKENS)[:, None], chosen].set(weights)

    def at_one_row(x: Any) -> Any:
        weights, chosen = jax.lax.top_k(x, 2)
        return numbers.zeros(x.shape).at[numbers.zeros((TOKENS, 1), int), chosen].set(weights)

    def in_sums(x: Any) -> Any:
        weights, chosen = jax.lax.top_k(x, 2)
        return (jax.nn.one_hot(chosen, EXPERTS) * weights[..., None]).sum(1)

    x = numbers.zeros((TOKENS, EXPERTS))
    verdict = equiv(rw.capture(at_rows, (x,)), rw.capture(in_sums, (x,)))
    assert (verdict.status, str(verdict.evidence)) == ("proved", "proved"), verdict.reason
    kept = alone(law("places"), rw.capture(at_one_row, (x,)))
    assert [node.op.kind for node in kept.nodes if isinstance(node.op, Scatter)] == ["replace"]


@pytest.mark.parametrize("weigh", [some, into_ones, over_tokens])
def test_what_may_be_written_twice_or_over_something_stays(weigh: Weigh) -> None:
    graph, other = rw.capture(weigh, (LOGITS,)), rw.capture(added, (LOGITS,))
    kept = alone(law("places"), graph)
    kinds = [node.op.kind for node in kept.nodes if isinstance(node.op, Scatter)]
    assert kinds == ["replace"]
    assert equiv(graph, other, explain=False).status != "proved"
