"""Steps of generation: attention of few queries to many keys, and probabilities to sample from."""

from __future__ import annotations

import math

import torch

from bench.optimize.program import Built, Draw, programs
from bench.optimize.programs.heads import by_sdpa, masked, scores

T = torch.Tensor


def _step(draw: Draw, keys: int = 8192) -> tuple[T, T, T]:
    """One query of 32 heads, keys and values of eight heads."""
    count, few, width, keys = draw.pick(32, 4), draw.pick(8, 2), draw.pick(128, 8), draw.pick(keys, 24)
    return draw.normal(1, count, 1, width), draw.normal(1, few, keys, width), draw.normal(1, few, keys, width)


def grouped_decode(draw: Draw) -> Built:
    """One query of grouped heads, 8,192 keys."""

    def run(q: T, k: T, v: T) -> T:
        q = q.unflatten(1, (k.shape[1], -1)).squeeze(3)
        return (torch.softmax(scores(q, k), -1) @ v).flatten(1, 2)[..., None, :]

    return Built(run, _step(draw), by_sdpa(enable_gqa=True))


def ragged_decode(draw: Draw) -> Built:
    """Eight sequences of unlike length in one batch."""

    def run(q: T, k: T, v: T, lengths: T) -> T:
        kept = torch.arange(k.shape[2]) < lengths[:, None, None, None]
        return torch.softmax(masked(scores(q, k), kept), -1) @ v

    batch, count, width, keys = draw.pick(8, 2), draw.pick(8, 2), draw.pick(64, 8), draw.pick(2048, 24)
    shape = batch, count, keys, width
    lengths = draw.integers(keys, batch) + 1
    return Built(run, (draw.normal(batch, count, 1, width), draw.normal(*shape), draw.normal(*shape), lengths))


def paged_decode(draw: Draw) -> Built:
    """Keys and values in pages of 16 that a table finds."""

    def run(q: T, keys: T, values: T, table: T, lengths: T) -> T:
        k, v = (pages[table].flatten(1, 2).transpose(1, 2) for pages in (keys, values))
        kept = torch.arange(k.shape[2]) < lengths[:, None, None, None]
        return torch.softmax(masked(scores(q, k), kept), -1) @ v

    batch, count, width, pages = draw.pick(4, 2), draw.pick(8, 2), draw.pick(64, 8), draw.pick(128, 4)
    size, every = draw.pick(16, 4), draw.pick(640, 10)
    table = torch.randperm(every, generator=draw.generator)[: batch * pages].view(batch, pages)
    shape = every, size, count, width
    lengths = draw.integers(pages * size, batch) + 1
    return Built(run, (draw.normal(batch, count, 1, width), draw.normal(*shape), draw.normal(*shape), table, lengths))


def quantised_cache(draw: Draw) -> Built:
    """Keys and values of eight bits with a scale for each token and head."""

    def run(q: T, k: T, v: T, one: T, two: T) -> T:
        s = (q @ k.to(q.dtype).transpose(-1, -2)) * one.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return (torch.softmax(s, -1) * two.transpose(-1, -2)) @ v.to(q.dtype)

    count, width, keys = draw.pick(16, 2), draw.pick(128, 8), draw.pick(4096, 24)
    k, v = ((draw.integers(255, 1, count, keys, width) - 127).to(torch.int8) for _ in range(2))
    one, two = (draw.uniform(1, count, keys, 1) / 127 for _ in range(2))
    return Built(run, (draw.normal(1, count, 1, width), k, v, one, two))


def tree_decode(draw: Draw) -> Built:
    """Speculation: 32 tokens of a tree attend to the cache and to their ancestors."""

    def run(q: T, k: T, v: T, new_k: T, new_v: T, ancestors: T) -> T:
        s = torch.cat((scores(q, k), masked(scores(q, new_k), ancestors)), -1)
        return torch.softmax(s, -1) @ torch.cat((v, new_v), -2)

    count, width, keys, nodes = draw.pick(8, 2), draw.pick(64, 8), draw.pick(2048, 24), draw.pick(32, 6)
    own = torch.eye(nodes, dtype=torch.bool)
    for node in range(1, nodes):
        own[node] |= own[(node - 1) // 2]
    caches = [draw.normal(1, count, keys, width) for _ in range(2)]
    fresh = [draw.normal(1, count, nodes, width) for _ in range(3)]
    return Built(run, (fresh[0], *caches, *fresh[1:], own))


def append_and_attend(draw: Draw) -> Built:
    """The new key and value are put into the cache at a place that is an argument, then attended to."""

    def run(q: T, k: T, v: T, new_k: T, new_v: T, place: T) -> tuple[T, T, T]:
        k, v = k.index_copy(2, place, new_k), v.index_copy(2, place, new_v)
        kept = torch.arange(k.shape[2]) <= place
        return torch.softmax(masked(scores(q, k), kept), -1) @ v, k, v

    count, width, keys = draw.pick(8, 2), draw.pick(64, 8), draw.pick(4096, 24)
    caches = [draw.normal(1, count, keys, width) for _ in range(2)]
    fresh = [draw.normal(1, count, 1, width) for _ in range(3)]
    return Built(run, (fresh[0], *caches, *fresh[1:], torch.tensor([keys * 3 // 4])))


def _logits(draw: Draw) -> T:
    return draw.normal(draw.pick(32, 3), draw.pick(32000, 50))


def top_p(draw: Draw) -> Built:
    """Probabilities of the likeliest words that have nine tenths together."""

    def run(x: T) -> T:
        p, order = torch.sort(torch.softmax(x / 0.8, -1), descending=True, stable=True)
        p = torch.where(p.cumsum(-1) - p < 0.9, p, 0.0)
        p = p / p.sum(-1, keepdim=True)
        return torch.zeros_like(p).scatter(-1, order, p)

    return Built(run, (_logits(draw),))


def top_k(draw: Draw) -> Built:
    """Probabilities of the likeliest fifty words."""

    def run(x: T) -> T:
        least = x.topk(draw.pick(50, 5), -1).values[..., -1:]
        return torch.softmax(masked(x, x >= least), -1)

    return Built(run, (_logits(draw),))


def min_p(draw: Draw) -> Built:
    """Probabilities of words that have a twentieth of the likeliest one's, those said before made less likely."""

    def run(x: T, said: T) -> T:
        x = torch.where(said, torch.where(x > 0, x / 1.2, x * 1.2), x)
        p = torch.softmax(x, -1)
        p = torch.where(p >= 0.05 * p.amax(-1, keepdim=True), p, 0.0)
        return p / p.sum(-1, keepdim=True)

    x = _logits(draw)
    return Built(run, (x, draw.flags(0.05, *x.shape)))


PROGRAMS = programs(
    "decoding",
    forward=(
        grouped_decode,
        ragged_decode,
        paged_decode,
        quantised_cache,
        tree_decode,
        append_and_attend,
        top_p,
        top_k,
        min_p,
    ),
)
