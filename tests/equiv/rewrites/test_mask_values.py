"""What masks are filled with before a softmax is minus infinity, whichever low number it is; the verdict says so."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright import ops
from rewright.equiv.engine import Equivalence, equiv
from rewright.ir.graph import Graph, GraphBuilder
from rewright.proof.rewriting.numbers.taken import MASKS

S, D = 6, 4
LOWEST = torch.finfo(torch.float32).min
Masked = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Scores with a mask, of scores and where they are hidden."""


def filled(value: float) -> Masked:
    return lambda scores, hidden: scores.masked_fill(hidden, value)


def added(value: float) -> Masked:
    return lambda scores, hidden: scores + (1.0 - (~hidden).to(scores.dtype)) * value


def bounded(value: float) -> Masked:
    def masked(scores: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        mask = (hidden.to(scores.dtype) * value).flip(0).clamp(min=-3e38)
        return scores + torch.maximum(mask, torch.full((S, S), -2e38)).flip(0)

    return masked


def attention(masked: Masked, *, ahead: int = 1) -> Graph:
    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        hidden = torch.ones(S, S, dtype=torch.bool).triu(ahead)
        return masked(q @ k.mT / math.sqrt(D), hidden).softmax(-1) @ v

    return rw.capture(program, tuple(torch.zeros(2, S, D) for _ in range(3)))


def verdict(left: Graph, right: Graph) -> Equivalence:
    return equiv(left, right, explain=False)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "other", [filled(-1e9), filled(-1e4), added(-1e4), added(-1e30), filled(-0.7 * 3.4e38), bounded(-1e9)]
)
def test_low_numbers_are_minus_infinity(other: Masked) -> None:
    found = verdict(attention(filled(-math.inf)), attention(other))
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason
    assert MASKS in found.assumptions
    assert any("no score is as far from nought" in text for text in found.assumptions)


def test_one_number_on_both_sides_is_that_number() -> None:
    found = verdict(attention(filled(-1e9)), attention(filled(-1e9)))
    assert found.status == "proved"
    assert not any("infinity" in text for text in found.assumptions)


def test_one_number_that_is_chosen_here_and_added_there_is_minus_infinity() -> None:
    """As it is, the one leaves nothing of a masked score, and the other all of it."""
    found = verdict(attention(filled(-1e9)), attention(added(-1e9)))
    assert found.status == "proved", found.reason
    assert MASKS in found.assumptions


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


def large(m: torch.Tensor, value: float, other: float = 0.0) -> torch.Tensor:
    return torch.where(m > 0, value, other)


BACK: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a product": lambda m: large(m, 99.0) * large(m, 101.1),
    "an exponential": lambda m: large(m, math.log(1e4), -1e9).exp(),
    "a power": lambda m: large(m, 10.0) ** 4,
    "a quotient": lambda m: large(m, 1.0) / large(m, 1e-4, 1.0),
    "a sum": lambda m: large(m, 90.0)[..., None].expand(3, 4, 112).sum(-1),
    "a running sum": lambda m: large(m, 1.0) * torch.full((101,), 99.0).cumsum(0)[-1],
    "places": lambda m: large(m, 1.0) * torch.arange(142).float().sum(),
    "a contraction": lambda m: large(m, 50.0)[..., None].expand(3, 4, 200) @ torch.ones(200),
    "a seldom running sum": lambda m: large(m, 90.0)[..., None].expand(3, 4, 112).cumsum(-1)[..., -1],
    "a seldom product": lambda m: large(m, 50.0, 1.0)[..., None].expand(3, 4, 3).prod(-1) - 1,
    "a seldom quotient": lambda m: large(m, 1.0) / large(m, 1e-5, -1.0),
    "a seldom scatter": lambda m: (
        large(m, 1.0)
        * torch.zeros(1, 4).index_add(0, torch.zeros(300, dtype=torch.long), large(m, 90.0).repeat(100, 1))
    ),
    "a seldom exponential": lambda m: torch.expm1(large(m, 10.0)),
    "a seldom sum": lambda m: large(m, 90.0)[..., None].expand(3, 4, 112).sum(-1),
}
SCORES = (torch.zeros(3, 4), torch.zeros(3, 4))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", BACK)
def test_small_numbers_add_up_to_what_brings_masked_scores_back(name: str) -> None:
    """What is seldom is seen on no random input."""
    ahead = 9.0 if "seldom" in name else 0.0
    masked = rw.capture(lambda x, m: x.masked_fill(m > ahead, -math.inf).softmax(-1), SCORES)
    other = rw.capture(lambda x, m: (x + large(m - ahead, -1e4) + BACK[name](m - ahead)).softmax(-1), SCORES)
    assert verdict(masked, other).status != "proved"


