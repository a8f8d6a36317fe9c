"""Attention that is a softmax of plain scores, by which keys a query sees."""

from __future__ import annotations

import torch

from bench.optimize.program import Built, Draw, programs
from bench.optimize.programs.heads import by_flex, by_sdpa, heads, is_causal, masked, places, scores, triangle

T = torch.Tensor


def causal(draw: Draw) -> Built:
    """Causal attention."""

    def run(q: T, k: T, v: T) -> T:
        s = scores(q, k)
        return torch.softmax(masked(s, triangle(s)), -1) @ v

    args = heads(draw)
    return Built(run, args, by_sdpa(is_causal=True), by_flex(*args[:2], is_causal))


def cross(draw: Draw) -> Built:
    """Every query attends to 77 keys of another sequence, as in diffusion models."""

    def run(q: T, k: T, v: T) -> T:
        return torch.softmax(scores(q, k), -1) @ v

    q = heads(draw, 4096)[0]
    shape = 1, q.shape[1], draw.pick(77, 13), q.shape[-1]
    args = q, draw.normal(*shape), draw.normal(*shape)
    return Built(run, args, by_sdpa(), by_flex(*args[:2]))


def window_sinks(draw: Draw) -> Built:
    """A window of keys, and the first four always."""
    width = draw.pick(256, 8)

    def run(q: T, k: T, v: T) -> T:
        s = scores(q, k)
        i, j = places(s.shape[-2])
        return torch.softmax(masked(s, (j <= i) & ((i - j < width) | (j < 4))), -1) @ v

    args = heads(draw)
    return Built(run, args, flex=by_flex(*args[:2], lambda b, h, i, j: (j <= i) & ((i - j < width) | (j < 4))))


def dilated(draw: Draw) -> Built:
    """Every fourth key of the past."""

    def run(q: T, k: T, v: T) -> T:
        s = scores(q, k)
        i, j = places(s.shape[-2])
        return torch.softmax(masked(s, (j <= i) & ((i - j) % 4 == 0)), -1) @ v

    args = heads(draw)
    return Built(run, args, flex=by_flex(*args[:2], lambda b, h, i, j: (j <= i) & ((i - j) % 4 == 0)))


def prefix(draw: Draw) -> Built:
    """Causal but for a prefix, of which everything is seen."""
    width = draw.pick(256, 8)

    def run(q: T, k: T, v: T) -> T:
        s = scores(q, k)
        i, j = places(s.shape[-2])
        return torch.softmax(masked(s, (j <= i) | (j < width)), -1) @ v

    args = heads(draw)
    return Built(run, args, flex=by_flex(*args[:2], lambda b, h, i, j: (j <= i) | (j < width)))


def documents(draw: Draw) -> Built:
    """Causal attention within documents that are packed into one row."""

    def run(q: T, k: T, v: T, document: T) -> T:
        s = scores(q, k)
        return torch.softmax(masked(s, triangle(s) & (document[:, None] == document[None])), -1) @ v

    q, k, v = heads(draw)
    document = torch.arange(q.shape[-2]) * 5 // q.shape[-2]
    flex = by_flex(q, k, lambda b, h, i, j: (j <= i) & (document[i] == document[j]))
    return Built(run, (q, k, v, document), flex=flex)


def padded(draw: Draw) -> Built:
    """Two sequences of unlike length, with a mask of keys that is an argument."""

    def run(q: T, k: T, v: T, kept: T) -> T:
        return torch.softmax(masked(scores(q, k), kept), -1) @ v

    q, k, v = (t.expand(2, -1, -1, -1).contiguous() for t in heads(draw))
    rows = q.shape[-2]
    kept = (torch.arange(rows)[None] < torch.tensor([rows, rows * 2 // 3])[:, None])[:, None, None]
    return Built(run, (q, k, v, kept), by_sdpa())


def grouped(draw: Draw) -> Built:
    """Eight heads of queries share two of keys and values."""

    def run(q: T, k: T, v: T) -> T:
        times = q.shape[1] // k.shape[1]
        s = scores(q, k.repeat_interleave(times, 1))
        return torch.softmax(masked(s, triangle(s)), -1) @ v.repeat_interleave(times, 1)

    args = heads(draw, kv_heads=2)
    flex = by_flex(*args[:2], is_causal, enable_gqa=True)
    return Built(run, args, by_sdpa(is_causal=True, enable_gqa=True), flex)


def block_gate(draw: Draw) -> Built:
    """MoBA: each query takes its own block of keys and the three best by their means."""
    size = draw.pick(64, 8)

    def run(q: T, k: T, v: T) -> T:
        blocks = q.shape[-2] // size
        means = k.unflatten(-2, (blocks, size)).mean(-2)
        own, other = torch.arange(q.shape[-2])[:, None] // size, torch.arange(blocks)[None]
        gate = (q @ means.transpose(-1, -2)).masked_fill(other > own, float("-inf"))
        gate = gate.masked_fill(other == own, float("inf"))
        taken = (gate >= gate.topk(min(4, blocks), -1).values[..., -1:]).repeat_interleave(size, -1)
        s = scores(q, k)
        return torch.softmax(masked(s, taken & triangle(s)), -1) @ v

    return Built(run, heads(draw))


def swin_windows(draw: Draw) -> Built:
    """Windows of seven by seven that are shifted by three, with a bias by place (Swin)."""
    side, count, width = draw.pick(56, 14), draw.pick(3, 2), draw.pick(32, 8)
    channels, tokens = count * width, 49

    def windows(x: T) -> T:
        x = x.view(-1, side // 7, 7, side // 7, 7, x.shape[-1])
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, tokens, x.shape[-1])

    def run(x: T, qkv: T, bias: T, mask: T) -> T:
        rows = windows(torch.roll(x, (-3, -3), (1, 2))) @ qkv
        q, k, v = rows.view(-1, tokens, 3, count, width).permute(2, 0, 3, 1, 4)
        s = (scores(q, k) + bias).view(x.shape[0], -1, count, tokens, tokens) + mask[:, None]
        y = torch.softmax(s, -1).view(-1, count, tokens, tokens) @ v
        y = y.transpose(1, 2).reshape(x.shape[0], side // 7, side // 7, 7, 7, channels)
        return torch.roll(y.permute(0, 1, 3, 2, 4, 5).reshape(x.shape), (3, 3), (1, 2))

    edge = torch.bucketize(torch.arange(side), torch.tensor([side - 7, side - 3]), right=True)
    region = windows((edge[:, None] * 3 + edge[None])[None, ..., None]).squeeze(-1)
    mask = torch.where(region[:, None] == region[:, :, None], 0.0, -100.0).to(draw.dtype)
    x = draw.normal(draw.pick(4, 1), side, side, channels)
    return Built(run, (x, draw.weight(channels, 3 * channels), draw.weight(count, tokens, tokens), mask))


PROGRAMS = programs(
    "masks",
    forward=(dilated, prefix, documents, padded, block_gate),
    backward=(causal, cross, grouped, window_sinks, swin_windows),
)
