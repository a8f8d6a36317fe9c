"""Attention that is a softmax of scores: masks, biases, caps, groups and positions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs
from bench.optimize.programs.heads import (
    angles,
    by_flex,
    by_sdpa,
    heads,
    is_causal,
    masked,
    places,
    rotated,
    scores,
    triangle,
)

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


def alibi_capped(draw: Draw) -> Built:
    """ALiBi's bias, and scores that are capped softly."""

    def run(q: T, k: T, v: T, slopes: T) -> T:
        s = scores(q, k)
        i, j = places(s.shape[-2])
        s = 30 * torch.tanh(s / 30) - slopes[:, None, None] * (i - j)
        return torch.softmax(masked(s, j <= i), -1) @ v

    q, k, v = heads(draw)
    slopes = (2.0 ** (-8 * (torch.arange(q.shape[1]) + 1) / q.shape[1])).to(draw.dtype)
    flex = by_flex(q, k, is_causal, lambda s, b, h, i, j: 30 * torch.tanh(s / 30) - slopes[h] * (i - j))
    return Built(run, (q, k, v, slopes), flex=flex)


def grouped(draw: Draw) -> Built:
    """Eight heads of queries share two of keys and values."""

    def run(q: T, k: T, v: T) -> T:
        times = q.shape[1] // k.shape[1]
        s = scores(q, k.repeat_interleave(times, 1))
        return torch.softmax(masked(s, triangle(s)), -1) @ v.repeat_interleave(times, 1)

    args = heads(draw, kv_heads=2)
    flex = by_flex(*args[:2], is_causal, enable_gqa=True)
    return Built(run, args, by_sdpa(is_causal=True, enable_gqa=True), flex)


def differential(draw: Draw) -> Built:
    """The difference of two softmaxes, and a norm of each head."""

    def run(q: T, k: T, v: T, share: T, gain: T) -> T:
        (q1, q2), (k1, k2) = q.chunk(2, -1), k.chunk(2, -1)
        s1, s2 = scores(q1, k1), scores(q2, k2)
        first, second = (torch.softmax(masked(s, triangle(s)), -1) for s in (s1, s2))
        y = (first - share[:, None, None] * second) @ v
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5) * gain * 0.2

    q, k, v = heads(draw)
    return Built(run, (q, k, v, draw.uniform(q.shape[1]), draw.near_one(q.shape[-1])))


def relative(draw: Draw) -> Built:
    """T5: no scale, and a learned bias by buckets of distance."""

    def run(q: T, k: T, v: T, table: T) -> T:
        i, j = places(q.shape[-2])
        ago = (i - j).clamp(min=0)
        far = 16 + (torch.log(ago.clamp(min=1).float() / 16) / math.log(8) * 16).long()
        bucket = torch.where(ago < 16, ago, far.clamp(max=31))
        s = q @ k.transpose(-1, -2) + table[bucket].permute(2, 0, 1)
        return torch.softmax(masked(s, j <= i), -1) @ v

    q, k, v = heads(draw)
    return Built(run, (q, k, v, draw.weight(32, q.shape[1])))


def absorbed(draw: Draw) -> Built:
    """DeepSeek's latent attention: one key of 512 + 64 for all heads, whose first 512 are the value."""
    count, rows, keys = draw.pick(16, 4), draw.pick(128, 8), draw.pick(2048, 32)
    width, turned = draw.pick(512, 16), draw.pick(64, 8)

    def run(q: T, latent: T) -> T:
        s = q @ latent.transpose(-1, -2) / math.sqrt(3 * turned)
        i, j = places(rows, keys)
        return torch.softmax(masked(s, j <= i + keys - rows), -1) @ latent[..., :width]

    return Built(run, (draw.normal(1, count, rows, width + turned), draw.normal(1, 1, keys, width + turned)))


def normed_rotary(draw: Draw) -> Built:
    """Norms of queries and keys, then rotary positions (Qwen 3, Gemma 3)."""

    def run(q: T, k: T, v: T, one: T, two: T, cos: T, sin: T) -> T:
        q = q * torch.rsqrt(q.pow(2).mean(-1, keepdim=True) + 1e-6) * one
        k = k * torch.rsqrt(k.pow(2).mean(-1, keepdim=True) + 1e-6) * two
        s = scores(rotated(q, cos, sin), rotated(k, cos, sin))
        return torch.softmax(masked(s, triangle(s)), -1) @ v

    q, k, v = heads(draw)
    rows, width = q.shape[-2:]
    return Built(run, (q, k, v, draw.near_one(width), draw.near_one(width), *angles(rows, width, draw.dtype)))


def cosine(draw: Draw) -> Built:
    """Cosines over a learned temperature (Swin 2)."""

    def run(q: T, k: T, v: T, temperature: T) -> T:
        s = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-1, -2)
        return torch.softmax(s * temperature.clamp(max=4.6052).exp()[:, None, None], -1) @ v

    q, k, v = heads(draw)
    return Built(run, (q, k, v, draw.near_one(q.shape[1])))


def talking_heads(draw: Draw) -> Built:
    """Heads are mixed before the softmax and after it."""

    def run(q: T, k: T, v: T, before: T, after: T) -> T:
        s = torch.einsum("bhij,hg->bgij", scores(q, k), before)
        return torch.einsum("bhij,hg->bgij", torch.softmax(s, -1), after) @ v

    q, k, v = heads(draw)
    return Built(run, (q, k, v, draw.weight(q.shape[1], q.shape[1]), draw.weight(q.shape[1], q.shape[1])))


def sinks_learned(draw: Draw) -> Built:
    """A learned score of each head that takes weight and gives no value (gpt-oss)."""

    def run(q: T, k: T, v: T, sink: T) -> T:
        s = scores(q, k)
        s = masked(s, triangle(s))
        top = torch.maximum(s.amax(-1, keepdim=True), sink[:, None, None])
        weights = (s - top).exp()
        return weights @ v / (weights.sum(-1, keepdim=True) + (sink[:, None, None] - top).exp())

    q, k, v = heads(draw)
    return Built(run, (q, k, v, draw.weight(q.shape[1])))


def gated(draw: Draw) -> Built:
    """The result of each head by a gate, and with the residual."""

    def run(q: T, k: T, v: T, gate: T, x: T) -> T:
        s = scores(q, k)
        y = torch.softmax(masked(s, triangle(s)), -1) @ v
        return x + (y * torch.sigmoid(gate)).transpose(1, 2).flatten(2)

    q, k, v = heads(draw)
    return Built(run, (q, k, v, draw.normal(*q.shape), draw.normal(1, q.shape[2], q.shape[1] * q.shape[3])))


def forgetting(draw: Draw) -> Built:
    """A gate of each token, whose logarithms are summed between key and query."""

    def run(q: T, k: T, v: T, gate: T) -> T:
        total = F.logsigmoid(gate).cumsum(-1)
        s = scores(q, k) + total[..., :, None] - total[..., None, :]
        return torch.softmax(masked(s, triangle(s)), -1) @ v

    q, k, v = heads(draw)
    return Built(run, (q, k, v, draw.normal(*q.shape[:3])))


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
    "attention",
    forward=(dilated, block_gate, absorbed, documents, padded, prefix),
    backward=(
        causal,
        cross,
        window_sinks,
        alibi_capped,
        grouped,
        differential,
        relative,
        normed_rotary,
        cosine,
        talking_heads,
        sinks_learned,
        gated,
        forgetting,
        swin_windows,
    ),
)