@pytest.mark.parametrize("low", [-1e4, LOWEST])
def test_what_is_scaled_before_the_exponential_is_no_filling(low: float) -> None:
    def program(value: float) -> Graph:
        def cooled(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
            scores = x.masked_fill(m > 0, value)
            return ((scores - scores.amax(-1, keepdim=True)) / -low).exp()

        return rw.capture(cooled, SCORES)

    assert verdict(program(-math.inf), program(low)).status != "proved"


@pytest.mark.parametrize(
    "back",
    [
        lambda x, m: x + large(m, LOWEST) - 2 * large(m, LOWEST / 2),
        lambda x, m: x + large(m, LOWEST) + large(m, -LOWEST),
        lambda x, m: large(m, LOWEST) * 1e-38 + x,
    ],
)
def test_what_is_as_large_as_the_lowest_number_brings_masked_scores_back(back: Masked) -> None:
    """Seldom, so that no random input shows it."""
    masked = rw.capture(lambda x, m: x.masked_fill(m > 9.0, -math.inf).softmax(-1), SCORES)
    assert verdict(masked, rw.capture(lambda x, m: back(x, m - 9.0).softmax(-1), SCORES)).status != "proved"


@pytest.mark.parametrize("name", ["score", "exponential"])
def test_numbers_beside_a_score_bring_masked_scores_back(name: str) -> None:
    """They are as large where every score is zero."""
    masked = rw.capture(lambda x, m: x.masked_fill(m > 9.0, -math.inf).softmax(-1), SCORES)

    def brought_back(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        many = (0 * x + large(m, 90.0))[..., None].expand(3, 4, 112).sum(-1)
        return x + large(m, -1e4) + (many if name == "score" else torch.exp(x + large(m, 9.3, -1e9)))

    other = rw.capture(lambda x, m: brought_back(x, m - 9.0).softmax(-1), SCORES)
    assert verdict(masked, other).status != "proved"


def test_programs_that_cannot_be_run_show_nothing_of_their_masks() -> None:
    def opaque(graph: Graph) -> Graph:
        builder, places = GraphBuilder(graph.name), list[int]()
        for node in graph.nodes:
            if isinstance(node.op, ops.Input):
                places.append(builder.input(node.op.label, node.op))
            else:
                places.append(builder.add(node.op, *(places[p] for p in node.operands)))
        (last,) = graph.outputs.values()
        kernel = ops.CustomCall("kernel", (), (graph.nodes[last].type,), 0)
        builder.output("output", builder.add(kernel, places[last]))
        return builder.build()

    sides = [attention(filled(value)) for value in (-math.inf, -1e9)]
    assert verdict(*sides).status == "proved"
    found = verdict(*(opaque(side) for side in sides))
    assert found.status == "unknown"
    assert "cannot be run" in found.reason
    assert verdict(opaque(sides[1]), opaque(sides[1])).status == "proved"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("written", "status"),
    [
        (lambda x, m: x + (m.float() - 1) * 1e9, "proved"),
        (lambda x, m: x - (1 - m.float()) * 1e9, "proved"),
        (lambda x, m: x + (1 - m.float()[:, None, :]).reshape(3, 4) * -1e4, "proved"),
        (lambda x, m: x + torch.minimum((m.float() - 1) * 1e9, (m.float() - 1) * 1e6), "proved"),
        (lambda x, m: x + (m.float() - 1) * 100, "other"),
        (lambda x, m: x + (1 - m.float()) * 1e9, "refuted"),
        (lambda x, m: x + torch.maximum((m.float() - 1) * 1e9, (m.roll(1, -1).float() - 1) * 1e9), "refuted"),
    ],
)
def test_masks_made_of_truth_values(written: Masked, status: str) -> None:
    masked = rw.capture(lambda x, m: x.masked_fill(m <= 0, -math.inf).softmax(-1), SCORES)
    found = verdict(masked, rw.capture(lambda x, m: written(x, m > 0).softmax(-1), SCORES))
    assert found.status == status or (status == "other" and found.status != "proved"), found.reason


def test_the_logarithm_of_a_softmax() -> None:
    """A filling where an exponential follows; where the logarithm is seen, it is the number that it is."""

    def program(value: float, *, seen: bool) -> Graph:
        def logs(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
            found = x.masked_fill(m > 0, value).log_softmax(-1)
            return found if seen else found.exp()

        return rw.capture(logs, SCORES)

    assert verdict(program(-math.inf, seen=False), program(-1e9, seen=False)).status == "proved"
    assert verdict(program(-math.inf, seen=True), program(-1e9, seen=True)).status != "proved"


@pytest.mark.parametrize("program", [pooled, kept, summed])
def test_what_does_not_end_in_a_softmax_is_no_filling(program: Callable[[float], Graph]) -> None:
    """A row that is masked as a whole shows the number."""
    assert verdict(program(-math.inf), program(-1e9)).status != "proved"


def test_attention_of_jax() -> None:
    jax = pytest.importorskip("jax", reason="captures need the extra rewright[jax]")
    from rewright.frontends.jax.capture import capture

    def written(q: object, k: object, v: object) -> object:
        scores = jax.numpy.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(D)
        seen = jax.numpy.tril(jax.numpy.ones((S, S), bool))
        return jax.numpy.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jax.numpy.where(seen, scores, -1e9), -1), v)

    arguments = [jax.numpy.zeros((2, S, 2, D)) for _ in range(3)]
    left = capture(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), arguments)
    found = verdict(left, capture(written, arguments))
    assert (found.status, str(found.evidence)) == ("proved", "proved"), found.reason
