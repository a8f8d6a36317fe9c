"""Operators that draw: for the same numbers their graphs give what PyTorch gives, and they are distributed alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import rewright as rw
from rewright.frontends.torch.drawing.operators import DEFINED
from rewright.ir.errors import UnsupportedOperator
from rewright.ir.unknowns import unknowns

X = torch.linspace(0.3, 1.7, 24).reshape(4, 6)
PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rand": lambda x: x * torch.rand(4, 6),
    "rand in double": lambda x: x * torch.rand(4, 6, dtype=torch.float64),
    "rand_like": lambda x: x * torch.rand_like(x),
    "randn": lambda x: x + torch.randn(4, 6),
    "randn_like": lambda x: x + torch.randn_like(x),
    "randint": lambda x: x + torch.randint(5, (4, 6)),
    "randint from": lambda x: x + torch.randint(-3, 5, (4, 6)),
    "randint_like": lambda x: x + torch.randint_like(x, 7) + torch.randint_like(x, 2, 7),
    "random_": lambda x: x + torch.empty(4, 6).random_(9) + torch.empty(4, 6).random_(2, 9),
    "randperm": lambda x: x[torch.randperm(4)],
    "bernoulli": lambda x: torch.bernoulli(x / 2) + torch.bernoulli(x, 0.3) + torch.empty(4, 6).bernoulli_(x / 2),
    "uniform_": lambda x: x + torch.empty_like(x).uniform_(-2, 3) + torch.empty_like(x).uniform_(to=4),
    "normal_": lambda x: x + torch.empty_like(x).normal_(1, 0.5),
    "normal": lambda x: torch.normal(x, x * x) + torch.normal(x, 2.0) + torch.normal(0.0, x),
    "normal of a size": lambda x: x + torch.normal(1.0, 2.0, (4, 6)),
    "exponential_": lambda x: x + torch.empty_like(x).exponential_(2.0),
    "cauchy_": lambda x: x + torch.empty_like(x).cauchy_(),
    "log_normal_": lambda x: x + torch.empty_like(x).log_normal_(),
    "geometric_": lambda x: x + torch.empty_like(x).geometric_(0.3),
    "multinomial": lambda x: x.gather(1, torch.multinomial(x, 1)) + x.gather(1, torch.multinomial(x, 3)),
    "multinomial with replacement": lambda x: x.gather(1, torch.multinomial(x, 3, replacement=True)),
    "dropout": lambda x: F.dropout(x, 0.3) + F.dropout(x * 1, 0.2, inplace=True),
    "dropout of bfloat16": lambda x: F.dropout(x.bfloat16(), 0.3),
    "dropout of all": lambda x: F.dropout(x, 1.0),
    "native_dropout": lambda x: torch.native_dropout(x, 0.3, True)[0],
    "dropout of channels": lambda x: F.dropout1d(x[None], 0.3) + F.dropout2d(x[None, None], 0.3)[0],
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3, True) + F.feature_alpha_dropout(x, 0.3, True),
    "rrelu": lambda x: F.rrelu(x - 1, training=True),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x) + F.gumbel_softmax(x, hard=True),
    "attention": lambda x: F.scaled_dot_product_attention(*[x[None, None]] * 3, dropout_p=0.2),
    "own generator": lambda x: x + torch.rand(4, 6, generator=torch.Generator().manual_seed(3)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pytorch_gives_the_same_for_the_same_numbers(name: str) -> None:
    graph = rw.capture(PROGRAMS[name], (X,))
    assert json.loads(graph.metadata["validation"])["program"] == "equal"
    assert bool(unknowns(graph)) == (name != "dropout of all")


DISTRIBUTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "bernoulli_.float": lambda x: x.bernoulli_(0.3),
    "uniform_.default": lambda x: x.uniform_(-2.0, 3.0),
    "normal_.default": lambda x: x.normal_(1.0, 0.5),
    "exponential_.default": lambda x: x.exponential_(2.0),
    "log_normal_.default": lambda x: x.log_normal_(0.0, 0.5),
    "geometric_.default": lambda x: x.geometric_(0.3),
    "cauchy_.default": lambda x: x.cauchy_().clamp_(-5, 5),
    "random_.from": lambda x: x.random_(-3, 9),
    "native_dropout.default": lambda x: torch.native_dropout(x.fill_(1.0), 0.2, True)[0],
    "multinomial.default": lambda x: torch.multinomial(x[:, :4].copy_(torch.tensor([1.0, 2, 3, 4])), 1),
}


class _Defined(torch.utils._python_dispatch.TorchDispatchMode):  # pyright: ignore[reportPrivateUsage]
    """Operators that draw, by their definitions."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return DEFINED.get(func, func)(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_definition_has_the_distribution_of_the_operator(name: str) -> None:
    def sample() -> torch.Tensor:
        return DISTRIBUTIONS[name](torch.zeros(5000, 8)).double().flatten()

    torch.manual_seed(0)
    expected = sample()
    with _Defined():
        found = sample()
    both = torch.stack([found.sort().values, expected.sort().values])
    spread, step = float(expected.std()), float(bool((expected == expected.round()).all()))
    for share in (0.05, 0.25, 0.5, 0.75, 0.95):
        low, high = both[:, int(share * both.shape[1])]
        assert abs(float(low - high)) <= max(0.06 * spread, step), share
    assert abs(float(found.mean() - expected.mean())) < 0.04 * spread


def test_what_has_no_definition_is_refused_at_its_line() -> None:
    with pytest.raises(UnsupportedOperator, match=r"poisson.*test_operators.py"):
        rw.capture(lambda x: torch.poisson(x), (X,))
