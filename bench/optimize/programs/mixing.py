"""Attention without a softmax: sigmoids, kernels, decay, and other maps onto the simplex."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.optimize.program import Built, Draw, programs
from bench.optimize.programs.heads import heads, masked, places, scores, triangle

T = torch.Tensor


def sigmoid_causal(draw: Draw) -> Built:
    """Sigmoids of scores, shifted by the logarithm of the length."""

    def run(q: T, k: T, v: T) -> T:
        s = scores(q, k) - torch.log(torch.tensor(float(k.shape[-2])))
        return torch.sigmoid(masked(s, triangle(s))) @ v

    return Built(run, heads(draw))


def squared_relu(draw: Draw) -> Built:
    """Squares of positive scores over the length."""

    def run(q: T, k: T, v: T) -> T:
        s = scores(q, k)
        return (F.relu(masked(s, triangle(s))).square() / k.shape[-2]) @ v

    return Built(run, heads(draw))


def linear(draw: Draw) -> Built:
    """Linear attention to all keys, by ``elu + 1``."""

    def run(q: T, k: T, v: T) -> T:
        q, k = F.elu(q) + 1, F.elu(k) + 1
        return q @ (k.transpose(-1, -2) @ v) / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)

    return Built(run, heads(draw, 4096))


def linear_causal(draw: Draw) -> Built:
    """Linear attention to the past, as a masked product."""

    def run(q: T, k: T, v: T) -> T:
        s = (F.elu(q) + 1) @ (F.elu(k) + 1).transpose(-1, -2)
        s = torch.where(triangle(s), s, 0.0)
        return s @ v / s.sum(-1, keepdim=True)

    return Built(run, heads(draw))


def linear_chunked(draw: Draw) -> Built:
    """Linear attention to the past, chunk by chunk with a state."""
    size = draw.pick(256, 8)

    def run(q: T, k: T, v: T) -> T:
        q, k = F.elu(q) + 1, F.elu(k) + 1
        state = q.new_zeros(*q.shape[:2], q.shape[-1], v.shape[-1])
        chunks: list[T] = []
        for a, b, c in zip(q.split(size, 2), k.split(size, 2), v.split(size, 2), strict=True):
            chunks.append((a @ b.transpose(-1, -2)).tril() @ c + a @ state)
            state = state + b.transpose(-1, -2) @ c
        return torch.cat(chunks, 2) / q.shape[-2]

    return Built(run, heads(draw))


def retention(draw: Draw) -> Built:
    """RetNet: scores that decay with the distance, a rate for each head, and a norm of each head."""

    def run(q: T, k: T, v: T, rate: T) -> T:
        s = scores(q, k)
        i, j = places(s.shape[-2])
        decay = torch.exp(torch.log(rate)[:, None, None] * (i - j).clamp(min=0)).to(s.dtype)
        s = torch.where(j <= i, s * decay, 0.0)
        y = (s / s.abs().sum(-1, keepdim=True).clamp(min=1)) @ v
        return F.layer_norm(y, y.shape[-1:])

    q, k, v = heads(draw)
    rate = (1 - 2.0 ** (-5 - torch.arange(q.shape[1]) * 0.5)).to(torch.float32)
    return Built(run, (q, k, v, rate))


def entmax(draw: Draw) -> Built:
    """1.5-entmax by bisection of its threshold."""

    def run(q: T, k: T, v: T) -> T:
        s = scores(q, k) / 2
        high = s.amax(-1, keepdim=True)
        low = high - 1
        for _ in range(12):
            middle = (low + high) / 2
            above = F.relu(s - middle).square().sum(-1, keepdim=True) >= 1
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        p = F.relu(s - low).square()
        return p / p.sum(-1, keepdim=True) @ v

    return Built(run, heads(draw, 256))


def random_features(draw: Draw) -> Built:
    """Performer: positive random features in the place of the exponential."""

    def run(q: T, k: T, v: T, directions: T) -> T:
        width = q.shape[-1] ** -0.25

        def feature(x: T) -> T:
            projected = x * width @ directions - (x * width).square().sum(-1, keepdim=True) / 2
            return torch.exp(projected - projected.amax((-2, -1), keepdim=True)) + 1e-4

        q, k = feature(q), feature(k)
        return q @ (k.transpose(-1, -2) @ v) / (q @ k.sum(-2)[..., None])

    q, k, v = heads(draw, 2048)
    directions = torch.randn(q.shape[-1], draw.pick(128, 16), generator=draw.generator).to(draw.dtype)
    return Built(run, (q, k, v, directions))


PROGRAMS = programs(
    "mixing",
    forward=(entmax, random_features),
    backward=(sigmoid_causal, squared_relu, linear, linear_causal, linear_chunked, retention),
)
