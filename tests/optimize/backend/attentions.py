"""Attention with gradients, as people write it; more keys than two heads are wide, so that scores are the largest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

from tests.optimize.programs import normal

LENGTH, WIDTH = 96, 8
Function = Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
Attention = tuple[Function, Sequence[torch.Tensor]]


def heads(queries: int = 2, keys: int = 2, length: int = LENGTH, width: int = WIDTH) -> list[torch.Tensor]:
    """Queries, keys and values."""
    return [normal(1, n, length, width, seed=seed) for seed, n in enumerate((queries, keys, keys))]


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Scaled products of each query with each key."""
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


def distances() -> torch.Tensor:
    """How far behind its query a key is."""
    places = torch.arange(LENGTH)
    return places[:, None] - places[None]


def causal(s: torch.Tensor) -> torch.Tensor:
    """Scores without those of later keys."""
    return s.masked_fill(distances() < 0, float("-inf"))


def plain() -> Attention:
    """Softmax attention."""
    return lambda q, k, v: torch.softmax(scores(q, k), -1) @ v, heads()


def capped() -> Attention:
    """Causal, with scores that are bounded."""
    return lambda q, k, v: torch.softmax(causal(20 * torch.tanh(scores(q, k) / 20)), -1) @ v, heads()


def windowed() -> Attention:
    """The last few keys."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(causal(scores(q, k)).masked_fill(distances() > 20, float("-inf")), -1) @ v

    return run, heads()


def with_sink() -> Attention:
    """One more logit for each head, which no value belongs to."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sink: torch.Tensor) -> torch.Tensor:
        every = torch.cat([causal(scores(q, k)), sink[None, :, None, None].expand(1, 2, LENGTH, 1)], -1)
        return torch.softmax(every, -1)[..., :-1] @ v

    return run, [*heads(), normal(2, seed=3)]


def grouped() -> Attention:
    """Two queries to a key, by PyTorch's own operator."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return run, heads(4, 2)


def by_sigmoid() -> Attention:
    """Weights that do not add up to one."""
    return lambda q, k, v: torch.sigmoid(scores(q, k)) @ v, heads()


def subtracted() -> Attention:
    """Two softmaxes, one less a share of the other."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return (torch.softmax(scores(q, k), -1) - 0.3 * torch.softmax(scores(other, k), -1)) @ v

    return run, [*heads(), normal(1, 2, LENGTH, WIDTH, seed=3)]


def with_columns() -> Attention:
    """Besides, how much attention each key gets."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        weights = torch.softmax(scores(q, k), -1)
        return weights @ v, weights.sum(-2)

    return run, heads()


def by_einsum() -> Attention:
    """Heads behind places."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k), -1)
        return torch.einsum("bhqk,bhkd->bqhd", weights, v)

    return run, heads()


def projected() -> Attention:
    """Queries, keys and values that are cut out of one projection."""

    def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        q, k, v = (x @ weight).chunk(3, -1)
        return torch.softmax(causal(scores(q, k)), -1) @ v

    return run, [normal(1, LENGTH, WIDTH), normal(WIDTH, 3 * WIDTH, seed=1) / 2]


def contrast() -> Attention:
    """A loss over all pairs, along rows and columns."""

    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        s = functional.normalize(x, dim=-1) @ functional.normalize(y, dim=-1).T * 10
        labels = torch.arange(LENGTH)
        return (functional.cross_entropy(s, labels) + functional.cross_entropy(s.T, labels)) / 2

    return run, [normal(LENGTH, WIDTH), normal(LENGTH, WIDTH, seed=1)]


ATTENTIONS: dict[str, Callable[[], Attention]] = {
    f.__name__: f
    for f in (
        *(
            plain,
            capped,
            windowed,
            with_sink,
            grouped,
            by_sigmoid,
            subtracted,
            with_columns,
            by_einsum,
            projected,
            contrast,
        ),
    )
}
