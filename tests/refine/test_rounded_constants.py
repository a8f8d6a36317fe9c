"""Programs that differ in how constants are rounded, and programs that differ in the constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
import torch

import rewright as rw
from rewright import ops
from rewright.interp.program import run
from rewright.ops.base import Array
from rewright.proof.checker import audit
from rewright.proof.refusal import Refused
from rewright.refine.verdict import Verdict
from tests.programs import Builder

Function = Callable[[torch.Tensor], torch.Tensor]

SAME: dict[str, tuple[Function, Function, str]] = {
    "a third": (lambda x: x / 3, lambda x: x * (1 / 3), "0.3333333333333333 for 1/3"),
    "decimals": (lambda x: x * 0.1 * 3, lambda x: x * 0.3, "0.1 for 1/10, 0.3 for 3/10"),
    "what is left of one": (lambda x: 0.9 * x, lambda x: x - 0.1 * x, "0.1 for 1/10, 0.9 for 9/10"),
    "a quotient of decimals": (lambda x: x * (0.1 / 30), lambda x: x * 0.1 / 30, "0.0033333333333333335 for 1/300"),
    "a root twice": (
        lambda x: x / 2,
        lambda x: x / math.sqrt(2) / math.sqrt(2),
        "1.4142135623730951 for the root of 2",
    ),
    "a root and its inverse": (
        lambda x: x / math.sqrt(6),
        lambda x: x * math.sqrt(0.5) * math.sqrt(1 / 3),
        "0.5773502691896257 for the root of 1/3",
    ),
    "behind a function": (
        lambda x: torch.tanh(x / 7),
        lambda x: torch.tanh(x * (1 / 7)),
        "0.14285714285714285 for 1/7",
    ),
    "single precision": (
        lambda x: x / 3,
        lambda x: x * float(torch.tensor(1 / 3)),
        "0.3333333432674408 for 1/3",
    ),
}
OTHER: dict[str, tuple[Function, Function]] = {
    "too few digits": (lambda x: x / 3, lambda x: x * 0.333333),
    "a digit beside the last": (lambda x: x / 3, lambda x: x * (1 / 3 + 1e-13)),
    "another third": (lambda x: x / 3, lambda x: x * (2 / 3)),
    "another root": (lambda x: x / 2, lambda x: x / math.sqrt(2) / math.sqrt(3)),
    "another sign": (lambda x: x / 3, lambda x: x * -(1 / 3)),
    "one root of two": (lambda x: x / 2, lambda x: x / math.sqrt(2)),
    "just below a whole number": (
        lambda x: x * torch.floor(torch.full_like(x, 3.0)),
        lambda x: x * torch.floor(torch.full_like(x, 2.9999999999999996)) + 0.1 * x - x / 10,
    ),
}


def compared(left: Function, right: Function) -> Verdict:
    sequential = rw.capture(lambda x: {"y": left(x)}, (torch.zeros(6, 4),))
    ranks = rw.capture_ranks(lambda mesh: ((lambda x: {"y": right(x)}), (torch.zeros(3, 4),)), {"dp": 2})
    return rw.refine(sequential, ranks, {"x": "Shard(0)"}, audit=True)


@pytest.mark.parametrize("name", SAME)
def test_constants_that_are_rounded_from_one_number(name: str) -> None:
    left, right, text = SAME[name]
    verdict = compared(left, right)
    assert verdict.status == "proved", verdict.reason
    assert verdict.evidence.value == "proved"
    assert any(text in assumption for assumption in verdict.assumptions), verdict.assumptions


@pytest.mark.parametrize("name", OTHER)
def test_other_constants(name: str) -> None:
    assert compared(*OTHER[name]).status != "proved"


def test_rounding_that_is_amplified_is_a_difference() -> None:
    """Zero for three tenths, and not for the number that is there; all other outputs are right but for rounding."""
    near = 0.29999999999999993

    def whole(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"wrong": x * 3, **{f"right{k}": torch.tanh(x / 3) * k for k in range(2, 8)}}

    def part(x: torch.Tensor) -> dict[str, torch.Tensor]:
        off = 3 - torch.full_like(x, near) * 10
        return {"wrong": x * 3 + x * off * 1e15, **{f"right{k}": torch.tanh(x * (1 / 3)) * k for k in range(2, 8)}}

    ranks = rw.capture_ranks(lambda mesh: (part, (torch.zeros(3, 4),)), {"dp": 2})
    verdict = rw.refine(rw.capture(whole, (torch.zeros(6, 4),)), ranks, {"x": "Shard(0)"})
    assert verdict.status == "refuted"
    assert "wrong" in verdict.reason


def test_every_constant_that_stands_for_a_number_is_named() -> None:
    def thirds(x: torch.Tensor) -> torch.Tensor:
        for n in range(3, 60, 2):
            x = torch.tanh(x) * (1 / n)
        return x

    def divided(x: torch.Tensor) -> torch.Tensor:
        for n in range(3, 60, 2):
            x = torch.tanh(x) / n
        return x

    verdict = compared(divided, thirds)
    assert verdict.status == "proved", verdict.reason
    (text,) = (text for text in verdict.assumptions if "stand for" in text)
    assert all(f" for 1/{n}" in text for n in range(3, 60, 2))


def test_what_is_alike_rests_on_nothing() -> None:
    verdict = compared(lambda x: torch.tanh(x * 0.1) * 0.3, lambda x: 0.3 * torch.tanh(0.1 * x))
    assert verdict.status == "proved"
    assert len(verdict.assumptions) == 1


def test_a_certificate_says_what_constants_stand_for() -> None:
    verdict = compared(*SAME["a third"][:2])
    certificate = verdict.certificate
    assert certificate is not None
    assert verdict.programs is not None
    audit(certificate, *verdict.programs)
    silent = replace(certificate, assumptions=certificate.assumptions[:1])
    other = replace(certificate, assumptions=(*certificate.assumptions[:1], "constants are what they are"))
    for forged in (silent, other):
        with pytest.raises(Refused):
            audit(forged, *verdict.programs)


ROOTS = (math.sqrt(2), math.sqrt(0.5), math.sqrt(6))
NUMBERS = (1 / 3, 2 / 3, 0.1, 0.3, 0.1 + 0.2, 0.9, 1 / 7, *ROOTS, 3.0, 2.0, 0.5, math.pi)
POINTS = np.array([0.3, 1.1, -0.7])


def expression(random: Random, build: Builder, x: int, depth: int) -> int:
    """Sums and products of a tensor and such numbers."""
    if depth == 0:
        return x if random.random() < 0.5 else build.full(random.choice(NUMBERS), x)
    left = expression(random, build, x, depth - 1)
    kind = random.randrange(6)
    if kind < 3:
        return build.add(ops.Divide() if kind == 0 else ops.Multiply(), left, build.full(random.choice(NUMBERS), x))
    if kind == 3:
        return build.add(ops.Tanh(), left)
    return build.add(ops.Add() if kind == 4 else ops.Subtract(), left, expression(random, build, x, depth - 1))


def programs() -> Iterator[rw.Graph]:
    for seed in range(1500):
        random, build = Random(seed), Builder("numbers")
        build.output("y", expression(random, build, build.tensor("x", (3,)), 2))
        yield build.build()


def at(graph: rw.Graph, x: Array) -> Array:
    return run(graph, {"x": x})["y"]


def test_no_verdict_on_random_numbers_is_wrong() -> None:
    """Programs that agree at three points to nine digits: equal but for rounding, or not."""
    alike: dict[tuple[float, ...], list[rw.Graph]] = {}
    for graph in programs():
        alike.setdefault(tuple(np.round(at(graph, POINTS), 9)), []).append(graph)
    pairs = [pair for graphs in alike.values() for pair in pairwise(graphs[:4])]
    read, others = 0, np.random.default_rng(0).normal(size=(20, 3))
    for left, right in Random(0).sample(pairs, 60):
        verdict = rw.refine(left, [right], {"x": "Replicate()"})
        off = max(float(np.abs(at(left, x) - at(right, x)).max() / (1 + np.abs(at(left, x)).max())) for x in others)
        assert off < 1e-12 or verdict.status != "proved"
        assert off > 1e-14 or verdict.status != "refuted"
        read += verdict.status == "proved" and len(verdict.assumptions) > 1
    assert read > 10
