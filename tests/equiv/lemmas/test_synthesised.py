"""Rules of the parts that models are written in several ways of: made of one example, proved for all sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import rewright as rw
from rewright.equiv.lemmas.equations import Prover
from rewright.equiv.lemmas.synthesised import FOR_ALL_SIZES, SynthesisedRule, synthesise_rules
from rewright.ir.graph import Graph
from rewright.proof.rewriting.lemma import Lemma

Sides = tuple[Graph, Graph]
Function = Callable[..., torch.Tensor]


def sides(left: Function, right: Function, *shapes: tuple[int, ...]) -> Sides:
    given = tuple(torch.zeros(shape) for shape in shapes)
    return rw.capture(left, given), rw.capture(right, given)


def fused_projections(rows: int, width: int, queries: int, keys: int, *, swapped: bool = False) -> Sides:
    def together(x: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        a, b, c = (x @ torch.cat([q, v, k] if swapped else [q, k, v], 1)).split([queries, keys, keys], -1)
        return torch.cat([a.sin(), b.cos(), c], -1)

    def apart(x: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.cat([(x @ q).sin(), (x @ k).cos(), x @ v], -1)

    return sides(together, apart, (rows, width), (width, queries), (width, keys), (width, keys))


def fused_gates(rows: int, width: int, inner: int, *, swapped: bool = False) -> Sides:
    def together(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        a, b = (x @ torch.cat([up, gate] if swapped else [gate, up], 1)).chunk(2, -1)
        return torch.nn.functional.silu(a) * b

    def apart(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(x @ gate) * (x @ up)

    return sides(together, apart, (rows, width), (width, inner), (width, inner))


def rotations(heads: int, rows: int, half: int, *, swapped: bool = False) -> Sides:
    """Scores of rotated halves, and of neighbours that are rotated, where features lie that way."""

    def halves(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        def turned(x: torch.Tensor) -> torch.Tensor:
            a, b = x.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        return turned(q) @ turned(k).transpose(-1, -2)

    def neighbours(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        def turned(x: torch.Tensor) -> torch.Tensor:
            pairs = x.unflatten(-1, (2, half)).transpose(-1, -2)
            a, b = pairs[..., 1 if swapped else 0], pairs[..., 0 if swapped else 1]
            return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)

        return turned(q) @ turned(k).transpose(-1, -2)

    return sides(halves, neighbours, *[(heads, rows, 2 * half)] * 2, *[(rows, half)] * 2)


def norms(rows: int, width: int, eps: float, *, swapped: bool = False) -> Sides:
    """The root mean square as a quotient by a root, and as a power of the mean, the weight beside one."""

    def quotient(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        size = torch.sqrt((x * x).sum(-1, keepdim=True) / width + eps)
        return x / size * (1 + weight)

    def power(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        normed = x * (x.square().mean(-1, keepdim=True) + eps).pow(-0.5)
        return normed * weight + (0.5 * normed if swapped else normed)

    return sides(quotient, power, (rows, width), (width,))


CASES: list[tuple[str, Callable[..., Sides], tuple[float, ...], tuple[float, ...]]] = [
    ("fused queries, keys and values", fused_projections, (3, 8, 8, 4), (2, 6, 10, 5)),
    ("fused gate and up", fused_gates, (3, 8, 8), (5, 4, 7)),
    ("half and interleaved rotary", rotations, (2, 5, 4), (3, 4, 6)),
    ("norms and one plus the weight", norms, (3, 8, 1e-5), (2, 24, 1e-6)),
]


@pytest.mark.parametrize(("make", "example", "other"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_one_example_gives_a_rule_for_all_sizes(
    make: Callable[..., Sides], example: tuple[float, ...], other: tuple[float, ...]
) -> None:
    prover = Prover()
    scheme = prover.generalise(*make(*example), 60.0)
    assert scheme is not None
    assert scheme.is_general
    assert prover.proves(*make(*other))
    assert prover.attempts == 0
    assert not scheme.covers(*make(*other, swapped=True))


def test_lemmas_that_one_rule_covers_are_listed_under_it() -> None:
    pairs = [fused_gates(3, 8, 8), norms(3, 8, 1e-5), fused_gates(5, 4, 7)]
    lemmas = [Lemma(f"lemma {k}", *pair, "proved", ((f"left:{k}", f"right:{k}"),)) for k, pair in enumerate(pairs)]
    gates, norm = synthesise_rules(lemmas, Prover(), ())
    assert [lemma.name for lemma in gates.lemmas] == ["lemma 0", "lemma 2"]
    assert [lemma.name for lemma in norm.lemmas] == ["lemma 1"]
    assert {gates.evidence, norm.evidence} == {FOR_ALL_SIZES}
    assert str(gates).endswith("used 2 times, at left:0 and right:0; left:2 and right:2")


def test_what_is_not_proved_for_all_sizes_keeps_its_evidence() -> None:
    """A part of which nothing is proved in general is a rule about itself."""
    pair = norms(3, 8, 1e-5, swapped=True)
    (rule,) = synthesise_rules([Lemma("lemma", *pair, "computed at its size")], Prover(), ())
    assert isinstance(rule, SynthesisedRule)
    assert rule.evidence == "computed at its size"
    assert rule.scheme.covers(*pair)
    assert not rule.scheme.covers(*norms(2, 8, 1e-5, swapped=True))
