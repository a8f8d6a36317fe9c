"""What masks are filled with before a softmax is minus infinity, whichever low number it is; the verdict says so."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.engine import Equivalence, equiv
from rewright.equiv.ideal import MASKS
from rewright.ir.graph import Graph

S, D = 6, 4
Masked = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Scores with a mask, of scores and where they are hidden."""


def filled(value: float) -> Masked:
    return lambda scores, hidden: scores.masked_fill(hidden, value)


def added(value: float) -> Masked:
    return lambda scores, hidden: scores + (1.0 - (~hidden).to(scores.dtype)) * value


def attention(masked: Masked, *, ahead: int = 1) -> Graph:
    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        hidden = torch.ones(S, S, dtype=torch.bool).triu(ahead)
        return masked(q @ k.mT / math.sqrt(D), hidden).softmax(-1) @ v

    return rw.capture(program, tuple(torch.zeros(2, S, D) for _ in range(3)))


def verdict(left: Graph, right: Graph) -> Equivalence:
    return equiv(left, right, explain=False)


@pytest.mark.parametrize("other", [filled(-1e9), filled(-1e4), added(-1e4), added(-1e30), filled(-0.7 * 3.4e38)])
def test_low_numbers_are_minus_infinity(other: Masked) -> None:
    found = verdict(attention(filled(-math.inf)), attention(other))
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason
    assert MASKS in found.assumptions
    assert any("no score is as far from nought" in text for text in found.assumptions)


def test_one_number_on_both_sides_is_that_number() -> None:
    found = verdict(attention(filled(-1e9)), attention(filled(-1e9)))
    assert found.status == "proved"
    assert not any("infinity" in text for text in found.assumptions)


def test_what_may_be_a_score_is_no_filling() -> None:
    assert verdict(attention(filled(-math.inf)), attention(filled(-100.0))).status != "proved"
    assert verdict(attention(filled(-math.inf)), attention(filled(-5.0))).status == "refuted"


def test_another_mask_is_another_program() -> None:
    assert verdict(attention(filled(-math.inf)), attention(filled(-1e9), ahead=2)).status == "refuted"


def pooled(value: float) -> Graph:
    return rw.capture(lambda x, m: x.masked_fill(m > 0, value).amax(-1), (torch.zeros(3, 4), torch.zeros(3, 4)))


def kept(value: float) -> Graph:
    """The scores are an output besides."""

    def program(x: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = x.masked_fill(m > 0, value)
        return scores.softmax(-1), scores

    return rw.capture(program, (torch.zeros(3, 4), torch.zeros(3, 4)))


def summed(value: float) -> Graph:
    """The largest score is an output besides, as a part of the logarithm of the sum."""

    def program(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(m > 0, value).logsumexp(-1)

    return rw.capture(program, (torch.zeros(3, 4), torch.zeros(3, 4)))


@pytest.mark.parametrize("first", [True, False])
def test_what_brings_masked_scores_back_leaves_no_filling(first: bool) -> None:
    def brought_back(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        high = torch.where(m > 0, 1e4, 0.0)
        low = torch.where(m > 0, -1e4, 0.0)
        return (x + high + low if first else x + low + high).softmax(-1)

    arguments = (torch.zeros(3, 4), torch.zeros(3, 4))
    masked = rw.capture(lambda x, m: x.masked_fill(m > 0, -math.inf).softmax(-1), arguments)
    assert verdict(masked, rw.capture(brought_back, arguments)).status == "refuted"


@pytest.mark.parametrize(
    "back",
    [
        lambda m: torch.where(m > 0, -5e3, 0.0) * -2.0,
        lambda m: 0.0 - torch.where(m > 0, -9e3, 0.0) - torch.where(m > 0, -1e3, 0.0),
        lambda m: -2.0 * torch.where(m > 0, -5e3, 0.0).exp().log(),
    ],
)
def test_low_numbers_whose_sign_is_turned_bring_masked_scores_back(
    back: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    def brought_back(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return (x + torch.where(m > 0, -1e4, 0.0) + back(m)).softmax(-1)

    arguments = (torch.zeros(3, 4), torch.zeros(3, 4))
    masked = rw.capture(lambda x, m: x.masked_fill(m > 0, -math.inf).softmax(-1), arguments)
    assert verdict(masked, rw.capture(brought_back, arguments)).status != "proved"


@pytest.mark.parametrize("program", [pooled, kept, summed])
def test_what_does_not_end_in_a_softmax_is_no_filling(program: Callable[[float], Graph]) -> None:
    """A row that is masked as a whole shows the number."""
    assert verdict(program(-math.inf), program(-1e9)).status != "proved"


def test_attention_of_jax() -> None:
    jax = pytest.importorskip("jax", reason="captures need the extra rewright[jax]")
    from rewright.frontends.jax import capture

    def written(q: object, k: object, v: object) -> object:
        scores = jax.numpy.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(D)
        seen = jax.numpy.tril(jax.numpy.ones((S, S), bool))
        return jax.numpy.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jax.numpy.where(seen, scores, -1e9), -1), v)

    arguments = [jax.numpy.zeros((2, S, 2, D)) for _ in range(3)]
    left = capture(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), arguments)
    found = verdict(left, capture(written, arguments))
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason
