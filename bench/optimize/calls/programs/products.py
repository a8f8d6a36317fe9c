"""Products of matrices, attention, convolutions."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional as F

from bench.optimize.calls.spec import programs

Tensor = torch.Tensor


def mlp(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return F.gelu(x @ w) @ v


def gated(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return F.silu(x @ w) * (x @ v)


def linear(x: Tensor, w: Tensor, b: Tensor) -> Any:
    return F.linear(x, w, b), F.relu(F.linear(x, w, b))


def products(x: Tensor, y: Tensor) -> Any:
    return x @ y.mT, torch.bmm(x, y.mT), torch.einsum("bsd,btd->st", x, y), torch.baddbmm(x @ y.mT, x, y.mT, beta=0.5)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    i, j = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    return torch.softmax(scores.masked_fill(j > i, float("-inf")), -1) @ v


def library_attention(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, scale=0.3)


def masked_attention(q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Any:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=m), torch.softmax((q @ k.mT).tanh() * 3, -1) @ v


def biased_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Any:
    weights = torch.softmax(q @ k.mT + bias, -1)
    return weights @ v, weights.sum(-2)


def grouped_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    k, v = (t.repeat_interleave(2, 1) for t in (k, v))
    return torch.softmax(q @ k.mT, -1) @ v


def linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(-2, keepdim=True).mT)


def distances(x: Tensor, y: Tensor) -> Any:
    d = (x[..., :, None, :] - y[..., None, :, :]).pow(2).sum(-1)
    return d, torch.exp(-d).sum(-1), d.argmin(-1)


def convolution(x: Tensor, w: Tensor) -> Tensor:
    return F.relu(F.conv2d(x, w, padding=1))


def depthwise(x: Tensor, w: Tensor) -> Tensor:
    return F.silu(F.conv1d(F.pad(x, (3, 0)), w, groups=x.shape[1]))


def pooling(x: Tensor) -> Any:
    return F.max_pool2d(x, 2, ceil_mode=True), F.avg_pool2d(x, 3, 1, 1), F.adaptive_avg_pool2d(x, 1)


def stencil(x: Tensor) -> Tensor:
    return x[1:-1, 1:-1] + 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1])


def outer(x: Tensor, y: Tensor) -> Any:
    return torch.outer(x[0], y[0]), x.T @ y, torch.tril(x @ y.T), torch.trace(x @ x.T)


PROGRAMS = programs(
    mlp=(mlp, "f b s d,f d h,f h d"),
    gated=(gated, "f b d,f d h,f d h"),
    linear=(linear, "f b s d,f h d,f h"),
    products=(products, "f b s d,f b s d"),
    attention=(attention, "f b 2 s d,f b 2 s d,f b 2 s d"),
    library_attention=(library_attention, "f b 2 s d,f b 2 s d,f b 2 s d"),
    masked_attention=(masked_attention, "f b 2 s d,f b 2 t d,f b 2 t d,m s t"),
    biased_attention=(biased_attention, "f b 2 s d,f b 2 t d,f b 2 t d,f 2 s t"),
    grouped_attention=(grouped_attention, "f b 4 s d,f b 2 t d,f b 2 t d"),
    linear_attention=(linear_attention, "f b s d,f b t d,f b t h"),
    distances=(distances, "f b s d,f b t d"),
    convolution=(convolution, "f b 3 s t,f 4 3 3 3"),
    depthwise=(depthwise, "f b 4 s,f 4 1 4"),
    pooling=(pooling, "f b 2 s t"),
    stencil=(stencil, "f s t"),
    outer=(outer, "f b s,f b s"),
)
