"""What is known of the elements of a tensor holds for what programs compute."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.analysis.values import Setting, facts_of
from rewright.interp.program import run_nodes
from rewright.ops.facts import Facts

X = torch.zeros(4, 4)
LATER = torch.ones(4, 4).triu(1).bool()
PROGRAMS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "an input": (lambda x: x + 0.0, "real"),
    "softmax": (lambda x: x.softmax(-1), "positive"),
    "masked softmax": (lambda x: x.masked_fill(LATER, -math.inf).softmax(-1), "nonnegative"),
    "exponentials of a masked row": (
        lambda x: (lambda y: (y - y.amax(-1, keepdim=True)).exp().sum(-1))(x.masked_fill(LATER, -math.inf)),
        "positive",
    ),
    "exponentials of another row": (
        lambda x: (lambda y: (y - y.amax(-1, keepdim=True)).exp().sum(0))(x.masked_fill(LATER, -math.inf)),
        "positive",
    ),
    "masked scores": (lambda x: x.masked_fill(LATER, -math.inf), "may be minus infinity"),
    "attention": (lambda x: (x @ x.T).masked_fill(LATER, -math.inf).softmax(-1) @ x, "real"),
    "a norm": (lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6), "real"),
    "a root without eps": (lambda x: torch.rsqrt((x * x).mean(-1, keepdim=True)), "undefined"),
    "a router behind attention": (
        lambda x: torch.softmax(((x @ x.T).masked_fill(LATER, -math.inf).softmax(-1) @ x) @ x.T, -1),
        "positive",
    ),
    "by the sum of its column": (lambda x: torch.exp(x) / torch.exp(x).sum(0), "positive"),
    "by the sum of another row": (
        lambda x: (e := torch.exp(x.masked_fill(LATER, -math.inf))) / e.sum(-1),
        "nonnegative",
    ),
    "by the largest of another row": (
        lambda x: (m := x.masked_fill(LATER, -math.inf)) - m.amax(-1),
        "may be minus infinity",
    ),
    "squares": (lambda x: x * x, "nonnegative"),
    "a product": (lambda x: x * (x + 1), "real"),
    "a quotient": (lambda x: 1 / x, "undefined"),
    "an exponential plus one": (lambda x: torch.exp(x) + 1, "positive"),
    "minus an exponential": (lambda x: -torch.exp(x), "real"),
    "a choice": (lambda x: torch.where(x > 0, torch.exp(x), 2.0), "positive"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_known(name: str) -> None:
    program, expected = PROGRAMS[name]
    graph = rw.capture(program, (X,))
    known, machine = facts_of(graph), facts_of(graph, Setting(is_rounded=True))
    (result,) = graph.outputs.values()
    assert described(known[result]) == expected
    for seed in range(3):
        inputs = np.random.default_rng(seed).normal(size=X.shape)
        inputs[0] = 0.0
        with np.errstate(all="ignore"):
            values = run_nodes(graph, dict.fromkeys(graph.inputs, inputs))
        for position, value in values.items():
            for element in value.reshape(-1).tolist():
                assert machine[position].contains(element)


def described(facts: Facts) -> str:
    """What facts say, in a word."""
    if not facts.is_finite:
        return "undefined" if facts.nan or facts.plus_infinity else "may be minus infinity"
    return "positive" if facts.is_positive else "nonnegative" if facts.is_nonnegative else "real"
