"""Attention that is a softmax of scores with something to them: biases, caps, norms, positions and gates."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs
from bench.optimize.programs.heads import (
    angles,
    by_flex,
    heads,
    is_causal,
    masked,
    places,
    rotated,
    scores,
    triangle,
)

T = torch.Tensor


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


PROGRAMS = programs(
    "attention",
    forward=(absorbed,),
    backward=(
        alibi_capped,
        differential,
        relative,
        normed_rotary,
        cosine,
        talking_heads,
        sinks_learned,
        gated,
        forgetting,
    ),
)
