"""What is known of the elements of a tensor holds for what programs compute."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch", reason="captures need the extra rewright[torch]")

import torch

import rewright as rw
from rewright.equiv.spans import ABOVE, FRACTION, REAL, Span, spans
from rewright.interp.program import run_nodes

X = torch.zeros(4, 4)
LATER = torch.ones(4, 4).triu(1).bool()
PROGRAMS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Span]] = {
    "an input": (lambda x: x + 0.0, REAL),
    "softmax": (lambda x: x.softmax(-1), ABOVE),
    "masked softmax": (lambda x: x.masked_fill(LATER, -math.inf).softmax(-1), FRACTION),
    "exponentials of a masked row": (
        lambda x: (lambda y: (y - y.amax(-1, keepdim=True)).exp().sum(-1))(x.masked_fill(LATER, -math.inf)),
        ABOVE,
    ),
    "exponentials of another row": (
        lambda x: (lambda y: (y - y.amax(-1, keepdim=True)).exp().sum(0))(x.masked_fill(LATER, -math.inf)),
        FRACTION,
    ),
    "masked scores": (lambda x: x.masked_fill(LATER, -math.inf), Span.BELOW),
    "attention": (lambda x: (x @ x.T).masked_fill(LATER, -math.inf).softmax(-1) @ x, REAL),
    "a norm": (lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6), REAL),
    "a root without eps": (lambda x: torch.rsqrt((x * x).mean(-1, keepdim=True)), Span.NOTHING),
    "a router behind attention": (
        lambda x: torch.softmax(((x @ x.T).masked_fill(LATER, -math.inf).softmax(-1) @ x) @ x.T, -1),
        ABOVE,
    ),
    "by the sum of its column": (lambda x: torch.exp(x) / torch.exp(x).sum(0), ABOVE),
    "by the sum of another row": (
        lambda x: (e := torch.exp(x.masked_fill(LATER, -math.inf))) / e.sum(-1),
        Span.NOTHING,
    ),
    "by the largest of another row": (
        lambda x: (m := x.masked_fill(LATER, -math.inf)) - m.amax(-1),
        Span.NOTHING,
    ),
    "squares": (lambda x: x * x, FRACTION),
    "a product": (lambda x: x * (x + 1), REAL),
    "a quotient": (lambda x: 1 / x, Span.NOTHING),
    "an exponential plus one": (lambda x: torch.exp(x) + 1, ABOVE),
    "minus an exponential": (lambda x: -torch.exp(x), REAL),
    "a choice": (lambda x: torch.where(x > 0, torch.exp(x), 2.0), ABOVE),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_known(name: str) -> None:
    program, expected = PROGRAMS[name]
    graph = rw.capture(program, (X,))
    known = spans(graph)
    (result,) = graph.outputs.values()
    assert known[result] == expected
    for seed in range(3):
        inputs = np.random.default_rng(seed).normal(size=X.shape)
        inputs[0] = 0.0
        with np.errstate(all="ignore"):
            values = run_nodes(graph, dict.fromkeys(graph.inputs, inputs))
        for position, value in values.items():
            elements = value.astype(np.float64)
            elements = elements[~np.isnan(elements)]
            assert Span.FINITE not in known[position] or np.isfinite(elements).all()
            assert Span.BELOW not in known[position] or (elements < math.inf).all()
            assert Span.NATURAL not in known[position] or (elements >= 0).all()
            assert Span.POSITIVE not in known[position] or (elements > 0).all()
